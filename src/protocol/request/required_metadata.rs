//! The check of `params._meta`: what a request must say about itself.

use std::borrow::Cow;

use http::StatusCode;

use super::envelope::{Envelope, Part};
use super::posted::Posted;
use crate::protocol::id::ProgressToken;
use crate::protocol::json::{Kind, Text};
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

impl Posted<'_> {
    pub(super) fn check_meta(&self) -> Result<(), Rejection> {
        let envelope = self.envelope;
        match envelope.kind(Part::Meta) {
            Some(Kind::Object) => {}
            Some(kind) => return Err(no_object(kind)),
            None => {
                return Err(invalid_params(
                    "`params._meta` is missing: send it with `io.modelcontextprotocol/protocolVersion` \
                     and `io.modelcontextprotocol/clientCapabilities`",
                ));
            }
        }
        require(envelope, Part::ProtocolVersion, Kind::String, true)?;
        require(envelope, Part::ClientCapabilities, Kind::Object, true)?;
        require(envelope, Part::ClientInfo, Kind::Object, false)?;
        if envelope.kind(Part::LogLevel).is_some() {
            let level = envelope.text(Part::LogLevel);
            let known = |level: &Text| {
                LogLevel::ALL
                    .iter()
                    .any(|known| level.is(self.text, known.as_str()))
            };
            if !level.as_ref().is_some_and(known) {
                return Err(invalid_params(
                    "`params._meta[\"io.modelcontextprotocol/logLevel\"]` must be debug, info, notice, \
                     warning, error, critical, alert or emergency",
                ));
            }
        }
        self.check_progress_token()
    }

    /// Of a request of an earlier revision: it needs no metadata. What some of their clients write
    /// as null is absent.
    #[cold]
    pub(super) fn check_legacy_meta(&self) -> Result<(), Rejection> {
        match self.envelope.kind(Part::Meta) {
            None | Some(Kind::Null | Kind::Object) => {}
            Some(kind) => return Err(no_object(kind)),
        }
        match self.envelope.kind(Part::ProgressToken) {
            Some(Kind::Null) => Ok(()),
            _ => self.check_progress_token(),
        }
    }

    fn check_progress_token(&self) -> Result<(), Rejection> {
        match self.envelope.value(Part::ProgressToken) {
            Some(token) if !ProgressToken::fits(token, self.text) => Err(invalid_params(
                "`params._meta.progressToken` must be a string or an integer without fraction and \
                     exponent",
            )),
            _ => Ok(()),
        }
    }
}

fn require(envelope: &Envelope, part: Part, kind: Kind, required: bool) -> Result<(), Rejection> {
    let (name, expected) = (part.shown(), kind.with_article());
    match envelope.kind(part) {
        Some(found) if found == kind => Ok(()),
        Some(found) => Err(invalid_params(format!(
            "`params._meta[\"{name}\"]` is {}, but must be {expected}",
            found.with_article()
        ))),
        None if required => Err(invalid_params(format!(
            "`params._meta[\"{name}\"]` is missing: it must be {expected}"
        ))),
        None => Ok(()),
    }
}

#[cold]
fn no_object(kind: Kind) -> Rejection {
    invalid_params(format!(
        "`params._meta` is {}, but must be an object",
        kind.with_article()
    ))
}

#[cold]
fn invalid_params(message: impl Into<Cow<'static, str>>) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::INVALID_PARAMS,
        "metadata missing or malformed",
        message,
    )
}
