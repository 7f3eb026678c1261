//! Reading a message by itself, outside of HTTP: for tests of handlers.

use bytes::Bytes;
use http::{HeaderMap, Uri};

use super::admission::LegacyClients;
use super::envelope::{Envelope, Part};
use super::message::Message;
use super::meta::RequestMeta;
use super::mirrored_headers::mirrored;
use super::posted::Posted;
use crate::protocol::era::{SERVED_VERSIONS, legacy_version};
use crate::protocol::id::RequestId;
use crate::protocol::json::quote::quote;
use crate::protocol::reply::codes;
use crate::protocol::reply::rpc_error::RpcError;

impl Message {
    /// Reads a message from JSON, for tests of handlers. In a server, the layer reads the messages.
    ///
    /// What is malformed in its `_meta`, an unknown log level for instance, is left out. Of
    /// repeated members the last one counts.
    ///
    /// # Errors
    ///
    /// -32700 when it is not JSON, -32600 when it is no request or notification.
    pub fn parse(json: impl Into<Bytes>) -> Result<Self, RpcError> {
        Self::read(json.into(), None, &Uri::from_static("/"))
    }

    /// As [`parse`](Self::parse), of a client that speaks this revision of the protocol: an earlier
    /// one makes it a message of the [legacy era](crate::Era::Legacy), with the log level that such
    /// clients have by default, `info`.
    ///
    /// # Errors
    ///
    /// The same, and -32022 for a revision that is not served.
    ///
    /// ```
    /// use mcp_channel::{Era, Message};
    ///
    /// let message = Message::parse_as(
    ///     "2025-06-18",
    ///     r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    /// )?;
    /// assert_eq!(message.meta().era(), Era::Legacy);
    /// assert_eq!(message.meta().protocol_version(), Some("2025-06-18"));
    /// # Ok::<(), mcp_channel::RpcError>(())
    /// ```
    pub fn parse_as(revision: &str, json: impl Into<Bytes>) -> Result<Self, RpcError> {
        let uri = &Uri::from_static("/");
        if SERVED_VERSIONS.contains(&revision) {
            return Self::read(json.into(), None, uri);
        }
        let Some(legacy) = legacy_version(revision.as_bytes()) else {
            return Err(RpcError::new(
                codes::UNSUPPORTED_PROTOCOL_VERSION,
                format!("protocol version {} is not served", quote(revision)),
            ));
        };
        let mut message = Self::read(json.into(), Some(legacy), uri)?;
        message.default_log_level(LegacyClients::default().log_level);
        Ok(message)
    }

    /// Reads a message that was not posted. `legacy` is the earlier revision that it is written in,
    /// if it is.
    pub(crate) fn read(
        body: Bytes,
        legacy: Option<&'static str>,
        uri: &Uri,
    ) -> Result<Self, RpcError> {
        let text = std::str::from_utf8(&body).map_err(|e| RpcError::parse_error(e.to_string()))?;
        let mut envelope = Envelope::default();
        let read = envelope.read(text);
        read.map_err(|e| RpcError::parse_error(e.to_string()))?;
        let id = envelope
            .value(Part::Id)
            .and_then(|value| RequestId::from_json(value, text));
        let posted = Posted {
            headers: &HeaderMap::new(),
            text,
            envelope: &envelope,
        };
        posted
            .check_shape(id.is_some())
            .map_err(|rejection| rejection.error().clone())?;
        let named = envelope.text(Part::Method);
        let method = named.and_then(|named| Some((named, named.decode(text)?)));
        let (named, method) =
            method.ok_or_else(|| RpcError::invalid_request("`method` is not Unicode"))?;
        let name = mirrored(&method).and_then(|part| envelope.text(part));
        let parts = posted.parts(named, method, name);
        let meta = RequestMeta::new(&envelope, text, uri, legacy);
        Ok(Self::new(body, parts, id, meta))
    }
}
