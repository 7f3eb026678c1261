//! The protocol itself: bytes in, values or bytes out.
#![allow(dead_code, unused_imports)]

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
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod origin;
mod quote;
pub(crate) mod raw;
pub(crate) mod rejection;
pub(crate) mod rpc_error;
