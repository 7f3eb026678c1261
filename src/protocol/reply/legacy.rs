//! What a client of an earlier revision gets in place of a modern result or error.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    let [result_type, asked] =
        find(text, object, ["resultType", "inputRequests"]).map_err(no_json)?;
    let failure = match result_type {
        None => None,
        Some(it) if it.is_null() || it.as_text().is_some_and(|it| it.is(text, "complete")) => None,
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
        if let Form::Initialize(version) = form {
            let initialized = initialize_result(object.of(text), version, server_info);
            let initialized = initialized.map_err(|e| {
                format!("the result of `server/discover` is not what it must be: {e}")
            })?;
            out.truncate(start);
            out.extend_from_slice(&initialized);
        } else if result_type.is_some() {
            remove(out, object, "resultType").map_err(no_json)?;
        }
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
        Some(id) => {
            // The model sees no data.
            let text = match error.data() {
                Some(data) => format!("{} ({})", error.message(), data.as_str()),
                None => error.message().to_owned(),
            };
            write_tool_error(&text, id, out);
        }
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
    let requests: BTreeMap<String, Value> = serde_json::from_str(requests).unwrap_or_default();
    let asked = requests.values().filter_map(|request| {
        let method = request["method"].as_str()?;
        Some(match request["params"]["message"].as_str() {
            Some(message) => format!("{method} {}", quote(message)),
            None => method.to_owned(),
        })
    });
    let asked: Vec<String> = asked.collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOOL: Form = Form::Legacy { tool: true };
    const OTHER: Form = Form::Legacy { tool: false };

    /// The response that carries this result.
    fn response(result: &str, form: Form) -> Result<String, String> {
        response_to(&RequestId::from(7), result, form, None)
    }

    fn response_to(
        id: &RequestId,
        result: &str,
        form: Form,
        server_info: Option<&str>,
    ) -> Result<String, String> {
        let mut out = b"before".to_vec();
        write_response(&mut out, id, form, server_info, |out| {
            out.extend_from_slice(result.as_bytes());
            Ok(())
        })?;
        Ok(String::from_utf8(out).unwrap().split_off("before".len()))
    }

    /// What is said in the place of a result: as a failure of the tool, or as an error.
    #[track_caller]
    fn failure(response: &str, form: Form) -> String {
        let response: Value = serde_json::from_str(response).unwrap();
        let said = if form == TOOL {
            let said = response["result"]["content"][0]["text"].clone();
            let content = json!([{"type": "text", "text": said}]);
            let result = json!({"content": content, "isError": true});
            assert_eq!(
                response,
                json!({"jsonrpc": "2.0", "id": 7, "result": result})
            );
            said
        } else {
            let said = response["error"]["message"].clone();
            let error = json!({"code": codes::INTERNAL_ERROR, "message": said});
            assert_eq!(response, json!({"jsonrpc": "2.0", "id": 7, "error": error}));
            said
        };
        said.as_str().unwrap().to_owned()
    }

    // Results

    #[test]
    fn a_result_is_an_object_and_its_type_a_string() {
        for result in ["null", "[]", "7", "\"{}\"", "true"] {
            for form in [TOOL, OTHER, Form::Initialize(NEWEST)] {
                let wrong = response(result, form).unwrap_err();
                assert!(wrong.contains("object"), "{result}: {wrong}");
            }
        }
        for result_type in ["7", "{}", "[]", "false"] {
            let result = format!(r#"{{"resultType":{result_type}}}"#);
            for form in [TOOL, OTHER, Form::Initialize(NEWEST)] {
                let wrong = response(&result, form).unwrap_err();
                assert!(wrong.contains("`resultType`"), "{result}: {wrong}");
            }
        }
        for broken in ["{", r#"{"a"}"#, r#"{"a":1,}"#] {
            assert!(response(broken, TOOL).is_err(), "{broken}");
        }
        let unserializable = std::collections::BTreeMap::from([((1, 2), 3)]);
        let id = RequestId::from(7);
        let write = |out: &mut Vec<u8>| sse::encode(out, &unserializable);
        let wrong = write_response(&mut Vec::new(), &id, TOOL, None, write).unwrap_err();
        assert!(wrong.contains("serialize"), "{wrong}");
    }

    #[test]
    fn a_result_that_asks_is_a_failure_that_says_what_was_to_be_asked() {
        let alone = "cannot be told to send it again";
        for (asked, words) in [
            // Nothing is asked: the client was to try again.
            ("", &[alone][..]),
            (r#","requestState":"s""#, &[alone]),
            (r#","inputRequests":{}"#, &[alone]),
            (r#","inputRequests":null"#, &[alone]),
            (r#","inputRequests":[1]"#, &[alone]),
            (r#","inputRequests":{"a":7,"b":{"method":7}}"#, &[alone]),
            (
                r#","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Who are \"you\"?"}}}"#,
                &[": elicitation/create 'Who are \"you\"?'"],
            ),
            (
                r#","inputRequests":{"a":{"method":"roots/list"}}"#,
                &[": roots/list"],
            ),
            (
                r#","input\u0052equests":{"a":{"method":"roots/list","params":null}}"#,
                &[": roots/list"],
            ),
            (
                r#","inputRequests":{"b":{"method":"roots/list"},"a":{"method":"sampling/createMessage","params":{"messages":[]}}}"#,
                &[": sampling/createMessage, roots/list"],
            ),
            // One that is odd does not hide the others.
            (
                r#","inputRequests":{"a":7,"b":{"method":"roots/list"},"c":{}}"#,
                &[": roots/list"],
            ),
            (
                r#","inputRequests":{"a":{"method":"elicitation/create","params":{"message":7}}}"#,
                &[": elicitation/create"],
            ),
            (
                r#","inputRequests":{"a":{"method":"elicitation/create","params":[1]}}"#,
                &[": elicitation/create"],
            ),
        ] {
            let result = format!(r#"{{"a":1,"resultType":"input_required"{asked}}}"#);
            for form in [TOOL, OTHER] {
                let said = failure(&response(&result, form).unwrap(), form);
                for word in words {
                    assert!(said.contains(word), "{result}: {said}");
                }
                assert_eq!(said.contains("needs input"), words != [alone], "{said}");
            }
        }
        let escaped = r#"{"result\u0054ype":"input\u005frequired"}"#;
        let said = failure(&response(escaped, TOOL).unwrap(), TOOL);
        assert!(said.contains(alone), "{said}");
    }

    // Errors

    fn error(error: &RpcError, form: Form, id: Option<&RequestId>) -> (u16, String) {
        let mut out = Vec::new();
        let status = write_error(error, form, id, &mut out);
        (status.as_u16(), String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_capability_that_a_tool_lacks_is_a_failure_that_names_it() {
        let lacking = RpcError::missing_capability(json!({"sampling": {"tools": {}}}));
        let (status, response) = error(&lacking, TOOL, Some(&7.into()));
        assert_eq!(status, 200);
        let said = failure(&response, TOOL);
        assert!(said.contains(r#"{"sampling":{"tools":{}}}"#), "{said}");

        let own = RpcError::new(codes::MISSING_REQUIRED_CLIENT_CAPABILITY, "I \"must\" ask");
        let (_, response) = error(&own, TOOL, Some(&7.into()));
        assert_eq!(failure(&response, TOOL), "I \"must\" ask");

        // On every other method, and to a notification, it is an error like any.
        for (form, id) in [
            (OTHER, Some(RequestId::from(7))),
            (Form::Initialize(NEWEST), Some(7.into())),
            (TOOL, None),
        ] {
            let (status, response) = error(&lacking, form, id.as_ref());
            assert_eq!(status, 200);
            let response: Value = serde_json::from_str(&response).unwrap();
            assert_eq!(response["error"]["code"], -32021);
            assert_eq!(
                response["error"]["data"]["requiredCapabilities"]["sampling"],
                json!({"tools": {}})
            );
        }
    }

    // What a handler wrote by itself

    // The answer to an initialize request

    const NEWEST: &str = "2025-11-25";

    #[test]
    fn an_odd_result_of_discover_is_an_error() {
        for discovered in [
            json!({"capabilities": null}),
            json!({"capabilities": []}),
            json!({"capabilities": "tools"}),
            json!({"_meta": 7}),
            json!({"_meta": []}),
        ] {
            let wrong = response(&discovered.to_string(), Form::Initialize(NEWEST)).unwrap_err();
            assert!(wrong.contains("`server/discover`"), "{wrong}");
        }
        // One that asks is none at all.
        for result_type in ["input_required", "later"] {
            let discovered = json!({"resultType": result_type, "capabilities": {}});
            let response = response(&discovered.to_string(), Form::Initialize(NEWEST)).unwrap();
            failure(&response, OTHER);
        }
    }
}
