//! [`Message`]: a request or notification that has passed the checks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use super::meta::RequestMeta;
use crate::protocol::era::{Era, LISTEN};
use crate::protocol::id::RequestId;
use crate::protocol::json::raw::RawJson;
use crate::protocol::json::{Kind, Span, Text, Value};
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::rpc_error::RpcError;

/// The JSON-RPC request or notification in the body of an HTTP request, validated.
///
/// The layer puts it into the request's extensions. Cloning is cheap; while a clone lives, so does the
/// request's body.
///
/// ```
/// # fn handle(message: mcp_channel::Message) -> Result<(), mcp_channel::RpcError> {
/// #[derive(serde::Deserialize)]
/// struct Arguments {
///     city: String,
/// }
/// #[derive(serde::Deserialize)]
/// struct CallTool {
///     arguments: Arguments,
/// }
///
/// let call: CallTool = message.params()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Message {
    body: Bytes,
    parts: Parts,
    id: Option<RequestId>,
    meta: RequestMeta,
}

/// Where the parts of a message lie in its body.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) method: Method,
    pub(super) params: Option<Span>,
    pub(super) name: Option<Text>,
    pub(super) arguments: Option<Value>,
}

#[derive(Clone)]
pub(super) enum Method {
    /// Between the quotes, where nothing is escaped.
    Plain(Span),
    Decoded(Arc<str>),
}

impl Message {
    /// `body` must be the UTF-8 text that the parts were found in.
    pub(super) fn new(body: Bytes, parts: Parts, id: Option<RequestId>, meta: RequestMeta) -> Self {
        Self {
            body,
            parts,
            id,
            meta,
        }
    }

    pub(super) fn default_log_level(&mut self, level: Option<LogLevel>) {
        self.meta.default_log_level(level);
    }

    /// The method, for what is only compared.
    fn method_bytes(&self) -> &[u8] {
        match &self.parts.method {
            Method::Plain(span) => span.bytes_of(&self.body),
            Method::Decoded(method) => method.as_bytes(),
        }
    }

    fn text(&self, span: Span) -> &str {
        std::str::from_utf8(span.bytes_of(&self.body)).unwrap_or_default()
    }

    /// The request's id; `None` for a notification.
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// The method, `tools/call` for instance.
    pub fn method(&self) -> &str {
        std::str::from_utf8(self.method_bytes()).unwrap_or_default()
    }

    /// Whether this is a notification, which gets no reply.
    pub fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    /// Whether this is a request for a stream of change notifications.
    pub(crate) fn is_subscription(&self) -> bool {
        !self.is_notification()
            && self.method_bytes() == LISTEN.as_bytes()
            && self.meta.era() == Era::Modern
    }

    /// What the request is about, which the `Mcp-Name` header says as well: `params.name` of
    /// `tools/call` and `prompts/get`, `params.uri` of `resources/read`; `None` for every other
    /// method.
    ///
    /// Borrowed unless it was written with escapes.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        let name = self.parts.name?;
        name.decode_inner(self.text(name.between_quotes()))
    }

    /// The parameters, an object, as the client wrote them.
    pub fn raw_params(&self) -> Option<RawJson<'_>> {
        self.parts.params.map(|span| RawJson::new(self.text(span)))
    }

    /// Deserializes the parameters, borrowing from them where `T` can. Absent ones are an empty
    /// object.
    ///
    /// # Errors
    ///
    /// -32602 with a message that names the field that differs from `T`, and how.
    pub fn params<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        self.raw_params()
            .unwrap_or(RawJson::new("{}"))
            .parse_as("params")
    }

    /// Deserializes the `arguments` among the parameters, which `tools/call` and `prompts/get` have,
    /// borrowing from them where `T` can. Absent ones are an empty object.
    ///
    /// # Errors
    ///
    /// -32602 with a message that names the field that differs from `T`, and how; also when they are
    /// no object.
    pub fn arguments<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        let arguments = match self.parts.arguments {
            None => "{}",
            Some(arguments) if arguments.kind == Kind::Object => self.text(arguments.span),
            Some(_) => {
                return Err(RpcError::invalid_params(
                    "`params.arguments` must be an object",
                ));
            }
        };
        RawJson::new(arguments).parse_as("params.arguments")
    }

    /// What the message says about itself in `params._meta`.
    pub fn meta(&self) -> &RequestMeta {
        &self.meta
    }

    /// The body, one JSON text.
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("method", &self.method())
            .field("params", &self.raw_params())
            .finish_non_exhaustive()
    }
}
