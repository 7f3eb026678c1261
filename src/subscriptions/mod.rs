//! `subscriptions/listen`: clients that hear of changes.
//!
//! The client sends one request, and its response is a stream that stays open. [`Subscriptions`]
//! holds all of them: accept the request, publish changes, end them at shutdown.
//!
//! # One node
//!
//! ```
//! use mcp_channel::subscriptions::Subscriptions;
//! use mcp_channel::{Channel, Deferred, Message, RpcError};
//!
//! // What handles `subscriptions/listen`.
//! async fn listen(
//!     subscriptions: Subscriptions,
//!     channel: Channel,
//!     message: Message,
//! ) -> Result<Deferred, RpcError> {
//!     subscriptions.accept(channel, &message)
//! }
//!
//! // Wherever something changes, from any thread.
//! fn saved(subscriptions: &Subscriptions, uri: &str) {
//!     subscriptions.resource_updated(uri);
//! }
//! ```
//!
//! A client is told only of the kinds that it asked for and that the server honours, which the
//! [`Builder`] says for all and [`Subscriptions::accept_with`] for one. By default that is all four,
//! and the acknowledgement promises each client what it asked for of them. A server that publishes
//! less says so, one whose list of tools is all that ever changes for instance:
//!
//! ```
//! use mcp_channel::subscriptions::Subscriptions;
//!
//! let subscriptions =
//!     Subscriptions::builder().prompts(false).resources(false).resource_subscriptions(false).build();
//! ```
//!
//! Declare in the result of `server/discover` what is honoured: `listChanged` of `tools`, `prompts`
//! and `resources`, and `subscribe` of `resources`.
//!
//! Publishing never waits, and a client that does not read costs no more than its filter: see
//! [`Subscriptions`].
//!
//! # Shutdown
//!
//! A server that ends gracefully waits for its open responses, and a subscription has no end of its
//! own. So end them first, in one of two ways:
//!
//! - [`Subscriptions::shut_down`] ends those that were accepted here. It is at hand where the
//!   subscriptions are, and needs nothing on the layer.
//! - A [`Shutdown`](crate::Shutdown) on the layer ends every listen stream that passes it, whoever
//!   accepted it: take it where there are several `Subscriptions`, or a handler that writes such
//!   streams by itself.
//!
//! Either way clients get their completion result, and those that listen anew are refused.
//!
//! ```no_run
//! # #[cfg(feature = "axum")]
//! # async fn serve(app: axum::Router, subscriptions: mcp_channel::subscriptions::Subscriptions)
//! # -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app)
//!     .with_graceful_shutdown(async move {
//!         // An error means that there is no such signal to wait for.
//!         let _ = tokio::signal::ctrl_c().await;
//!         subscriptions.shut_down();
//!     })
//!     .await
//! # }
//! ```
//!
//! # Many nodes
//!
//! A client's stream ends on one replica, and a change may happen on another. A [`Relay`] tells the
//! others: give one to the [builder](Builder::relay), and publish as before. The module
//! [`relay`](crate::relay) has one for Redis, and what it takes to write another. Whenever a relay
//! may have missed something, its node tells every subscriber each thing that it subscribed to:
//! clients may read a list again for nothing, but are never left with a stale one.
//!
//! What clients listen to is kept where their stream ends, and nowhere else. A client whose node goes
//! away listens again, on another; since it cannot know what it missed meanwhile, it reads what it
//! depends on anew.
//!
//! # Behind a load balancer
//!
//! - No stickiness is needed: a listen request is whole in itself.
//! - Its time-out for idle connections must be longer than the layer's
//!   [`keep_alive`](crate::McpChannelLayer::keep_alive), 15 seconds by default.
//! - It must not buffer responses. The stream says so itself, with `x-accel-buffering: no` and
//!   `cache-control: no-transform`.
//! - Count open streams rather than requests when it balances: on HTTP/1.1 each of them is a
//!   connection. A [limit](Builder::limit) keeps one node from taking all; with
//!   [`busy`](Builder::busy) what is over it is answered 503, which balancers take as a hint to try
//!   another node.
//! - During a rolling restart take a node out of rotation before it ends its subscriptions, so that
//!   clients that listen again find another one.

mod change;
mod deliver;
mod filter;
mod matching;
mod options;
mod registry;

use std::fmt;

pub use change::Change;
pub use filter::SubscriptionFilter;
pub use matching::ResourceMatch;
pub use options::{Builder, Relay};

use crate::channel::sync::{Arc, Mutex, lock};
use crate::channel::{Channel, Handle, Piece, Slots};
use crate::handler::reply::Deferred;
use crate::protocol::notification::types::SubscriptionsAcknowledged;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::message::Message;
use crate::shutdown::shutting_down;
use change::KINDS;
use options::Options;
use registry::{Id, Registry};

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
    hub: Arc<Hub>,
}

pub(crate) struct Hub {
    options: Options,
    /// The shared parts of the list notifications, which never change.
    lists: [Piece; KINDS],
    registry: Mutex<Registry>,
}

/// Forgets a subscriber when its channel ends.
struct Registration {
    hub: Arc<Hub>,
    id: Id,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let handle = lock(&self.hub.registry).remove(self.id);
        drop(handle);
    }
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

    fn with_options(options: Options) -> Self {
        Self {
            hub: Arc::new(Hub {
                options,
                lists: Change::LISTS.map(|change| change.shared()),
                registry: Mutex::new(Registry::default()),
            }),
        }
    }

    /// Accepts a `subscriptions/listen` request: acknowledges what is honoured of it, and tells its
    /// client from now on. Return what this returns.
    ///
    /// The acknowledgement is the first message, and nothing that is published after this call is
    /// missed. The subscription ends when the client goes away, with
    /// [`Channel::close`] on a clone of its channel, or with [`close_all`](Self::close_all).
    ///
    /// # Errors
    ///
    /// Before any stream: -32602 for a malformed filter, -32603 when the server is shutting down or
    /// the limit of open subscriptions is reached, and when the channel is not that of a
    /// `subscriptions/listen` request, was accepted before, or has ended.
    pub fn accept(&self, channel: Channel, message: &Message) -> Result<Deferred, RpcError> {
        self.accept_with(channel, message, |_| ())
    }

    /// As [`accept`](Self::accept), with a last word on what is honoured: `reduce` may take kinds
    /// and resources out of the filter, those that this caller may not see, say.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn accept_with(
        &self,
        channel: Channel,
        message: &Message,
        reduce: impl FnOnce(&mut SubscriptionFilter),
    ) -> Result<Deferred, RpcError> {
        if message.is_notification() {
            return Err(RpcError::invalid_request(
                "`subscriptions/listen` is a request: give it an `id`",
            ));
        }
        let mut filter = SubscriptionFilter::from_message(message)?;
        let options = &self.hub.options;
        options.honoured.reduce(&mut filter);
        if filter.uris().len() > options.resource_limit {
            return Err(RpcError::invalid_params(format!(
                "`params.notifications.resourceSubscriptions` names {} resources: at most {} may be",
                filter.uris().len(),
                options.resource_limit
            )));
        }
        reduce(&mut filter);

        // Keyed frames wait for the acknowledgement, so listening may begin before it is sent:
        // nothing is missed, and nothing comes before it.
        let stream = channel.shared();
        let slots = channel.request_id().map(|id| Slots::new(change::own(id)));
        let handle = channel
            .handle()
            .filter(|_| slots.is_some_and(|slots| stream.take_keyed(slots)));
        let Some(handle) = handle else {
            return Err(RpcError::internal(
                "only the open channel of a subscriptions/listen request is accepted, and only once",
            ));
        };
        let registration = self.register(handle, &filter).inspect_err(|_| {
            stream.refuse_keyed();
        })?;
        stream.on_end(Box::new(registration));
        let acknowledgement = SubscriptionsAcknowledged {
            notifications: &filter,
        };
        match channel.try_send_notification(acknowledgement) {
            // It may have ended meanwhile; then nobody sees what is returned.
            Ok(()) => Ok(Deferred),
            Err(error) if error.is_closed() => Ok(Deferred),
            Err(error) => Err(RpcError::internal(error.to_string())),
        }
    }

    fn register(
        &self,
        handle: Handle,
        filter: &SubscriptionFilter,
    ) -> Result<Registration, RpcError> {
        let mut registry = lock(&self.hub.registry);
        if registry.closing {
            return Err(shutting_down());
        }
        if registry.len() >= self.hub.options.limit {
            return Err(self.hub.options.too_many());
        }
        let id = registry.insert(handle, filter);
        let hub = Arc::clone(&self.hub);
        Ok(Registration { hub, id })
    }

    /// Tells that the list of tools changed. Returns how many subscribers that concerns on this
    /// node.
    pub fn tools_list_changed(&self) -> usize {
        self.publish(&Change::Tools)
    }

    /// Tells that the list of prompts changed. Returns how many subscribers that concerns on this
    /// node.
    pub fn prompts_list_changed(&self) -> usize {
        self.publish(&Change::Prompts)
    }

    /// Tells that the list of resources changed. Returns how many subscribers that concerns on this
    /// node.
    pub fn resources_list_changed(&self) -> usize {
        self.publish(&Change::Resources)
    }

    /// Tells that a resource changed. Returns how many subscribers that concerns on this node.
    ///
    /// Which subscriptions it concerns is for the [matching](Builder::resource_match) to say; by
    /// default those of this very URI.
    pub fn resource_updated(&self, uri: impl Into<String>) -> usize {
        self.publish(&Change::Resource(uri.into()))
    }

    /// Tells the subscribers of this node, and through the [relay](Builder::relay), if there is
    /// one, those of the others.
    pub fn publish(&self, change: &Change) -> usize {
        let told = self.deliver(change);
        if let Some(relay) = &self.hub.options.relay {
            relay.publish(change);
        }
        told
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
