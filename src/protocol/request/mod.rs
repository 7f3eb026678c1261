//! What a client sent: an HTTP head and a body in; a [`Message`](message::Message) or a rejection
//! out.
//!
//! [`admission`] judges the head, [`check`] the body; both name the rules that they go through in
//! order. Imports from every other room of the protocol.

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
