//! What a client of an earlier revision gets in place of a modern result or error.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::handmade::{Answer, answer};
use super::members::{SERVER_INFO, find, remove};
use super::result::{NO_TYPE, begin, no_json};
use super::rpc_error::RpcError;
use super::{codes, sse};
use crate::protocol::id::RequestId;
use crate::protocol::json::Span;
use crate::protocol::json::quote::quote;

/// The form in which a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Modern,
    /// For a client of an earlier revision.
    Legacy {
        /// Whether it called a tool, whose result can tell of a failure.
        tool: bool,
    },
    /// The answer to `server/discover` becomes that to an `initialize` request, in this revision.
    Initialize(&'static str),
}

/// How a server is called that does not name itself: earlier revisions require a name.
const UNNAMED: &str = r#"{"name":"unnamed","version":"0"}"#;

/// Writes the response that carries the result that `write` writes to `out`, in a form that is not
/// modern.
///
/// Nothing is added to a result. One that asks for input becomes a failure that says so.
///
/// # Errors
///
/// What is wrong with the result, when it is no object or `write` fails; `out` then holds a part
/// of it.
pub(crate) fn write_response(
    out: &mut Vec<u8>,
    id: &RequestId,
    form: Form,
    server_info: Option<&str>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), String> {
    let response = out.len();
    let (_, start) = begin(out, id, write)?;
    let object = Span::new(start, out.len()).map_err(no_json)?;
    let text = std::str::from_utf8(out).unwrap_or_default();
    if let Form::Initialize(version) = form {
        let initialized = initialize_result(object.of(text), version, server_info)
            .map_err(|e| format!("the result of `server/discover` is not what it must be: {e}"))?;
        out.truncate(start);
        out.extend_from_slice(&initialized);
        out.push(b'}');
        return Ok(());
    }
    let [result_type, asked] =
        find(text, object, ["resultType", "inputRequests"]).map_err(no_json)?;
    let failure = match result_type {
        None => None,
        Some(it) if it.is_null() || it.as_text().is_some_and(|it| it.is(text, "complete")) => {
            remove(out, object, "resultType").map_err(no_json)?;
            None
        }
        Some(it) => match it.as_text().map(|it| it.is(text, "input_required")) {
            Some(true) => Some(unasked(asked.map_or("{}", |asked| asked.span.of(text)))),
            Some(false) => Some(format!(
                "The result is of the type {}, which this client's version of the protocol does not have",
                it.span.of(text)
            )),
            None => return Err(NO_TYPE.to_owned()),
        },
    };
    let Some(failure) = failure else {
        out.push(b'}');
        return Ok(());
    };
    out.truncate(response);
    if form == (Form::Legacy { tool: true }) {
        write_tool_error(&failure, id, out);
    } else {
        RpcError::internal(failure).write_legacy_response(Some(id), out);
    }
    Ok(())
}

/// Writes the response that carries an error, in a form that is not modern. Its HTTP status is 200,
/// unless the error was given one: most of these clients show the error of no other.
///
/// Where a tool needs a capability that the client did not declare, the model is told as of a failure
/// of the tool, since these clients do not know the code.
pub(crate) fn write_error(
    error: &RpcError,
    form: Form,
    id: Option<&RequestId>,
    out: &mut Vec<u8>,
) -> StatusCode {
    let lacking = error.code() == codes::MISSING_REQUIRED_CLIENT_CAPABILITY;
    match id.filter(|_| lacking && form == (Form::Legacy { tool: true })) {
        Some(id) => write_tool_error(error.message(), id, out),
        None => error.write_legacy_response(id, out),
    }
    error.own_status().unwrap_or(StatusCode::OK)
}

/// What becomes of `text`, a whole response that a handler wrote by itself. None when it is no
/// response to the request with this id, or is an error, which stays as it is.
pub(crate) fn translated(
    text: &str,
    id: &RequestId,
    form: Form,
    server_info: Option<&str>,
) -> Option<Vec<u8>> {
    let Answer::Result(result) = answer(text, id)? else {
        return None;
    };
    let mut out = Vec::with_capacity(text.len());
    let written = write_response(&mut out, id, form, server_info, |out| {
        crate::protocol::json::encode::put_json(out, result.of(text));
        Ok(())
    });
    if let Err(wrong) = written {
        out.clear();
        RpcError::internal(wrong).write_legacy_response(Some(id), &mut out);
    }
    Some(out)
}

fn write_tool_error(text: &str, id: &RequestId, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Failed<'a> {
        content: [Content<'a>; 1],
        is_error: bool,
    }
    #[derive(Serialize)]
    struct Content<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    let failed = Failed {
        content: [Content {
            r#type: "text",
            text,
        }],
        is_error: true,
    };
    let written = begin(out, id, |out| sse::encode(out, &failed));
    debug_assert!(written.is_ok(), "a text serializes");
    out.push(b'}');
}

/// Says what a client was to be asked.
fn unasked(requests: &str) -> String {
    #[derive(Deserialize)]
    struct Request {
        method: String,
        #[serde(default)]
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        message: Option<String>,
    }
    let requests: BTreeMap<String, Request> = serde_json::from_str(requests).unwrap_or_default();
    let asked: Vec<String> = requests
        .into_values()
        .map(
            |Request { method, params }| match params.and_then(|params| params.message) {
                Some(message) => format!("{method} {}", quote(&message)),
                None => method,
            },
        )
        .collect();
    if asked.is_empty() {
        return "The request cannot be completed at once, and this client cannot be told to send it again"
            .to_owned();
    }
    format!(
        "The request cannot be completed: it needs input that this client cannot be asked for: {}",
        asked.join(", ")
    )
}

/// The result of an `initialize` request, from that of `server/discover`.
fn initialize_result(
    discovered: &str,
    version: &str,
    server_info: Option<&str>,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Discovered<'a> {
        #[serde(borrow, default)]
        capabilities: BTreeMap<String, &'a RawValue>,
        #[serde(borrow, default)]
        instructions: Option<&'a RawValue>,
        #[serde(borrow, default)]
        _meta: Option<BTreeMap<String, &'a RawValue>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized<'a> {
        protocol_version: &'a str,
        capabilities: BTreeMap<&'a str, Box<RawValue>>,
        server_info: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a RawValue>,
    }

    let discovered: Discovered<'_> = serde_json::from_str(discovered)?;
    let named = discovered
        ._meta
        .as_ref()
        .and_then(|meta| meta.get(SERVER_INFO).copied());
    let server_info = match named.filter(|named| named.get().starts_with('{')) {
        Some(named) => named,
        None => serde_json::from_str(server_info.unwrap_or(UNNAMED))?,
    };
    let capabilities = discovered.capabilities.iter();
    let capabilities = capabilities.filter_map(|(name, value)| kept(name, value).transpose());
    let initialized = Initialized {
        protocol_version: version,
        capabilities: capabilities.collect::<serde_json::Result<_>>()?,
        server_info,
        instructions: discovered.instructions,
    };
    let mut out = Vec::new();
    sse::encode(&mut out, &initialized)?;
    Ok(out)
}

/// A capability, without what is promised in it that a client of an earlier revision would not get.
fn kept<'a>(
    name: &'a str,
    value: &RawValue,
) -> serde_json::Result<Option<(&'a str, Box<RawValue>)>> {
    Ok(match name {
        // Extensions are of the modern revision.
        "extensions" => None,
        // No such client hears of changes.
        "tools" | "prompts" | "resources" if value.get().starts_with('{') => {
            let mut parts: BTreeMap<String, &RawValue> = serde_json::from_str(value.get())?;
            parts.remove("listChanged");
            parts.remove("subscribe");
            Some((name, serde_json::value::to_raw_value(&parts)?))
        }
        _ => Some((name, value.to_owned())),
    })
}
