//! The check that a body is one JSON-RPC request or notification, and that no member that matters
//! is there twice.

use std::borrow::Cow;

use http::StatusCode;

use super::envelope::Part;
use super::posted::Posted;
use crate::protocol::json::Kind;
use crate::protocol::json::quote::quote;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

impl Posted<'_> {
    pub(super) fn check_object(&self) -> Result<(), Rejection> {
        match self.envelope.kind {
            Kind::Object => Ok(()),
            Kind::Array => Err(invalid_request(
                "the body is an array, and the protocol has no batches: send each message as its own \
                 POST",
            )),
            kind => Err(invalid_request(format!(
                "the body is {}: expected a JSON-RPC request or notification, an object",
                kind.with_article()
            ))),
        }
    }

    /// Refuses a member that is there twice. `mirrored` is the parameter that the method has
    /// mirrored in a header.
    pub(super) fn check_duplicates(&self, mirrored: Option<Part>) -> Result<(), Rejection> {
        match self.envelope.duplicate(self.text, mirrored) {
            None => Ok(()),
            Some(twice) => Err(invalid_request(format!(
                "{} is there more than once; send it once",
                quote(&twice)
            ))),
        }
    }

    pub(super) fn check_shape(&self, has_id: bool) -> Result<(), Rejection> {
        let envelope = self.envelope;
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
}

#[cold]
pub(super) fn parse_error(message: String) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::PARSE_ERROR,
        "body is not JSON",
        message,
    )
}

#[cold]
pub(super) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::INVALID_REQUEST,
        "not a request or notification",
        message,
    )
}
