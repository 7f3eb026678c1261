//! Replies: makes the bytes of a response from results, errors and rejections.
//!
//! This room imports from [`json`](super::json) and [`id`](super::id).

pub mod codes;
pub(crate) mod handmade;
pub(crate) mod legacy;
pub(crate) mod members;
pub(crate) mod rejection;
pub(crate) mod result;
pub(crate) mod rpc_error;
pub(crate) mod server_info;
pub(crate) mod sse;
