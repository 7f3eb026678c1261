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
mod protocol;
mod reply;
mod request_body;
mod running;
mod service;
mod state;
mod stream;
mod trace;

pub use body::ResponseBody;
pub use channel::{Channel, Closed, Flush, Outlet, Sending, Status};
pub use error::{BoxError, CloseReason, SendError};
pub use future::ResponseFuture;
pub use layer::McpChannelLayer;
pub use protocol::progress::{Progress, ProgressNumber};
pub use protocol::server_info::ServerInfo;
pub use protocol::{
    codes,
    host::AllowedHosts,
    id::{ProgressToken, RequestId},
    level::LogLevel,
    message::Message,
    meta::RequestMeta,
    origin::{AllowedOrigins, Origin},
    raw::RawJson,
    rpc_error::RpcError,
};
pub use reply::{Deferred, Reply};
pub use request_body::RequestBody;
pub use service::McpChannelService;

/// Notifications: as types, and what the protocol asks of them.
pub mod notification {
    pub use crate::protocol::notification::{Notification, requires_subscription_id};
    pub use crate::protocol::notifications::{
        Cancelled, PromptListChanged, ResourceListChanged, ResourceUpdated,
        SubscriptionsAcknowledged, ToolListChanged,
    };
}

/// How many bytes may wait unsent in each stream, unless the layer is told otherwise.
const DEFAULT_BUFFER_LIMIT: usize = 4 * 1024;
