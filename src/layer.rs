//! [`McpChannelLayer`]: the layer, and its options.

use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use crate::channel::Options;
use crate::config::Config;
use crate::protocol::json::MAX_LENGTH;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::server_info::ServerInfo;
use crate::protocol::request::host::AllowedHosts;
use crate::protocol::request::origin::AllowedOrigins;
use crate::service::McpChannelService;
use crate::shutdown::Shutdown;

/// Turns a service into a Model Context Protocol endpoint, and gives each request a
/// [`Channel`](crate::Channel).
///
/// Requests that break the protocol's rules are [rejected](crate::guide::protocol#rejections) and
/// reach no handler. What a handler does decides what its client sees; see the table on the [front
/// page](crate). [Deployment](crate::guide::deployment) says where the layer goes among others.
///
/// Options are checked when they are made, and none fails later. Cloning is cheap.
///
/// # Examples
///
/// With the defaults:
///
/// ```
/// use mcp_channel::McpChannelLayer;
///
/// let layer = McpChannelLayer::new();
/// ```
///
/// Configured:
///
/// ```
/// use std::time::Duration;
/// use mcp_channel::{AllowedHosts, AllowedOrigins, McpChannelLayer, ServerInfo};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layer = McpChannelLayer::new()
///     .server_info(ServerInfo::new("weather", env!("CARGO_PKG_VERSION")))
///     .allowed_origins(AllowedOrigins::list(["https://app.example.com".parse()?]))
///     .allowed_hosts(AllowedHosts::list(["mcp.example.com".parse()?]))
///     .keep_alive(Duration::from_secs(5))
///     .body_limit(64 * 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct McpChannelLayer {
    config: Arc<Config>,
}

impl McpChannelLayer {
    /// A layer with the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest silence of an open stream: after that long without a frame it carries a comment,
    /// which keeps proxies and clients from giving up on it.
    ///
    /// Zero and [`Duration::MAX`] turn it off; anything else below a millisecond counts as one.
    /// Default: 15 seconds.
    ///
    /// # Panics
    ///
    /// This method does not panic. While the option is on, the response panics when it is polled
    /// outside of a tokio runtime with its timer enabled.
    pub fn keep_alive(self, interval: Duration) -> Self {
        self.with(|config| config.keep_alive = interval_of(interval))
    }

    /// How long nothing may be sent before the response becomes a stream, so that no proxy and no
    /// client gives up on a slow handler.
    ///
    /// Zero and [`Duration::MAX`] turn it off; anything else below a millisecond counts as one.
    /// Default: 15 seconds. Does not hold for notifications, and not for clients that take only
    /// JSON. A response that would have passed untouched is then the stream's last event if it is
    /// the request's JSON-RPC response, and an internal error (-32603) if it is not.
    ///
    /// A final error that was sent with a status other than 200 is not turned into a stream while
    /// its handler runs on, or the status would be lost.
    ///
    /// # Panics
    ///
    /// This method does not panic. While the option is on, the response panics when it is polled
    /// outside of a tokio runtime with its timer enabled.
    pub fn stream_after(self, silence: Duration) -> Self {
        self.with(|config| config.stream_after = interval_of(silence))
    }

    /// How many bytes the body of a request may have. A larger one is answered 413 and not read to
    /// its end.
    ///
    /// It also bounds the body of a response that becomes the last event of a stream. Zero refuses
    /// every request, and more than 2 GiB less one byte counts as that. Default: 4 MiB.
    pub fn body_limit(self, bytes: u64) -> Self {
        self.with(|config| config.body_limit = bytes.min(MAX_LENGTH as u64))
    }

    /// How many bytes may wait unsent in each stream, before sends wait for the client.
    ///
    /// A frame that is larger still passes when nothing waits, so that with zero one frame waits at
    /// a time. Final replies are not counted. The server keeps a few more pieces
    /// of up to this size in its own buffers, so it bounds what a client that does not read can
    /// cost; larger values cost memory and gain little. Default: 4 KiB.
    pub fn buffer_limit(self, bytes: usize) -> Self {
        self.with_channel(|options| options.buffer_limit = bytes)
    }

    /// Which web pages may call this endpoint. Default: none.
    ///
    /// Only browsers send an `Origin`, so this concerns no other client.
    pub fn allowed_origins(self, origins: AllowedOrigins) -> Self {
        self.with(|config| config.policy.origins = origins)
    }

    /// By which names this endpoint may be called. Default: by any.
    ///
    /// Servers on a developer's machine should set it to
    /// [`AllowedHosts::loopback()`](AllowedHosts::loopback): it is the other half of the protection
    /// against DNS rebinding.
    pub fn allowed_hosts(self, hosts: AllowedHosts) -> Self {
        self.with(|config| config.policy.hosts = Some(hosts))
    }

    /// Whether clients of earlier revisions of the protocol are served: `2024-11-05`, `2025-03-26`,
    /// `2025-06-18` and `2025-11-25`. Default: yes.
    ///
    /// Handlers are written for the modern revision, and the layer puts what they do into the form
    /// that each client knows; the guide [Clients old and new] tells what such a client gets and what
    /// it cannot have. When it is off, their requests are rejected like others that lack what the
    /// modern revision asks for.
    ///
    /// Their requests carry no `Mcp-Method` and no `Mcp-Name`. Where a gateway decides by these
    /// headers, have it look into the body as well, or turn this off.
    ///
    /// [Clients old and new]: crate::guide::eras
    pub fn legacy_clients(self, served: bool) -> Self {
        self.with(|config| config.policy.legacy.served = served)
    }

    /// The least severe level of log records for a client of an earlier revision. Such a client does
    /// not say with each request which records it wants. `None` sends it none. Default:
    /// [`LogLevel::Info`].
    pub fn legacy_log_level(self, level: impl Into<Option<LogLevel>>) -> Self {
        let level = level.into();
        self.with(|config| config.policy.legacy.log_level = level)
    }

    /// The server's name and version, which every result then carries in its `_meta`, as
    /// `io.modelcontextprotocol/serverInfo`, unless it says so itself. Default: none.
    pub fn server_info(self, info: ServerInfo) -> Self {
        self.with_channel(|options| options.server_info = Some(info.to_json().into()))
    }

    /// A value that every channel of this layer carries; see
    /// [`Channel::value`](crate::Channel::value). There is one of each type, the last that was set.
    ///
    /// ```
    /// use mcp_channel::{Channel, McpChannelLayer};
    ///
    /// #[derive(Clone)]
    /// struct Kitchen(&'static str);
    /// #[derive(Clone)]
    /// struct User(String);
    ///
    /// let layer = McpChannelLayer::new().value(Kitchen("main")).copy_value::<User>();
    ///
    /// async fn handler(channel: Channel) {
    ///     let kitchen = channel.value::<Kitchen>();
    ///     // There when a layer *outside* put one into the request's extensions; None otherwise.
    ///     let user = channel.value::<User>();
    /// }
    /// ```
    pub fn value<T: Clone + Send + Sync + 'static>(self, value: T) -> Self {
        self.with_channel(|options| {
            options.values.insert(value);
        })
    }

    /// Has the channel carry the request's extension of this type, when it has one: what an outer
    /// layer found out about the caller, say. It wins over a [`value`](Self::value).
    ///
    /// Only what is there when the request reaches this layer is copied. An extension that a layer
    /// *inside* adds later is in the request (for axum's `Extension`, say), but not in the channel.
    /// So authentication belongs outside; [Deployment] has a complete example.
    ///
    /// [Deployment]: crate::guide::deployment#authentication
    pub fn copy_value<T: Clone + Send + Sync + 'static>(self) -> Self {
        self.with(|config| config.copied_types.add::<T>())
    }

    /// Ends the open `subscriptions/listen` streams when this shutdown begins, and refuses new ones
    /// from then on, so that a graceful end of the server does not wait for them. Default: none.
    pub fn shutdown(self, shutdown: &Shutdown) -> Self {
        let shutdown = shutdown.clone();
        self.with(|config| config.shutdown = Some(shutdown))
    }

    fn with_channel(self, set: impl FnOnce(&mut Options)) -> Self {
        self.with(|config| set(Arc::make_mut(&mut config.channel)))
    }

    fn with(mut self, set: impl FnOnce(&mut Config)) -> Self {
        set(Arc::make_mut(&mut self.config));
        self
    }
}

impl<S> Layer<S> for McpChannelLayer {
    type Service = McpChannelService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        McpChannelService::with_config(inner, Arc::clone(&self.config))
    }
}

fn interval_of(duration: Duration) -> Option<Duration> {
    /// Longer than any response lasts, and still short enough for every clock.
    const LONGEST: Duration = Duration::from_secs(60 * 60 * 24 * 365);

    if duration.is_zero() || duration == Duration::MAX {
        return None;
    }
    Some(duration.clamp(Duration::from_millis(1), LONGEST))
}
