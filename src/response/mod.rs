//! The response: makes an HTTP head and a body from a handler and its channel.
//!
//! This room imports from the protocol, the state machine, the channel and the handler's types.

pub(crate) mod body;
pub(crate) mod driver;
pub(crate) mod future;
pub(crate) mod head;
pub(crate) mod last_event;
pub(crate) mod streaming;
pub(crate) mod timers;
pub(crate) mod translated;
pub(crate) mod undecided;
