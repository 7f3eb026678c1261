//! [`Shutdown`]: ends long-lived streams when a server shuts down.

use std::fmt;

use slab::Slab;

use crate::channel::Shared;
use crate::channel::sync::{Arc, Mutex, lock};
use crate::protocol::reply::rpc_error::RpcError;

/// A signal that the server shuts down, for [`McpChannelLayer::shutdown`].
///
/// During a graceful shutdown a server waits for its open responses, and a `subscriptions/listen`
/// stream ends only when somebody ends it. [`begin`](Self::begin) ends them all, so that the server
/// can stop. If one [`Subscriptions`](crate::subscriptions::Subscriptions) accepts all of them, its
/// [`shut_down`](crate::subscriptions::Subscriptions::shut_down) does the same and needs no option
/// of the layer.
///
/// Handles are cheap to clone, and all clones are the same shutdown.
///
/// ```
/// use mcp_channel::{McpChannelLayer, Shutdown};
///
/// let shutdown = Shutdown::new();
/// let layer = McpChannelLayer::new().shutdown(&shutdown);
/// // … and when the process is told to end:
/// shutdown.begin();
/// ```
///
/// [`McpChannelLayer::shutdown`]: crate::McpChannelLayer::shutdown
#[derive(Clone)]
pub struct Shutdown {
    streams: Arc<Mutex<Streams>>,
}

#[derive(Default)]
struct Streams {
    begun: bool,
    /// The streams of open subscriptions.
    open: Slab<Arc<Shared>>,
}

/// Removes a stream that has ended.
struct Registration {
    streams: Arc<Mutex<Streams>>,
    key: usize,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let stream = lock(&self.streams).open.try_remove(self.key);
        drop(stream);
    }
}

impl Shutdown {
    /// A shutdown that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self {
            streams: Arc::new(Mutex::new(Streams::default())),
        }
    }

    /// Ends every open `subscriptions/listen` stream with its completion result, and refuses new
    /// ones from now on. Other requests run to their end. A stream that was not acknowledged yet is
    /// refused like a new one.
    ///
    /// Calling it again does nothing.
    pub fn begin(&self) {
        let open: Vec<_> = {
            let mut streams = lock(&self.streams);
            streams.begun = true;
            streams.open.iter().map(|(_, s)| Arc::clone(s)).collect()
        };
        let refusal = shutting_down();
        for stream in open {
            stream.close_subscription(&refusal);
        }
    }

    /// Whether it has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        lock(&self.streams).begun
    }

    /// Has the stream ended when the shutdown begins. Refuses it when the shutdown has begun
    /// already.
    pub(crate) fn register(&self, stream: &Arc<Shared>) -> Result<(), RpcError> {
        let key = {
            let mut streams = lock(&self.streams);
            if streams.begun {
                return Err(shutting_down());
            }
            streams.open.insert(Arc::clone(stream))
        };
        stream.on_end(Box::new(Registration {
            streams: Arc::clone(&self.streams),
            key,
        }));
        Ok(())
    }
}

/// The error for a new subscription while the server shuts down.
pub(crate) fn shutting_down() -> RpcError {
    RpcError::internal(
        "the server is shutting down and takes no new subscriptions: listen again in a moment",
    )
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = lock(&self.streams);
        f.debug_struct("Shutdown")
            .field("begun", &streams.begun)
            .field("open", &streams.open.len())
            .finish()
    }
}
