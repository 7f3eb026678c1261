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

mod accept;
mod change;
mod filter;
mod hub;
mod matching;
mod options;
mod publish;
mod registry;

pub use change::Change;
pub use filter::SubscriptionFilter;
pub use hub::Subscriptions;
pub use matching::ResourceMatch;
pub use options::{Builder, Relay};
