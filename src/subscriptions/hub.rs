//! [`Subscriptions`]: the open subscriptions of a server, and how they end.

use std::fmt;

use super::change::{Change, KINDS};
use super::options::{Builder, Options};
use super::registry::Registry;
use crate::channel::Piece;
use crate::channel::sync::{Arc, Mutex, lock};
use crate::protocol::reply::rpc_error::RpcError;
use crate::shutdown::shutting_down;

/// The open subscriptions of a server.
///
/// Handles are cheap to clone, and all clones share the same subscriptions.
///
/// A notification says that something has changed, not how often. So while a notification about a
/// list or a resource is unsent, another one about the same is merged with it. Publishing therefore
/// never waits for a slow client, the memory of each subscriber is bounded by its filter, and no
/// change is lost.
///
/// # Cost
///
/// The cost of accepting and removing a subscriber does not depend on how many there are. The cost
/// of publishing depends only on the subscribers of that list or resource, and the part of a
/// notification that they share is encoded once. An idle subscription holds about 600 bytes beside
/// its connection.
#[derive(Clone)]
pub struct Subscriptions {
    pub(super) hub: Arc<Hub>,
}

pub(super) struct Hub {
    pub(super) options: Options,
    /// The shared parts of the list notifications, which never change.
    pub(super) lists: [Piece; KINDS],
    pub(super) registry: Mutex<Registry>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self::new()
    }
}

impl Subscriptions {
    /// An empty set of subscriptions, with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A builder, to set options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// How many subscriptions are open on this node.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.hub.registry).len()
    }

    /// Whether no subscription is open on this node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends every subscription with its completion result. New ones are still accepted.
    ///
    /// What was still unsent is sent first.
    pub fn close_all(&self) {
        self.close_where(false);
    }

    /// Ends every subscription, and refuses new ones from now on. This is for a graceful shutdown,
    /// during which the server waits for open streams.
    pub fn shut_down(&self) {
        self.close_where(true);
    }

    fn close_where(&self, closing: bool) {
        let streams: Vec<_> = {
            let mut registry = lock(&self.hub.registry);
            registry.closing |= closing;
            registry.streams().map(Arc::clone).collect()
        };
        let refusal = if closing {
            shutting_down()
        } else {
            RpcError::internal("all subscriptions were ended before this one began: listen again")
        };
        for stream in streams {
            stream.close_subscription(&refusal);
        }
    }
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions")
            .field("open", &self.len())
            .field("options", &self.hub.options)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Makes the subscriptions, of which none is open yet.
    #[must_use]
    pub fn build(self) -> Subscriptions {
        Subscriptions {
            hub: Arc::new(Hub {
                options: self.options,
                lists: Change::LISTS.map(|change| change.shared()),
                registry: Mutex::new(Registry::default()),
            }),
        }
    }
}
