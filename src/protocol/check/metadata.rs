//! What a request must say of itself in `params._meta`.

use std::borrow::Cow;

use http::StatusCode;

use super::super::codes;
use super::super::envelope::{Envelope, Slot};
use super::super::id::ProgressToken;
use super::super::json::{Kind, Text};
use super::super::level::LogLevel;
use super::super::rejection::Rejection;
use super::Check;

impl Check<'_> {
    pub(super) fn check_meta(&self, envelope: &Envelope) -> Result<(), Rejection> {
        match envelope.meta.value().map(|meta| meta.kind) {
            Some(Kind::Object) => {}
            Some(kind) => {
                return Err(invalid_params(format!(
                    "`params._meta` is {}, but must be an object",
                    kind.with_article()
                )));
            }
            None => {
                return Err(invalid_params(
                    "`params._meta` is missing: send it with `io.modelcontextprotocol/protocolVersion` \
                     and `io.modelcontextprotocol/clientCapabilities`",
                ));
            }
        }
        let fields = &envelope.fields;
        require(
            "io.modelcontextprotocol/protocolVersion",
            fields.protocol_version,
            Kind::String,
            true,
        )?;
        require(
            "io.modelcontextprotocol/clientCapabilities",
            fields.client_capabilities,
            Kind::Object,
            true,
        )?;
        require(
            "io.modelcontextprotocol/clientInfo",
            fields.client_info,
            Kind::Object,
            false,
        )?;
        if fields.log_level.value().is_some() {
            let level = fields.log_level.text();
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
        match fields.progress_token.value() {
            Some(token) if !ProgressToken::fits(token, self.text) => Err(invalid_params(
                "`params._meta.progressToken` must be a string or an integer without fraction and \
                     exponent",
            )),
            _ => Ok(()),
        }
    }
}

fn require(name: &str, slot: Slot, kind: Kind, required: bool) -> Result<(), Rejection> {
    let expected = kind.with_article();
    match slot.value() {
        Some(value) if value.kind == kind => Ok(()),
        Some(value) => Err(invalid_params(format!(
            "`params._meta[\"{name}\"]` is {}, but must be {expected}",
            value.kind.with_article()
        ))),
        None if required => Err(invalid_params(format!(
            "`params._meta[\"{name}\"]` is missing: it must be {expected}"
        ))),
        None => Ok(()),
    }
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
