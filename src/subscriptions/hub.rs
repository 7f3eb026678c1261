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
/// Handles are cheap to clone, and all of them speak of the same subscriptions.
///
/// Notifications of change are levels, not edges: a client that has not been given the last
/// "the list of tools changed" needs no second one. While a subscriber has one of a list, or of a
/// resource, unsent, another of the same is merged with it. So publishing never waits for a slow
/// client, the memory of each subscriber is bounded by its filter, and no change goes untold.
///
/// # Cost
///
/// Accepting and leaving cost the same however many subscribers there are. Publishing costs what
/// the subscribers of that very list or resource cost. What all of them are told is encoded once.
/// An open subscription that waits holds some 600 bytes beside its connection.
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
    /// No subscriptions yet, with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// To set options.
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

    /// Ends every subscription with its completion result. New ones are taken as before.
    ///
    /// What was still unsent goes out first.
    pub fn close_all(&self) {
        self.close_where(false);
    }

    /// Ends every subscription, and refuses new ones from now on: for a server's shutdown, whose
    /// graceful end waits for open streams.
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
    /// The subscriptions, none yet.
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
