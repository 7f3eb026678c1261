//! What can be judged once the body is there.

mod metadata;
mod mirror;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};

pub(crate) use super::accept::Accepts;
pub(crate) use super::admission::{Policy, check_head};
use super::envelope::{Envelope, Part};
use super::headers::mirrored;
use super::message::{LISTEN, Message, Method, Parts};
use super::meta::RequestMeta;
use crate::protocol::id::RequestId;
use crate::protocol::json::quote::quote;
use crate::protocol::json::{Kind, Text};
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::reply::rpc_error::RpcError;

/// The revision of the protocol that is served.
pub const PROTOCOL_VERSION: &str = "2026-07-28";

/// Every revision that is served.
pub(crate) const SERVED_VERSIONS: &[&str] = &[PROTOCOL_VERSION];

/// A body of more than `limit` bytes.
pub(crate) fn too_large(limit: u64) -> Rejection {
    Rejection::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        codes::INVALID_REQUEST,
        "body too large",
        format!(
            "the body is larger than {limit} bytes: send less, or raise the server's `body_limit`"
        ),
    )
}

/// A body that something around this layer found too large, by a limit that is not known here.
pub(crate) fn too_large_for_another() -> Rejection {
    Rejection::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        codes::INVALID_REQUEST,
        "body too large",
        "the body is larger than the server allows: send less, or raise the limit of the middleware \
         around the MCP layer",
    )
}

/// A body that did not arrive.
pub(crate) fn broken_body(error: &dyn fmt::Display) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::INVALID_REQUEST,
        "broken body",
        format!("the body did not arrive whole: {error}"),
    )
}

/// The rules on the body and on the headers that mirror it, in the protocol's order.
pub(crate) fn check_body(
    headers: &HeaderMap,
    uri: &Uri,
    accepts: Accepts,
    body: Bytes,
) -> Result<Message, Rejection> {
    let text = std::str::from_utf8(&body).map_err(|error| {
        parse_error(format!(
            "the body is not UTF-8 at byte {}",
            error.valid_up_to()
        ))
    })?;
    let mut envelope = Envelope::default();
    envelope.read(text).map_err(|error| {
        parse_error(if text.starts_with('\u{feff}') {
            "the body starts with a byte order mark; send the JSON alone".to_owned()
        } else {
            format!("the body is not JSON: {error}")
        })
    })?;
    let (id, parts) = Check {
        headers,
        text,
        accepts,
    }
    .run(&envelope)
    .map_err(|rejection| {
        if is_old_initialize(&envelope, text) {
            rejection.adding(OLD_CLIENT)
        } else {
            rejection
        }
    })?;
    let mut meta = RequestMeta::new(&envelope, text, uri);
    if accepts == Accepts::JsonOnly {
        meta.clear_progress_token_and_log_level();
    }
    Ok(Message::new(body, parts, id, meta))
}

/// A message by itself, outside of HTTP: what is malformed in its `_meta` is left out.
pub(crate) fn read(body: Bytes) -> Result<Message, RpcError> {
    let text = std::str::from_utf8(&body).map_err(|e| RpcError::parse_error(e.to_string()))?;
    let mut envelope = Envelope::default();
    let read = envelope.read(text);
    read.map_err(|e| RpcError::parse_error(e.to_string()))?;
    let id = envelope
        .value(Part::Id)
        .and_then(|value| RequestId::from_json(value, text));
    let headers = &HeaderMap::new();
    let accepts = Accepts::Both;
    let check = Check {
        headers,
        text,
        accepts,
    };
    check
        .check_shape(&envelope, id.is_some())
        .map_err(|rejection| rejection.error().clone())?;
    let parts = check
        .parts(&envelope)
        .ok_or_else(|| RpcError::invalid_request("`method` is not Unicode"))?;
    let meta = RequestMeta::new(&envelope, text, &Uri::from_static("/"));
    Ok(Message::new(body, parts, id, meta))
}

const OLD_CLIENT: &str = ". This endpoint serves protocol version 2026-07-28 only, which has no \
                          `initialize` handshake: use a client that speaks it";

fn parts_of(envelope: &Envelope, named: Text, method: Cow<'_, str>, name: Option<Text>) -> Parts {
    Parts {
        method: match method {
            Cow::Borrowed(_) => Method::Plain(named.between_quotes()),
            Cow::Owned(method) => Method::Decoded(method.into()),
        },
        params: envelope.value(Part::Params).map(|params| params.span),
        name,
        arguments: envelope.value(Part::Arguments),
    }
}

/// Whether this is the first message of a client that knows only earlier revisions.
fn is_old_initialize(envelope: &Envelope, text: &str) -> bool {
    envelope
        .text(Part::Method)
        .is_some_and(|method| method.is(text, "initialize"))
        && envelope.text(Part::ProtocolVersion).is_none()
}

struct Check<'a> {
    headers: &'a HeaderMap,
    text: &'a str,
    accepts: Accepts,
}

impl Check<'_> {
    fn run(&self, envelope: &Envelope) -> Result<(Option<RequestId>, Parts), Rejection> {
        if envelope.kind != Kind::Object {
            return Err(invalid_request(match envelope.kind {
                Kind::Array => Cow::Borrowed(
                    "the body is an array, and the protocol has no batches: send each message as its \
                     own POST",
                ),
                kind => format!(
                    "the body is {}: expected a JSON-RPC request or notification, an object",
                    kind.with_article()
                )
                .into(),
            }));
        }
        let id = match envelope.value(Part::Id) {
            Some(id) if !envelope.is_repeated(Part::Id) => RequestId::from_json(id, self.text),
            _ => None,
        };
        match self.judge(envelope, id.is_some()) {
            Ok(parts) => Ok((id, parts)),
            Err(rejection) => Err(rejection.with_id(id)),
        }
    }

    fn judge(&self, envelope: &Envelope, has_id: bool) -> Result<Parts, Rejection> {
        let text = self.text;
        let named = envelope.text(Part::Method);
        let method = named.and_then(|method| method.decode(text));
        let mirrors = method.as_deref().and_then(mirrored);
        if let Some(twice) = envelope.duplicate(text, mirrors) {
            return Err(invalid_request(format!(
                "{} is there more than once; send it once",
                quote(&twice)
            )));
        }
        self.check_shape(envelope, has_id)?;
        let (Some(named), Some(method)) = (named, method) else {
            return Err(invalid_request("`method` is not Unicode"));
        };
        let name = mirrors.and_then(|part| envelope.text(part));
        if has_id {
            self.check_version(envelope, true)?;
            self.check_method(&method, true)?;
            if let Some(part) = mirrors {
                self.check_name(part, name)?;
            }
            self.check_meta(envelope)?;
            if self.accepts == Accepts::JsonOnly && method == LISTEN {
                return Err(Rejection::new(
                    StatusCode::NOT_ACCEPTABLE,
                    codes::INVALID_REQUEST,
                    "listen without a stream",
                    "`subscriptions/listen` is answered by a stream: `Accept` must list \
                     `text/event-stream`",
                ));
            }
        } else {
            self.check_version(envelope, false)?;
            self.check_method(&method, false)?;
        }
        Ok(parts_of(envelope, named, method, name))
    }

    /// What is read of a message that nobody judges.
    fn parts(&self, envelope: &Envelope) -> Option<Parts> {
        let named = envelope.text(Part::Method)?;
        let method = named.decode(self.text)?;
        let name = mirrored(&method).and_then(|part| envelope.text(part));
        Some(parts_of(envelope, named, method, name))
    }

    fn check_shape(&self, envelope: &Envelope, has_id: bool) -> Result<(), Rejection> {
        match envelope.text(Part::JsonRpc) {
            Some(version) if version.is(self.text, "2.0") => {}
            _ => return Err(invalid_request("`jsonrpc` must be \"2.0\"")),
        }
        if let (Some(id), false) = (envelope.value(Part::Id), has_id) {
            return Err(invalid_request(match id.kind {
                Kind::Number => Cow::Borrowed(
                    "`id` must be a string or an integer: write it without fraction and exponent",
                ),
                Kind::Null => Cow::Borrowed(
                    "`id` must be a string or an integer: leave it out of a notification",
                ),
                kind => format!(
                    "`id` is {}, but must be a string or an integer",
                    kind.with_article()
                )
                .into(),
            }));
        }
        match envelope.kind(Part::Method) {
            Some(Kind::String) => {}
            Some(kind) => {
                return Err(invalid_request(format!(
                    "`method` is {}, but must be a string",
                    kind.with_article()
                )));
            }
            None if envelope.kind(Part::Answer).is_some() => {
                return Err(invalid_request(
                    "the body is a response, and clients send none: expected a request or notification \
                     with a `method`",
                ));
            }
            None => return Err(invalid_request("`method` is missing")),
        }
        match envelope.kind(Part::Params) {
            None | Some(Kind::Object) => Ok(()),
            Some(kind) => Err(invalid_request(format!(
                "`params` is {}, but must be an object or left out",
                kind.with_article()
            ))),
        }
    }

    #[cold]
    fn shown(&self, string: Text) -> String {
        match string.decode(self.text) {
            Some(plain) => quote(&plain),
            None => quote(string.inner(self.text)),
        }
    }
}

#[cold]
fn parse_error(message: String) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::PARSE_ERROR,
        "body is not JSON",
        message,
    )
}

#[cold]
fn invalid_request(message: impl Into<Cow<'static, str>>) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::INVALID_REQUEST,
        "not a request or notification",
        message,
    )
}

#[cfg(test)]
mod tests;
