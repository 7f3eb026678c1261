//! The headers that mirror parts of the body.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::envelope::Part;

pub(crate) static MCP_PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("mcp-protocol-version");
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Why a header has no value that could be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
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
    pub(crate) fn describe(self) -> &'static str {
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
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, HeaderFault> {
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

/// Undoes the encoding of names that a header cannot carry. A value without both marks is itself.
pub(crate) fn decode(value: &str) -> Result<Cow<'_, str>, HeaderFault> {
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
pub(crate) fn mirrored(method: &str) -> Option<Part> {
    match method {
        "tools/call" | "prompts/get" => Some(Part::Name),
        "resources/read" => Some(Part::Uri),
        _ => None,
    }
}
