//! What a client sent: an HTTP head and a body in; a [`Message`](message::Message) or a rejection
//! out.
//!
//! Imports from every other room of the protocol.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod check;
pub(crate) mod envelope;
pub(crate) mod headers;
pub(crate) mod host;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod origin;
