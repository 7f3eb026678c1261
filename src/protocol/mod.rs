//! The protocol itself: bytes in, values or bytes out.

pub(crate) mod accept;
pub(crate) mod check;
pub mod codes;
pub(crate) mod encode;
pub(crate) mod envelope;
pub(crate) mod head;
pub(crate) mod headers;
pub(crate) mod host;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod level;
pub(crate) mod members;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod notification;
pub(crate) mod notifications;
pub(crate) mod origin;
pub(crate) mod progress;
mod quote;
pub(crate) mod raw;
pub(crate) mod rejection;
pub(crate) mod response;
pub(crate) mod result;
pub(crate) mod rpc_error;
pub(crate) mod scratch;
pub(crate) mod server_info;
pub(crate) mod sse;
