//! The headers that repeat what the body says: `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name`,
//! decoded and compared.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::envelope::Part;
use super::posted::Posted;
use crate::protocol::era::{MCP_METHOD, MCP_PROTOCOL_VERSION, PROTOCOL_VERSION, SERVED_VERSIONS};
use crate::protocol::json::Text;
use crate::protocol::json::quote::quote;
use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Why a header has no value that could be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderFault {
    /// It is repeated with different values.
    Differs,
    /// It holds bytes outside visible ASCII, space and tab.
    NotVisible,
    /// It claims to be base64 and is not.
    NotBase64,
    /// It is base64 of something that is not UTF-8.
    NotUtf8,
}

impl HeaderFault {
    /// Completes "`Name` …".
    fn describe(self) -> &'static str {
        match self {
            HeaderFault::Differs => "is repeated with different values; send it once",
            HeaderFault::NotVisible => "holds characters outside visible ASCII",
            HeaderFault::NotBase64 => {
                "is marked as base64 but is not: expected `=?base64?`, standard base64 with padding, \
                 then `?=`"
            }
            HeaderFault::NotUtf8 => "is base64 of something that is not UTF-8",
        }
    }
}

/// The header's one value, without white space around it.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, HeaderFault> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    let first = visible(first)?;
    for value in values {
        if visible(value)? != first {
            return Err(HeaderFault::Differs);
        }
    }
    Ok(Some(first))
}

fn visible(value: &HeaderValue) -> Result<&str, HeaderFault> {
    let value = value.to_str().map_err(|_| HeaderFault::NotVisible)?;
    Ok(value.trim_ascii())
}

/// Decodes a name that a header cannot carry as it is. A value without both marks is not encoded.
fn decode(value: &str) -> Result<Cow<'_, str>, HeaderFault> {
    let marked = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match marked {
        None => Ok(Cow::Borrowed(value)),
        Some(encoded) => {
            let bytes = STANDARD
                .decode(encoded)
                .map_err(|_| HeaderFault::NotBase64)?;
            String::from_utf8(bytes)
                .map(Cow::Owned)
                .map_err(|_| HeaderFault::NotUtf8)
        }
    }
}

/// The parameter that `Mcp-Name` mirrors in requests of this method.
pub(super) fn mirrored(method: &str) -> Option<Part> {
    match method {
        "tools/call" | "prompts/get" => Some(Part::Name),
        "resources/read" => Some(Part::Uri),
        _ => None,
    }
}

impl Posted<'_> {
    fn header(&self, name: &HeaderName, shown: &str) -> Result<Option<&str>, Rejection> {
        single(self.headers, name).map_err(|fault| faulty(shown, fault))
    }

    pub(super) fn check_version(&self, required: bool) -> Result<(), Rejection> {
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
        if let Some(version) = self.envelope.text(Part::ProtocolVersion)
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

    pub(super) fn check_name(
        &self,
        part: Part,
        name: Option<Text>,
        required: bool,
    ) -> Result<(), Rejection> {
        let shown = part.shown();
        let Some(header) = self.header(&MCP_NAME, "Mcp-Name")? else {
            return if required {
                Err(header_mismatch(format!(
                    "the `Mcp-Name` header is missing: send the value of `{shown}` in it"
                )))
            } else {
                Ok(())
            };
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
