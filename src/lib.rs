//! A Tower layer that turns any HTTP service into a Model Context Protocol endpoint.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod channel;
mod collect;
mod config;
mod driver;
mod error;
#[cfg(feature = "axum")]
pub mod extract;
mod future;
mod head;
mod keep_alive;
mod last_event;
mod layer;
#[cfg(all(test, mcp_loom))]
mod model;
mod protocol;

pub use protocol::check::PROTOCOL_VERSION;
pub use protocol::codes;
pub use protocol::host::{AllowedHosts, Host, InvalidHost};
pub use protocol::id::{ProgressToken, RequestId};
pub use protocol::level::{LogLevel, UnknownLogLevel};
pub use protocol::message::Message;
pub use protocol::meta::RequestMeta;
pub use protocol::origin::{AllowedOrigins, InvalidOrigin, Origin};
pub use protocol::raw::RawJson;
pub use protocol::rpc_error::RpcError;
