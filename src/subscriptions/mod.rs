//! `subscriptions/listen`: notifies clients of changes.
//!
//! The client sends one request, and its response is a stream that stays open. [`Subscriptions`]
//! holds these streams: accept the request, publish changes, and end the streams at shutdown.
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
//! A client is notified only of the kinds of change that it asked for and that the server honours.
//! The [`Builder`] says which those are for all clients, and [`Subscriptions::accept_with`] for
//! one. By default all four kinds are honoured, and the acknowledgement promises each client those
//! that it asked for. A server that publishes fewer has to say so. Here, only the list of tools
//! ever changes:
//!
//! ```
//! use mcp_channel::subscriptions::Subscriptions;
//!
//! let subscriptions =
//!     Subscriptions::builder().prompts(false).resources(false).resource_subscriptions(false).build();
//! ```
//!
//! Declare what is honoured in the result of `server/discover`: `listChanged` of `tools`, `prompts`
//! and `resources`, and `subscribe` of `resources`.
//!
//! Publishing never waits, and a client that does not read costs no more memory than its filter:
//! see [`Subscriptions`].
//!
//! # Shutdown
//!
//! During a graceful shutdown a server waits for its open responses, and a subscription does not
//! end by itself. So end the subscriptions first, in one of two ways:
//!
//! - [`Subscriptions::shut_down`] ends those that were accepted here. It needs no option of the
//!   layer.
//! - A [`Shutdown`](crate::Shutdown) on the layer ends every listen stream that goes through the
//!   layer, whoever accepted it. Use it when there are several `Subscriptions`, or when a handler
//!   writes such streams by itself.
//!
//! Either way clients get their completion result, and new subscriptions are refused.
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
//! A client is connected to one node, and a change may happen on another. A [`Relay`] carries it to
//! the other nodes: give one to the [builder](Builder::relay), and publish as before. The module
//! [`relay`](crate::relay) has one for Redis, and says how to write another. When a relay may have
//! missed something, its node notifies every subscriber of everything that it subscribed to. So
//! clients may read a list again for nothing, but they never keep a stale one.
//!
//! Only the node that a client is connected to knows what the client listens to. When that node
//! goes away, the client has to listen again on another one. It cannot know what it missed
//! meanwhile, so it should read again what it depends on.
//!
//! # Behind a load balancer
//!
//! - Sticky sessions are not needed: a listen request is complete in itself.
//! - The balancer's time-out for idle connections must be longer than the layer's
//!   [`keep_alive`](crate::McpChannelLayer::keep_alive), 15 seconds by default.
//! - The balancer must not buffer responses. The stream says so itself, with
//!   `x-accel-buffering: no` and `cache-control: no-transform`.
//! - It should balance by open streams rather than by requests: on HTTP/1.1 each stream is a
//!   connection. A [limit](Builder::limit) keeps one node from taking all of them. With
//!   [`busy`](Builder::busy) a subscription over the limit is answered 503, which balancers take as
//!   a hint to try another node.
//! - During a rolling restart, take a node out of rotation before it ends its subscriptions, so
//!   that clients that listen again find another one.

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
