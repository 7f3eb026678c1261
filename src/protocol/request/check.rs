//! The checks of a request's body, and of the headers against it, in the protocol's order.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};

use super::accept::Accepts;
use super::admission::LegacyClients;
use super::envelope::{Envelope, Part};
use super::message::{Message, Method, Parts};
use super::meta::RequestMeta;
use super::mirrored_headers::mirrored;
use super::posted::Posted;
use super::shape::{invalid_request, parse_error};
use crate::protocol::era::{LISTEN, legacy_revision};
use crate::protocol::id::RequestId;
use crate::protocol::json::Text;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

/// The message in a body, if it passes.
pub(crate) fn check_body(
    headers: &HeaderMap,
    uri: &Uri,
    accepts: Accepts,
    legacy: LegacyClients,
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
    let posted = Posted {
        headers,
        text,
        envelope: &envelope,
    };
    let checked = posted.check(accepts, legacy.served);
    let (id, passed) = checked.map_err(|rejection| {
        if !legacy.served && posted.is_old_initialize() {
            rejection.adding(OLD_CLIENT)
        } else {
            rejection
        }
    })?;
    let mut meta = RequestMeta::new(&envelope, text, uri, passed.revision);
    if passed.revision.is_some() {
        meta.default_log_level(legacy.log_level);
    }
    if accepts == Accepts::JsonOnly {
        meta.clear_progress_token_and_log_level();
    }
    Ok(Message::new(body, passed.parts, id, meta))
}

/// What is known of a message that passed.
struct Passed {
    parts: Parts,
    /// The earlier revision that it is written in, if it is.
    revision: Option<&'static str>,
}

const OLD_CLIENT: &str = ". This endpoint serves protocol version 2026-07-28 only, which has no \
                          `initialize` handshake: use a client that speaks it";

impl Posted<'_> {
    fn check(
        &self,
        accepts: Accepts,
        serve_legacy: bool,
    ) -> Result<(Option<RequestId>, Passed), Rejection> {
        self.check_object()?;
        let id = match self.envelope.value(Part::Id) {
            Some(id) if !self.envelope.is_repeated(Part::Id) => RequestId::from_json(id, self.text),
            _ => None,
        };
        match self.judge(accepts, serve_legacy, id.is_some()) {
            Ok(passed) => Ok((id, passed)),
            Err(rejection) => Err(rejection.with_id(id)),
        }
    }

    fn judge(
        &self,
        accepts: Accepts,
        serve_legacy: bool,
        has_id: bool,
    ) -> Result<Passed, Rejection> {
        let named = self.envelope.text(Part::Method);
        let method = named.and_then(|method| method.decode(self.text));
        let mirrors = method.as_deref().and_then(mirrored);
        self.check_duplicates(mirrors)?;
        self.check_shape(has_id)?;
        let (Some(named), Some(method)) = (named, method) else {
            return Err(invalid_request("`method` is not Unicode"));
        };
        let name = mirrors.and_then(|part| self.envelope.text(part));
        let versioned = self.envelope.kind(Part::ProtocolVersion).is_some();
        let revision = if serve_legacy {
            legacy_revision(self.headers, versioned, &method)
        } else {
            None
        };
        // What a legacy request mirrors must be true, too: gateways decide by it.
        let strict = has_id && revision.is_none();
        if revision.is_none() {
            self.check_version(has_id)?;
        }
        self.check_method(&method, strict)?;
        if let Some(part) = mirrors.filter(|_| has_id) {
            self.check_name(part, name, strict)?;
        }
        if strict {
            self.check_meta()?;
            if accepts == Accepts::JsonOnly && method == LISTEN {
                return Err(Rejection::new(
                    StatusCode::NOT_ACCEPTABLE,
                    codes::INVALID_REQUEST,
                    "listen without a stream",
                    "`subscriptions/listen` is answered by a stream: `Accept` must list \
                     `text/event-stream`",
                ));
            }
        } else if has_id {
            self.check_legacy_meta()?;
        }
        let parts = self.parts(named, method, name);
        Ok(Passed { parts, revision })
    }

    pub(super) fn parts(&self, named: Text, method: Cow<'_, str>, name: Option<Text>) -> Parts {
        Parts {
            method: match method {
                Cow::Borrowed(_) => Method::Plain(named.between_quotes()),
                Cow::Owned(method) => Method::Decoded(method.into()),
            },
            params: self.envelope.value(Part::Params).map(|params| params.span),
            name,
            arguments: self.envelope.value(Part::Arguments),
        }
    }

    /// Whether this is the first message of a client that knows only earlier revisions.
    fn is_old_initialize(&self) -> bool {
        self.envelope
            .text(Part::Method)
            .is_some_and(|method| method.is(self.text, "initialize"))
            && self.envelope.text(Part::ProtocolVersion).is_none()
    }
}

#[cfg(test)]
mod tests;
