//! The response: a handler and its channel in; an HTTP head and a body out.
//!
//! Imports from the protocol, the state machine, the channel and the handler's types.

pub(crate) mod body;
pub(crate) mod driver;
pub(crate) mod future;
pub(crate) mod head;
pub(crate) mod last_event;
pub(crate) mod streaming;
pub(crate) mod timers;
pub(crate) mod translated;
pub(crate) mod undecided;
