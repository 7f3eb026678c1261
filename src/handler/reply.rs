//! [`Reply`] and [`Deferred`]: what a handler may return in place of a response.

use std::fmt;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::protocol::json::raw::RawJson;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::reply::sse;

/// The final reply of a request, as a value to return.
///
/// It has the effect of [`Channel::send_result`](crate::Channel::send_result) or
/// [`Channel::send_error`](crate::Channel::send_error), and like these does nothing when a reply
/// was sent before. It converts into an [`http::Response`] with any body. The reply travels in an
/// extension of that response, and the layer makes the real one. Headers that are set on it are
/// kept, unless the real response is a stream. Without a layer, the client gets a 500 that says so
/// in its `mcp-channel-error` header (with axum, in its body).
///
/// ```
/// use mcp_channel::{Message, Reply, RpcError};
///
/// async fn handler(message: Message) -> Result<Reply, RpcError> {
///     match message.method() {
///         "tools/call" => Ok(Reply::result(serde_json::json!({"content": []}))),
///         other => Err(RpcError::method_not_found(other)),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a reply is sent by returning it"]
pub struct Reply(Verdict);

impl Reply {
    /// A result: anything that serializes to a JSON object.
    ///
    /// It is encoded at once. One that is no object or does not serialize becomes an internal
    /// error (-32603) for the client, and is traced.
    pub fn result(result: impl Serialize) -> Self {
        let mut json = Scratch::take();
        Self(match sse::encode(&mut json.0, &result) {
            Ok(()) => Verdict::Result(json.into_bytes()),
            Err(error) => {
                crate::trace::error!(%error, "a result does not serialize");
                Verdict::Error(RpcError::failure("the result does not serialize"))
            }
        })
    }

    /// An error.
    pub fn error(error: impl Into<RpcError>) -> Self {
        Self(Verdict::Error(error.into()))
    }

    /// The result, if it is one: as it was given, before the layer adds what it lacks.
    ///
    /// For tests of handlers.
    #[must_use]
    pub fn as_result(&self) -> Option<RawJson<'_>> {
        match &self.0 {
            Verdict::Result(json) => std::str::from_utf8(json).ok().map(RawJson::new),
            _ => None,
        }
    }

    /// The error, if it is one.
    #[must_use]
    pub fn as_error(&self) -> Option<&RpcError> {
        match &self.0 {
            Verdict::Error(error) => Some(error),
            _ => None,
        }
    }
}

/// For a handler that answers some requests later: `Ok(subscriptions.accept(..)?.into())`.
impl From<Deferred> for Reply {
    fn from(_: Deferred) -> Self {
        Self(Verdict::Deferred)
    }
}

impl From<RpcError> for Reply {
    fn from(error: RpcError) -> Self {
        Self::error(error)
    }
}

/// Says that the reply comes later, from a task that keeps the [`Channel`](crate::Channel).
///
/// The response then waits for the channel: for a final reply, for its close, or for the drop of
/// its last handle, which is an internal error. Converts into a response as [`Reply`] does.
///
/// ```
/// use mcp_channel::{Channel, Deferred};
///
/// async fn handler(channel: Channel) -> Deferred {
///     tokio::spawn(async move {
///         let result = serde_json::json!({"content": []});
///         // An error means that the client is gone.
///         let _ = channel.send_result(result);
///     });
///     Deferred
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "it takes effect when it is returned"]
pub struct Deferred;

/// How a handler's response carries its reply to the layer.
#[derive(Clone)]
pub(crate) enum Verdict {
    /// The JSON of a result.
    Result(Bytes),
    Error(RpcError),
    Deferred,
}

impl Verdict {
    /// The response that carries it. Its status is what a client sees where no layer is.
    pub(crate) fn into_response<B>(self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(json) => f.debug_tuple("Result").field(json).finish(),
            Self::Error(error) => f.debug_tuple("Error").field(error).finish(),
            Self::Deferred => f.write_str("Deferred"),
        }
    }
}

impl From<Reply> for Verdict {
    fn from(reply: Reply) -> Self {
        reply.0
    }
}

impl From<Deferred> for Verdict {
    fn from(_: Deferred) -> Self {
        Self::Deferred
    }
}

impl From<RpcError> for Verdict {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

/// What a response says when no layer has replaced it by the real one.
pub(crate) const NO_LAYER: &str =
    "no McpChannelLayer saw this response: add the layer around the handler that returns it";

/// Carries [`NO_LAYER`] where the body cannot.
pub(crate) const NO_LAYER_HEADER: HeaderName = HeaderName::from_static("mcp-channel-error");

macro_rules! into_response {
    ($($reply:ty)*) => {$(
        impl<B: Default> From<$reply> for Response<B> {
            fn from(reply: $reply) -> Self {
                let mut response = Verdict::from(reply).into_response(B::default());
                let missing = HeaderValue::from_static(NO_LAYER);
                response.headers_mut().insert(NO_LAYER_HEADER, missing);
                response
            }
        }
    )*};
}

into_response!(Reply Deferred RpcError);
