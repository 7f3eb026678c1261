//! The headers that say what the body says.

use http::{HeaderName, StatusCode};

use super::{Check, PROTOCOL_VERSION, SERVED_VERSIONS};
use crate::protocol::json::Text;
use crate::protocol::json::quote::quote;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::request::envelope::{Envelope, Part};
use crate::protocol::request::headers::{
    HeaderFault, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, decode, single,
};

impl Check<'_> {
    fn header(&self, name: &HeaderName, shown: &str) -> Result<Option<&str>, Rejection> {
        single(self.headers, name).map_err(|fault| faulty(shown, fault))
    }

    pub(super) fn check_version(
        &self,
        envelope: &Envelope,
        required: bool,
    ) -> Result<(), Rejection> {
        let shown = "MCP-Protocol-Version";
        let Some(header) = self.header(&MCP_PROTOCOL_VERSION, shown)? else {
            return if required {
                Err(header_mismatch(format!(
                    "the `{shown}` header is missing: send `{shown}: {PROTOCOL_VERSION}`"
                )))
            } else {
                Ok(())
            };
        };
        if let Some(version) = envelope.text(Part::ProtocolVersion)
            && !version.is(self.text, header)
        {
            return Err(header_mismatch(format!(
                "the `{shown}` header {} differs from \
                     `params._meta[\"io.modelcontextprotocol/protocolVersion\"]` {}: send the same \
                     version in both",
                quote(header),
                self.shown(version)
            )));
        }
        if SERVED_VERSIONS.contains(&header) {
            return Ok(());
        }
        #[derive(serde::Serialize)]
        struct Data<'a> {
            supported: &'a [&'a str],
            requested: &'a str,
        }
        Err(Rejection::new(
            StatusCode::BAD_REQUEST,
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            "version not served",
            format!(
                "protocol version {} in the `{shown}` header is not served: use {PROTOCOL_VERSION}",
                quote(header)
            ),
        )
        .with_data(Data {
            supported: SERVED_VERSIONS,
            requested: header,
        }))
    }

    pub(super) fn check_method(&self, method: &str, required: bool) -> Result<(), Rejection> {
        match self.header(&MCP_METHOD, "Mcp-Method")? {
            Some(header) if header == method => Ok(()),
            Some(header) => Err(header_mismatch(format!(
                "the `Mcp-Method` header {} differs from `method` {}: send the same in both",
                quote(header),
                quote(method)
            ))),
            None if required => Err(header_mismatch(format!(
                "the `Mcp-Method` header is missing: send the `method`, {}, in it",
                quote(method)
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn check_name(&self, part: Part, name: Option<Text>) -> Result<(), Rejection> {
        let shown = part.shown();
        let Some(header) = self.header(&MCP_NAME, "Mcp-Name")? else {
            return Err(header_mismatch(format!(
                "the `Mcp-Name` header is missing: send the value of `{shown}` in it"
            )));
        };
        let header = decode(header).map_err(|fault| faulty("Mcp-Name", fault))?;
        match name {
            Some(name) if name.is(self.text, &header) => Ok(()),
            Some(name) => Err(header_mismatch(format!(
                "the `Mcp-Name` header {} differs from `{shown}` {}: send the same in both",
                quote(&header),
                self.shown(name)
            ))),
            None => Err(header_mismatch(format!(
                "the `Mcp-Name` header is {}, but `{shown}` is no string: send the same in both",
                quote(&header)
            ))),
        }
    }
}

#[cold]
fn header_mismatch(message: String) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::HEADER_MISMATCH,
        "header mismatch",
        message,
    )
}

#[cold]
fn faulty(shown: &str, fault: HeaderFault) -> Rejection {
    header_mismatch(format!("the `{shown}` header {}", fault.describe()))
}
