//! [`RpcError`]: a JSON-RPC error, the HTTP status that follows from its code, and its response.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::BufMut;
use http::StatusCode;
use serde::Serialize;

use super::codes;
use crate::protocol::id::RequestId;
use crate::protocol::json::encode::{put_integer, put_json, put_string};
use crate::protocol::json::raw::RawJson;

/// A JSON-RPC error: the reply to a request that failed.
///
/// It has a code, a message for humans and, optionally, data for programs. It also has the HTTP
/// status for a response that consists of it alone. On an open stream the status was sent before,
/// and the error is the last event.
///
/// ```
/// use mcp_channel::RpcError;
///
/// let error = RpcError::invalid_params("`city` is no place we know")
///     .with_data(serde_json::json!({"city": "Atlantis"}));
/// assert_eq!(error.code(), -32602);
/// assert_eq!(error.status(), 200);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    message: Cow<'static, str>,
    data: Option<Box<str>>,
    code: i64,
    status: Option<StatusCode>,
    /// In whole seconds.
    retry_after: Option<u32>,
    /// Whether a resource is not there, for which earlier revisions have a code of its own.
    resource: bool,
    /// Whether it stands for a failure of the server that has no words of the handler's.
    failure: bool,
}

impl RpcError {
    /// An error with any code.
    ///
    /// The protocol reserves -32768 to -32000; [`codes`] has those with a
    /// meaning. Codes for other purposes lie outside.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message: message.into(),
            data: None,
            code,
            status: None,
            retry_after: None,
            resource: false,
            failure: false,
        }
    }

    /// -32603 for what the layer itself makes of a failure. Its status is 500, but for clients of
    /// earlier revisions, which would not show it then.
    pub(crate) fn failure(message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::internal(message);
        error.failure = true;
        error
    }

    /// -32700: the text is not JSON.
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(codes::PARSE_ERROR, message)
    }

    /// -32600: the message is not a valid request.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(codes::INVALID_REQUEST, message)
    }

    /// -32601: the method is not served.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            codes::METHOD_NOT_FOUND,
            format!("Method not found: {method}"),
        )
    }

    /// -32602: a `tools/call` names a tool that does not exist.
    pub fn unknown_tool(name: &str) -> Self {
        Self::new(codes::INVALID_PARAMS, format!("Unknown tool: {name}"))
    }

    /// -32602: a `resources/read` names a resource that is not there. Its URI is in the data.
    ///
    /// A client of an [earlier revision](crate::Era::Legacy) gets -32002, the code that it knows for
    /// this.
    pub fn resource_not_found(uri: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        let mut error = Self::new(codes::INVALID_PARAMS, format!("Resource not found: {uri}"))
            .with_data(Data { uri });
        error.resource = true;
        error
    }

    /// -32602: the parameters are not what the method takes.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(codes::INVALID_PARAMS, message)
    }

    /// -32603: the server failed. The client sees the message.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(codes::INTERNAL_ERROR, message)
    }

    /// -32021: the request needs capabilities that the client did not declare.
    ///
    /// `required` is an object like the client's capabilities, `{"sampling": {}}` for instance; it
    /// becomes `requiredCapabilities` in the data.
    pub fn missing_capability(required: impl Serialize) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<T> {
            required_capabilities: T,
        }
        Self::new(
            codes::MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The request needs capabilities that the client did not declare; they are listed in \
             the data",
        )
        .with_data(Data {
            required_capabilities: required,
        })
    }

    /// Adds data, encoded at once.
    ///
    /// Data that does not serialize is left out, and traced.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = match serde_json::to_string(&data) {
            Ok(json) => Some(json.into()),
            Err(_error) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(code = self.code, error = %_error, "an error's data does not serialize");
                None
            }
        };
        self
    }

    /// Sets the HTTP status for a response that consists of this error alone.
    ///
    /// Many clients show the error of a response with 200 or 400 and hide that of a 5xx. A status
    /// that has no body (1xx, 204, 205, 304) cannot carry the error, and is left out.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        let bodyless = status.is_informational()
            || [
                StatusCode::NO_CONTENT,
                StatusCode::RESET_CONTENT,
                StatusCode::NOT_MODIFIED,
            ]
            .contains(&status);
        if !bodyless {
            self.status = Some(status);
        }
        self
    }

    /// Tells the client to wait this long before it tries again, in a response that consists of
    /// this error alone. Rounded up to whole seconds, which is what the `Retry-After` header
    /// counts.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        let seconds = after
            .as_secs()
            .saturating_add(u64::from(after.subsec_nanos() > 0));
        self.retry_after = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        self
    }

    #[must_use]
    pub(crate) fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    /// The code.
    pub fn code(&self) -> i64 {
        self.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The data, if any.
    pub fn data(&self) -> Option<RawJson<'_>> {
        self.data.as_deref().map(RawJson::new)
    }

    /// How long the client is told to wait, when it is told.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    pub(crate) fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after
    }

    /// The HTTP status of a response that consists of this error.
    ///
    /// The one that [`with_status`](Self::with_status) set; else 404 for -32601, 400 for -32700,
    /// -32600, -32020, -32021 and -32022, and 200 for every other code.
    pub fn status(&self) -> StatusCode {
        self.own_status().unwrap_or(match self.code {
            _ if self.failure => StatusCode::INTERNAL_SERVER_ERROR,
            codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            codes::PARSE_ERROR
            | codes::INVALID_REQUEST
            | codes::HEADER_MISMATCH
            | codes::MISSING_REQUIRED_CLIENT_CAPABILITY
            | codes::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        })
    }

    /// The status that [`with_status`](Self::with_status) set.
    pub(crate) fn own_status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Appends the JSON-RPC response; without an id it has no `id` member.
    pub(crate) fn write_response(&self, id: Option<&RequestId>, out: &mut impl BufMut) {
        self.write_with_code(self.code, id, out);
    }

    /// As [`write_response`](Self::write_response), with the code that earlier revisions have.
    pub(crate) fn write_legacy_response(&self, id: Option<&RequestId>, out: &mut impl BufMut) {
        let code = if self.resource {
            codes::LEGACY_RESOURCE_NOT_FOUND
        } else {
            self.code
        };
        self.write_with_code(code, id, out);
    }

    fn write_with_code(&self, code: i64, id: Option<&RequestId>, out: &mut impl BufMut) {
        out.put_slice(br#"{"jsonrpc":"2.0""#);
        if let Some(id) = id {
            out.put_slice(br#","id":"#);
            id.write_json(out);
        }
        out.put_slice(br#","error":{"code":"#);
        put_integer(out, code);
        out.put_slice(br#","message":"#);
        put_string(out, &self.message);
        if let Some(data) = &self.data {
            out.put_slice(br#","data":"#);
            put_json(out, data);
        }
        out.put_slice(b"}}");
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(error: &RpcError, id: Option<&RequestId>) -> String {
        let mut out = Vec::new();
        error.write_response(id, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_status_without_a_body_is_left_out() {
        for status in [100, 103, 204, 205, 304] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(RpcError::internal("x").with_status(status).status(), 200);
        }
    }

    #[test]
    fn the_status_follows_the_code_unless_it_is_set() {
        for (code, status) in [
            (-32601, 404),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            (-32700, 400),
            (-32600, 400),
            (-32602, 200),
            (-32603, 200),
            (-32000, 200),
            (7, 200),
        ] {
            assert_eq!(RpcError::new(code, "").status(), status, "{code}");
            let explicit = RpcError::new(code, "").with_status(StatusCode::IM_A_TEAPOT);
            assert_eq!(explicit.status(), 418);
        }
    }

    #[test]
    fn a_response_without_id_or_data_has_no_such_members() {
        let error = RpcError::new(1, "m");
        assert_eq!(
            json(&error, None),
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#
        );
        assert_eq!(
            json(&error.with_data(None::<u8>), Some(&"a".into())),
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m","data":null}}"#
        );
    }

    #[test]
    fn a_response_is_one_line_for_the_most_naive_reader() {
        let nasty = "a\n\r\0\u{85}\u{2028}\u{2029}\u{feff}ü\"\\";
        let raw: Box<serde_json::value::RawValue> =
            serde_json::from_str(&format!("[1,\n\r\t\"\u{85}\u{2028}{}\"]", "x")).unwrap();
        let error = RpcError::new(1, nasty).with_data(raw);
        let text = json(&error, Some(&RequestId::from(nasty)));
        assert!(
            !text.contains(['\n', '\r', '\0', '\u{85}', '\u{2028}', '\u{2029}']),
            "{text}"
        );
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["id"], nasty);
        assert_eq!(value["error"]["message"], nasty);
        assert_eq!(value["error"]["data"][1], "\u{85}\u{2028}x");
    }

    #[test]
    fn data_that_does_not_serialize_is_left_out() {
        let broken = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(RpcError::new(1, "m").with_data(broken).data(), None);
    }

    #[test]
    fn missing_capabilities_are_named_in_the_data() {
        let error = RpcError::missing_capability(serde_json::json!({"sampling": {}}));
        assert_eq!(error.code(), -32021);
        assert_eq!(
            error.data().unwrap().as_str(),
            r#"{"requiredCapabilities":{"sampling":{}}}"#
        );
    }

    #[test]
    fn a_wait_is_rounded_up_to_seconds() {
        let error = RpcError::new(1, "m");
        assert_eq!(error.retry_after(), None);
        for (wait, seconds) in [
            (Duration::ZERO, 0),
            (Duration::from_millis(1), 1),
            (Duration::from_secs(2), 2),
            (Duration::MAX, u32::MAX.into()),
        ] {
            let error = error.clone().with_retry_after(wait);
            assert_eq!(error.retry_after(), Some(Duration::from_secs(seconds)));
        }
    }

    #[test]
    fn the_type_is_small() {
        assert!(size_of::<RpcError>() <= 64);
    }
}
