//! The checks of a request's body, and of the headers against it, in the protocol's order.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};

use super::accept::Accepts;
use super::envelope::{Envelope, Part};
use super::message::{LISTEN, Message, Method, Parts};
use super::meta::RequestMeta;
use super::mirrored_headers::mirrored;
use super::posted::Posted;
use super::shape::{invalid_request, parse_error};
use crate::protocol::id::RequestId;
use crate::protocol::json::Text;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

/// The message in a body, if it passes.
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
    let posted = Posted {
        headers,
        text,
        envelope: &envelope,
    };
    let (id, parts) = posted.check(accepts).map_err(|rejection| {
        if posted.is_old_initialize() {
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

const OLD_CLIENT: &str = ". This endpoint serves protocol version 2026-07-28 only, which has no \
                          `initialize` handshake: use a client that speaks it";

impl Posted<'_> {
    fn check(&self, accepts: Accepts) -> Result<(Option<RequestId>, Parts), Rejection> {
        self.check_object()?;
        let id = match self.envelope.value(Part::Id) {
            Some(id) if !self.envelope.is_repeated(Part::Id) => RequestId::from_json(id, self.text),
            _ => None,
        };
        match self.judge(accepts, id.is_some()) {
            Ok(parts) => Ok((id, parts)),
            Err(rejection) => Err(rejection.with_id(id)),
        }
    }

    fn judge(&self, accepts: Accepts, has_id: bool) -> Result<Parts, Rejection> {
        let named = self.envelope.text(Part::Method);
        let method = named.and_then(|method| method.decode(self.text));
        let mirrors = method.as_deref().and_then(mirrored);
        self.check_duplicates(mirrors)?;
        self.check_shape(has_id)?;
        let (Some(named), Some(method)) = (named, method) else {
            return Err(invalid_request("`method` is not Unicode"));
        };
        let name = mirrors.and_then(|part| self.envelope.text(part));
        self.check_version(has_id)?;
        self.check_method(&method, has_id)?;
        if has_id {
            if let Some(part) = mirrors {
                self.check_name(part, name)?;
            }
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
        }
        Ok(self.parts(named, method, name))
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
