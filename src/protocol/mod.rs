//! The protocol itself: bytes in, values or bytes out.
#![allow(dead_code)]

pub mod codes;
pub(crate) mod encode;
pub(crate) mod host;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod level;
pub(crate) mod members;
pub(crate) mod notification;
pub(crate) mod notifications;
pub(crate) mod origin;
pub(crate) mod progress;
pub(crate) mod raw;
pub(crate) mod response;
pub(crate) mod result;
pub(crate) mod rpc_error;
pub(crate) mod server_info;
pub(crate) mod sse;
// stubs
pub(crate) mod check;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod rejection;
