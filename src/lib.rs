// Where the README's links lead in these pages: rustdoc uses the first of two definitions. A reader
// of a checkout gets the README's own, which lead to files.
//! [`McpChannelLayer`]: crate::McpChannelLayer
//! [answering]: crate::guide::answering
//! [blocking]: crate::guide::blocking
//! [back-pressure]: crate::guide::back_pressure
//! [disconnects]: crate::guide::disconnects
//! [proxy]: crate::guide::proxy
//! [deployment]: crate::guide::deployment
//! [auth]: crate::guide::deployment#authentication
//! [subscriptions]: crate::guide::subscriptions
//! [without-axum]: crate::guide::without_axum
//! [testing]: crate::guide::testing
//! [protocol]: crate::guide::protocol
//! [eras]: crate::guide::eras
//! [ex-everything]: https://docs.rs/crate/mcp-channel/latest/source/examples/everything/
//! [ex-hyper]: https://docs.rs/crate/mcp-channel/latest/source/examples/hyper.rs
//! [ex-cluster]: https://docs.rs/crate/mcp-channel/latest/source/examples/cluster/
//! [benches]: https://docs.rs/crate/mcp-channel/latest/source/benches/README.md
//! [mit]: https://docs.rs/crate/mcp-channel/latest/source/LICENSE-MIT
//! [apache]: https://docs.rs/crate/mcp-channel/latest/source/LICENSE-APACHE
//!
// The code in it needs the feature `axum`.
#![cfg_attr(any(feature = "axum", not(doctest)), doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod channel;
mod collect;
mod config;
mod error;
// The guides' code needs the feature `axum`, too.
#[cfg(all(doc, any(feature = "axum", not(doctest))))]
pub mod guide;
mod handler;
mod layer;
#[cfg(all(test, mcp_loom))]
mod model;
mod protocol;
pub mod relay;
mod response;
mod service;
mod shutdown;
mod state;
pub mod subscriptions;
mod trace;

pub use channel::{Channel, Closed, Flush, Outlet, Sending, Status};
pub use error::{BoxError, CloseReason, SendError};
#[cfg(feature = "axum")]
pub use handler::extract;
pub use handler::reply::{Deferred, Reply};
pub use handler::request_body::RequestBody;
#[cfg(feature = "task")]
pub use handler::task::{TaskFuture, TaskLayer, TaskService};
pub use layer::McpChannelLayer;
pub use protocol::era::{Era, PROTOCOL_VERSION};
pub use protocol::id::{ProgressToken, RequestId};
pub use protocol::json::raw::RawJson;
pub use protocol::notification::level::{LogLevel, UnknownLogLevel};
pub use protocol::notification::progress::{Progress, ProgressNumber};
pub use protocol::reply::codes;
pub use protocol::reply::rpc_error::RpcError;
pub use protocol::reply::server_info::ServerInfo;
pub use protocol::request::host::{AllowedHosts, Host, InvalidHost};
pub use protocol::request::message::Message;
pub use protocol::request::meta::RequestMeta;
pub use protocol::request::origin::{AllowedOrigins, InvalidOrigin, Origin};
pub use response::body::ResponseBody;
pub use response::future::ResponseFuture;
pub use service::McpChannelService;
pub use shutdown::Shutdown;

/// Notifications as types, and what the protocol requires of them.
///
/// Each type serializes to the whole notification, for
/// [`Channel::send_notification`](crate::Channel::send_notification):
///
/// ```
/// use mcp_channel::Channel;
/// use mcp_channel::notification::ResourceUpdated;
///
/// # async fn handler(channel: Channel) -> Result<(), mcp_channel::SendError> {
/// channel.send_notification(ResourceUpdated { uri: "file:///menu.txt" }).await
/// # }
/// ```
///
/// For streams of changes that many clients listen to, see [`subscriptions`](mod@crate::subscriptions).
pub mod notification {
    pub use crate::protocol::notification::shape::{Notification, requires_subscription_id};
    pub use crate::protocol::notification::types::{
        Cancelled, PromptListChanged, ResourceListChanged, ResourceUpdated,
        SubscriptionsAcknowledged, ToolListChanged,
    };
}
