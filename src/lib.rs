//! A Tower layer that turns any HTTP service into a Model Context Protocol endpoint.
#![forbid(unsafe_code)]

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
