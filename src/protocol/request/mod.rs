//! What a client sent: makes a [`Message`](message::Message) or a rejection from an HTTP head and a
//! body.
//!
//! [`admission`] checks the head, and [`check`] the body; both name the rules in the order in which
//! they go through them. This room imports from every other room of the protocol.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod arrival;
pub(crate) mod check;
mod deserialize;
pub(crate) mod envelope;
pub(crate) mod host;
pub(crate) mod legacy;
pub(crate) mod message;
pub(crate) mod meta;
mod mirrored_headers;
pub(crate) mod origin;
mod parse;
mod posted;
mod required_metadata;
mod shape;
