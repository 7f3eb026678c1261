//! What a handler is given, and what it may return instead of a response of its own.
//!
//! This room imports from the protocol and the channel.

#[cfg(feature = "axum")]
pub mod extract;
pub(crate) mod reply;
pub(crate) mod request_body;
#[cfg(feature = "task")]
pub(crate) mod task;
