//! Reading a message by itself, outside of HTTP: for tests of handlers.

use bytes::Bytes;
use http::{HeaderMap, Uri};

use super::envelope::{Envelope, Part};
use super::message::Message;
use super::meta::RequestMeta;
use super::mirrored_headers::mirrored;
use super::posted::Posted;
use crate::protocol::id::RequestId;
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
        let body = json.into();
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
        let meta = RequestMeta::new(&envelope, text, &Uri::from_static("/"));
        Ok(Self::new(body, parts, id, meta))
    }
}
