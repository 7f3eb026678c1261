//! axum: extractors and responses.
//!
//! [`Channel`] and [`Message`] are extractors that leave the body alone, so they go before one that
//! takes it. When the compiler says that `Handler` is not implemented for a function with them,
//! this feature is off, or an extractor of the body is not the last one. [`Reply`], [`Deferred`]
//! and [`RpcError`] are responses.
//!
//! ```
//! use axum::extract::State;
//! use axum::{Router, routing::post};
//! use mcp_channel::{Channel, McpChannelLayer, Message, Reply, RpcError};
//!
//! async fn handler(
//!     State(greeting): State<&'static str>,
//!     channel: Channel,
//!     message: Message,
//! ) -> Result<Reply, RpcError> {
//!     match message.method() {
//!         "tools/call" => Ok(Reply::result(serde_json::json!({"content": [], "_meta": {"greeting": greeting}}))),
//!         method => Err(RpcError::method_not_found(method)),
//!     }
//! }
//!
//! let app: Router = Router::new()
//!     .route("/mcp", post(handler).layer(McpChannelLayer::new()))
//!     .with_state("hello");
//! ```

use std::fmt;

use axum_core::body::Body;
use axum_core::extract::FromRequestParts;
use axum_core::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use super::reply::{Deferred, NO_LAYER, Reply, Verdict};
use crate::channel::Channel;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::message::Message;

/// Why a [`Channel`] or a [`Message`] could not be extracted: the request did not pass a
/// [`McpChannelLayer`](crate::McpChannelLayer).
///
/// As a response it is a 500 whose text says what to add.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MissingLayer {
    what: &'static str,
}

impl fmt::Display for MissingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no {} in the request: add mcp_channel::McpChannelLayer to this route, as in \
             `post(handler).layer(McpChannelLayer::new())`",
            self.what
        )
    }
}

impl std::error::Error for MissingLayer {}

impl IntoResponse for MissingLayer {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}

impl<S: Sync> FromRequestParts<S> for Channel {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        let channel = parts.extensions.get().cloned();
        channel.ok_or(MissingLayer { what: "Channel" })
    }
}

impl<S: Sync> FromRequestParts<S> for Message {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        let message = parts.extensions.get().cloned();
        message.ok_or(MissingLayer { what: "Message" })
    }
}

macro_rules! into_response {
    ($($reply:ty)*) => {$(
        impl IntoResponse for $reply {
            fn into_response(self) -> Response {
                Verdict::from(self).into_response(Body::from(NO_LAYER))
            }
        }
    )*};
}

into_response!(Reply Deferred RpcError);
