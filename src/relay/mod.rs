//! Relays: they carry changes to the other nodes of a server.
//!
//! Clients are connected to any of the nodes, so a change on one must reach all. A relay carries it
//! there over an engine that you run anyway. `RedisRelay` does so over Redis, with the feature
//! `redis`:
//!
//! ```
//! # #[cfg(feature = "redis")]
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_channel::relay::RedisRelay;
//! use mcp_channel::subscriptions::Subscriptions;
//!
//! let relay = RedisRelay::new("redis://127.0.0.1/")?;
//! let subscriptions = Subscriptions::builder().relay(relay.outbox()).build();
//! tokio::spawn(relay.run(subscriptions.clone()));
//! # Ok(())
//! # }
//! ```
//!
//! # Another engine
//!
//! An [`Outbox`] does everything that does not depend on the engine: it keeps changes until they
//! are sent, merges equal ones, skips what comes back to its own node, and notifies too often
//! rather than too rarely. What is left to you is to send its [batches](Outbox::next), to hand it
//! [what arrives](Outbox::receive), and to call [`Subscriptions::deliver_all`] whenever the
//! engine's subscription was made again, since something may have been missed:
//!
//! ```
//! use mcp_channel::relay::Outbox;
//! use mcp_channel::subscriptions::Subscriptions;
//! # use std::io::Result;
//! # struct Bus;
//! # impl Bus {
//! #     async fn connect(_: &str) -> Result<Self> { Ok(Self) }
//! #     async fn publish(&self, _: &str) -> Result<()> { Ok(()) }
//! #     async fn next(&self) -> Result<String> { Ok(String::new()) }
//! # }
//!
//! /// One connection, until it is lost. `Bus` stands for a client of NATS, or for the `LISTEN` and
//! /// `NOTIFY` of Postgres.
//! async fn session(outbox: &Outbox, subscriptions: &Subscriptions) -> Result<()> {
//!     // Subscribed first: what is told from here on is heard.
//!     let bus = Bus::connect("mcp-changes").await?;
//!     subscriptions.deliver_all();
//!     let send = async {
//!         loop {
//!             let batch = outbox.next().await;
//!             // On an error the batch is dropped, and its changes go back into the outbox.
//!             bus.publish(batch.as_str()).await?;
//!             batch.sent();
//!         }
//!     };
//!     let receive = async {
//!         loop {
//!             outbox.receive(bus.next().await?.as_bytes(), subscriptions);
//!         }
//!     };
//!     tokio::select! {
//!         lost = send => lost,
//!         lost = receive => lost,
//!     }
//! }
//! ```
//!
//! Call `session` in a loop that waits a moment and connects again.

#[cfg(feature = "redis")]
mod backoff;
mod outbox;
#[cfg(feature = "redis")]
mod redis;

pub use outbox::{Batch, Outbox};
#[cfg(feature = "redis")]
pub use redis::{RedisRelay, RelayError};

#[allow(unused_imports, reason = "for the links above")]
use crate::subscriptions::Subscriptions;
