//! The handle that a handler holds: what it knows of its request, and how it opens and ends the
//! response.

use std::fmt;

use super::outlet::Outlet;
use super::shared::{Info, Shared};
use super::sync::Arc;
use crate::error::SendError;
use crate::protocol::era::Era;
use crate::protocol::id::{ProgressToken, RequestId};
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::legacy::Form;
use crate::protocol::request::message::Message;
use crate::protocol::request::meta::RequestMeta;

/// Whether a channel still takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Every send that the request allows works.
    Open,
    /// Every send is refused as [closed](SendError::is_closed).
    Closed,
}

/// The channel back to the client, for the duration of one request.
///
/// The layer puts it into the request's extensions. Handles are cheap to clone and work from any
/// task or thread. The first message that is sent turns the response into an event stream; without
/// one, the response is a single JSON reply.
///
/// | call | what it does |
/// | --- | --- |
/// | [`send_progress`](Self::send_progress) | reports progress, if the client asked for it |
/// | [`send_log`](Self::send_log) | sends a log record, if it is of the level that the client asked for |
/// | [`send_notification`](Self::send_notification) | sends any other notification |
/// | [`send_result`](Self::send_result), [`send_error`](Self::send_error) | sends the final reply |
/// | [`start_stream`](Self::start_stream) | opens the stream before there is something to send |
/// | [`close`](Self::close) | ends the response without a reply |
/// | [`closed`](Self::closed) | waits until the client is gone or the response has ended |
///
/// The channel of a notification is closed from the start, since a notification gets no reply.
///
/// Sends that wait have a `try_` counterpart that does not; final replies and the calls that open
/// or end the stream never wait. Memory is bounded by the layer's
/// [`buffer_limit`](crate::McpChannelLayer::buffer_limit): beyond it an awaited send waits for the
/// client. Whatever is sent is delivered whole and in order, or refused with a [`SendError`].
///
/// Messages are encoded when they are sent, on the caller's thread. A value whose `Serialize` is
/// slow or panics affects only its caller.
///
/// # Examples
///
/// ```
/// # use mcp_channel::{Channel, LogLevel};
/// async fn index(channel: Channel) {
///     // What the client does not want, or is no longer there for, is no reason to fail.
///     let _ = channel.send_progress((1, 2, "reading")).await;
///     let _ = channel.send_log(LogLevel::Info, "half way").await;
///     let _ = channel.send_progress((2, 2)).await;
/// }
/// ```
pub struct Channel {
    pub(super) shared: Arc<Shared>,
    /// Whether this handle is open. Open handles are counted.
    open: bool,
}

impl Channel {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        shared.add_handle();
        Self {
            shared: Arc::clone(shared),
            open: true,
        }
    }

    /// The id of the request, in the JSON type and with the digits that the client sent. None for
    /// a notification.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        self.shared.info.id.as_ref()
    }

    /// What the request's `_meta` says: the client, its capabilities, the trace context.
    #[must_use]
    pub fn meta(&self) -> &RequestMeta {
        &self.shared.info.meta
    }

    /// Which era of the protocol the client speaks. Handlers need not ask: what they send and reply
    /// is put into the client's form.
    #[must_use]
    pub fn era(&self) -> Era {
        self.meta().era()
    }

    /// The protocol version that the request is written in; see
    /// [`RequestMeta::protocol_version`].
    #[must_use]
    pub fn protocol_version(&self) -> Option<&str> {
        self.meta().protocol_version()
    }

    /// The token that ties progress to the request. None when the client wants no progress.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.meta().progress_token()
    }

    /// The lowest level of log records that the client wants. None when it wants no records.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.meta().log_level()
    }

    /// The URI of the request, as the layer saw it.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.meta().endpoint()
    }

    /// A value of the application: one that the layer [copied from the request's
    /// extensions](crate::McpChannelLayer::copy_value), or else one that it [was
    /// given](crate::McpChannelLayer::value).
    ///
    /// If this is `None` although the request has such an extension, the layer was not told to
    /// [`copy_value`](crate::McpChannelLayer::copy_value) it, or a layer *inside* added the
    /// extension after the channel was made; see
    /// [Deployment](crate::guide::deployment#authentication).
    #[must_use]
    pub fn value<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let info = &self.shared.info;
        info.copied.get().or_else(|| info.options.values.get())
    }

    /// Whether sends still work.
    #[must_use]
    pub fn status(&self) -> Status {
        if self.open && self.shared.lock().state.ended().is_none() {
            Status::Open
        } else {
            Status::Closed
        }
    }

    /// Opens the event stream now, before there is something to send.
    ///
    /// It is for slow work that has nothing to report: an open stream carries keep-alives, so that
    /// no proxy and no client gives up on it. It does nothing when the stream is open already, or
    /// for a client that takes only JSON.
    ///
    /// # Errors
    ///
    /// [`is_closed`](SendError::is_closed).
    pub fn start_stream(&self) -> Result<(), SendError> {
        self.open()?.start_stream()
    }

    /// Ends the response from the server's side, without a reply.
    ///
    /// An open stream ends; the stream of a `subscriptions/listen` request ends with its completion
    /// result. A response that is not a stream yet, or a subscription that was not acknowledged,
    /// becomes an internal error.
    ///
    /// # Errors
    ///
    /// [`is_closed`](SendError::is_closed) when it had ended before.
    pub fn close(&self) -> Result<(), SendError> {
        self.open()?.close()
    }

    /// Closes this handle only, as dropping it does: the response and the other handles stay open.
    ///
    /// A closed handle does not keep the response waiting. If it was the last one after
    /// [`Deferred`](crate::Deferred), the client gets an internal error.
    pub fn set_closed(&mut self) {
        if std::mem::take(&mut self.open) {
            self.shared.drop_handle();
        }
    }

    /// A closed handle of the same request, for code that needs a channel but is to send nothing.
    #[must_use]
    pub fn as_closed(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            open: false,
        }
    }

    /// Makes the channel of a request, and its other end, for tests of handlers.
    ///
    /// `values` are the [application's](Self::value). The client takes a stream, and the
    /// [`buffer_limit`](crate::McpChannelLayer::buffer_limit) is the default. The channel takes
    /// messages until its final reply, or until the outlet is dropped. See the guide on
    /// [testing](crate::guide::testing).
    ///
    /// ```
    /// use mcp_channel::{Channel, Message};
    ///
    /// let message = Message::parse(
    ///     r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}}"#,
    /// )?;
    /// let (channel, mut outlet) = Channel::from_request(&message, http::Extensions::new());
    /// channel.try_send_progress(1)?;
    /// assert!(outlet.try_next().unwrap().starts_with(b"event: message\ndata: {"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn from_request(message: &Message, values: http::Extensions) -> (Self, Outlet) {
        let info = Info {
            id: message.id().cloned(),
            meta: message.meta().clone(),
            options: Default::default(),
            copied: values,
            subscription: message.is_subscription(),
            form: match message.meta().era() {
                Era::Modern => Form::Modern,
                Era::Legacy => Form::Legacy {
                    tool: message.method() == "tools/call",
                },
            },
        };
        let outlet = Outlet::new(info, true, None);
        (Self::new(outlet.shared()), outlet)
    }

    /// The shared state, if this handle is open.
    #[inline]
    pub(super) fn open(&self) -> Result<&Shared, SendError> {
        if self.open {
            Ok(&self.shared)
        } else {
            Err(SendError::CLOSED)
        }
    }

    /// Another handle, if this one is open.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.open.then(|| Handle::new(&self.shared))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Clone for Channel {
    fn clone(&self) -> Self {
        if self.open {
            Self::new(&self.shared)
        } else {
            self.as_closed()
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.set_closed();
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("request_id", &self.request_id())
            .field("progress_token", &self.progress_token())
            .field("log_level", &self.log_level())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Keeps a channel open, as a [`Channel`] does, at half its size.
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.add_handle();
        Self(Arc::clone(shared))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.drop_handle();
    }
}
