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
    fn a_result_loses_its_type_and_gets_nothing() {
        for (result, want) in [
            ("{}", "{}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"resultType":"complete"}"#, "{}"),
            (r#"{"resultType":null}"#, "{}"),
            (r#"{"resultType":"complete","a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"resultType":"complete"}"#, r#"{"a":1}"#),
            (
                r#"{"a":1,"resultType":null,"b":{"resultType":"complete"}}"#,
                r#"{"a":1,"b":{"resultType":"complete"}}"#,
            ),
            (r#"{"result\u0054ype":"complete","a":1}"#, r#"{"a":1}"#),
            (r#"{"resultType":"compl\u0065te","a":1}"#, r#"{"a":1}"#),
            (r#"{"resultType":"complete","resultType":"complete"}"#, "{}"),
            // The last one counts, as for every reader.
            (
                r#"{"resultType":"input_required","a":1,"resultType":"complete"}"#,
                r#"{"a":1}"#,
            ),
            // What else the modern revision has stays; these clients pass it over.
            (
                r#"{"_meta":null,"ttlMs":1,"inputRequests":{}}"#,
                r#"{"_meta":null,"ttlMs":1,"inputRequests":{}}"#,
            ),
        ] {
            for form in [TOOL, OTHER] {
                let id = RequestId::from(7);
                let got = response_to(&id, result, form, Some(r#"{"name":"s","version":"1"}"#));
                let want = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{want}}}"#);
                assert_eq!(got.unwrap(), want, "{result}");
            }
        }
    }

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

    #[test]
    fn a_result_of_a_type_that_is_not_known_is_a_failure_that_names_it() {
        for result_type in ["\"later\"", "\"Complete\"", "\"\"", "\"l\\u0061ter\""] {
            let result = format!(r#"{{"resultType":{result_type},"a":1}}"#);
            for form in [TOOL, OTHER] {
                let said = failure(&response(&result, form).unwrap(), form);
                assert!(said.contains(result_type), "{said}");
            }
        }
    }

    #[test]
    fn an_id_keeps_its_digits_and_its_type() {
        for id in ["36893488147419103233", "-0", "\"7\"", "\"\u{e9}\"", "0"] {
            let id: RequestId = serde_json::from_str(id).unwrap();
            let begins = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
            let asks = r#"{"resultType":"input_required"}"#;
            for (result, form) in [
                ("{}", TOOL),
                ("{}", Form::Initialize(NEWEST)),
                (asks, TOOL),
                (asks, OTHER),
                (asks, Form::Initialize(NEWEST)),
            ] {
                let response = response_to(&id, result, form, None).unwrap();
                assert!(response.starts_with(&begins), "{response}");
            }
            for form in [TOOL, OTHER] {
                let lacking = RpcError::missing_capability(json!({}));
                let (_, response) = error(&lacking, form, Some(&id));
                assert!(response.starts_with(&begins), "{response}");
            }
        }
    }

    // Errors

    fn error(error: &RpcError, form: Form, id: Option<&RequestId>) -> (u16, String) {
        let mut out = Vec::new();
        let status = write_error(error, form, id, &mut out);
        (status.as_u16(), String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_error_comes_with_200_unless_it_was_given_a_status() {
        let id = RequestId::from(7);
        let forms = [TOOL, OTHER, Form::Initialize(NEWEST)];
        for (code, want) in [
            (codes::PARSE_ERROR, -32700),
            (codes::INVALID_REQUEST, -32600),
            (codes::METHOD_NOT_FOUND, -32601),
            (codes::INVALID_PARAMS, -32602),
            (codes::INTERNAL_ERROR, -32603),
            (codes::HEADER_MISMATCH, -32020),
            (codes::UNSUPPORTED_PROTOCOL_VERSION, -32022),
            (codes::LEGACY_RESOURCE_NOT_FOUND, -32002),
            (1, 1),
        ] {
            let plain = RpcError::new(code, "m").with_data(json!({"a": 1}));
            let json = |id: &str| {
                format!(
                    r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{want},"message":"m","data":{{"a":1}}}}}}"#
                )
            };
            for form in forms {
                let got = error(&plain, form, Some(&id));
                assert_eq!(got, (200, json(",\"id\":7")), "{form:?}");
                assert_eq!(error(&plain, form, None), (200, json("")));
                for status in [400, 404, 418, 500] {
                    let status = StatusCode::from_u16(status).unwrap();
                    let got = error(&plain.clone().with_status(status), form, Some(&id));
                    assert_eq!(got, (status.as_u16(), json(",\"id\":7")), "{form:?}");
                }
            }
        }
    }

    #[test]
    fn a_resource_that_is_not_there_has_the_code_of_its_era() {
        let id = RequestId::from(7);
        let missing = RpcError::resource_not_found("a://b");
        let json = |code: i64, id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":"Resource not found: a://b","data":{{"uri":"a://b"}}}}}}"#
            )
        };
        for form in [TOOL, OTHER] {
            let got = error(&missing, form, Some(&id));
            assert_eq!(got, (200, json(-32002, ",\"id\":7")));
            assert_eq!(error(&missing, form, None), (200, json(-32002, "")));
        }
        // However it was changed since.
        let changed = missing.clone().with_status(StatusCode::NOT_FOUND);
        let (status, response) = error(&changed.with_data(1).with_message("m"), OTHER, Some(&id));
        assert_eq!(status, 404);
        assert!(response.contains(r#""code":-32002,"message":"m","data":1"#));
        // The same code for another reason stays.
        let (_, response) = error(&RpcError::invalid_params("m"), OTHER, Some(&id));
        assert!(response.contains("-32602"));
        let mut modern = Vec::new();
        missing.write_response(Some(&id), &mut modern);
        assert_eq!(
            String::from_utf8(modern).unwrap(),
            json(-32602, ",\"id\":7")
        );
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

    #[test]
    fn a_response_that_a_handler_wrote_is_put_into_form() {
        let id = RequestId::from(7);
        for (text, want) in [
            (
                r#" {"id":7,"jsonrpc":"2.0","result":{"a": 1,"resultType":"complete"}} "#,
                Some(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#),
            ),
            (
                "{\"id\":7,\"jsonrpc\":\"2.0\",\"result\":{\n}}",
                Some("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{ }}"),
            ),
            // Errors stay, and so does what is no response to this request.
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"m"}}"#,
                None,
            ),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"result":[]}"#, None),
            (r#"{"id":7,"result":{}}"#, None),
            ("hello", None),
            ("", None),
        ] {
            let got = translated(text, &id, TOOL, None);
            let got = got.map(|got| String::from_utf8(got).unwrap());
            assert_eq!(got.as_deref(), want, "{text}");
        }
        let of = |result: &str, form| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
            String::from_utf8(translated(&text, &id, form, None).unwrap()).unwrap()
        };
        let asks = r#"{"resultType":"input_required"}"#;
        failure(&of(asks, TOOL), TOOL);
        failure(&of(asks, OTHER), OTHER);
        // What cannot be put into form is a failure of the server.
        let said = failure(&of(r#"{"resultType":7}"#, TOOL), OTHER);
        assert!(said.contains("`resultType`"), "{said}");
        let said = failure(
            &of(r#"{"capabilities":7}"#, Form::Initialize(NEWEST)),
            OTHER,
        );
        assert!(said.contains("server/discover"), "{said}");
        let initialized = of(r#"{"capabilities":{}}"#, Form::Initialize(NEWEST));
        assert!(initialized.contains(r#""protocolVersion":"2025-11-25""#));
    }

    // The answer to an initialize request

    const NEWEST: &str = "2025-11-25";

    fn initialized(discovered: Value, option: Option<&str>) -> Value {
        let form = Form::Initialize(NEWEST);
        let response = response_to(&7.into(), &discovered.to_string(), form, option).unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        assert_eq!(response["id"], 7);
        assert_eq!(response["jsonrpc"], "2.0");
        response["result"].clone()
    }

    #[test]
    fn an_initialize_result_has_the_version_that_was_chosen_and_no_more_than_it_may() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let discovered = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Be \"kind\".\n","ttlMs":1,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"x":1}}"#;
            assert_eq!(
                response(discovered, Form::Initialize(version)).unwrap(),
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}},"instructions":"Be \"kind\".\n"}}}}"#
                )
            );
        }
        // What must be there is, whatever was discovered.
        assert_eq!(
            response("{}", Form::Initialize(NEWEST)).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"unnamed","version":"0"}}}"#
        );
    }

    #[test]
    fn a_server_is_named_by_its_result_then_by_the_option_then_by_nobody() {
        let own = json!({"name": "own", "version": "1", "icons": [{"src": "a"}]});
        let option = r#"{"name":"option","version":"2"}"#;
        let unnamed = json!({"name": "unnamed", "version": "0"});
        for (meta, option, want) in [
            (json!({SERVER_INFO: own}), Some(option), own.clone()),
            (json!({SERVER_INFO: own}), None, own.clone()),
            (
                json!({}),
                Some(option),
                json!({"name": "option", "version": "2"}),
            ),
            (
                json!(null),
                Some(option),
                json!({"name": "option", "version": "2"}),
            ),
            (
                json!({SERVER_INFO: "own"}),
                Some(option),
                json!({"name": "option", "version": "2"}),
            ),
            (json!({SERVER_INFO: null}), None, unnamed.clone()),
            (json!({SERVER_INFO: ["own"]}), None, unnamed.clone()),
            (json!({}), None, unnamed.clone()),
        ] {
            let result = initialized(json!({"capabilities": {}, "_meta": meta}), option);
            assert_eq!(result["serverInfo"], want, "{meta} {option:?}");
            assert!(result.get("_meta").is_none());
        }
        assert_eq!(initialized(json!({}), None)["serverInfo"], unnamed);
    }

    #[test]
    fn capabilities_promise_what_an_old_client_gets() {
        let both = json!({"listChanged": true, "subscribe": true});
        for (discovered, want) in [
            (json!({}), json!({})),
            (
                json!({"tools": both, "prompts": both, "resources": both}),
                json!({"tools": {}, "prompts": {}, "resources": {}}),
            ),
            (
                json!({"tools": {"listChanged": false, "x": {"listChanged": true}}}),
                json!({"tools": {"x": {"listChanged": true}}}),
            ),
            (json!({"extensions": {"a/b": {}}}), json!({})),
            (
                json!({"logging": {}, "completions": {}, "experimental": {"a": both}}),
                json!({"logging": {}, "completions": {}, "experimental": {"a": both}}),
            ),
            (json!({"later": both}), json!({"later": both})),
            // What is odd is the handler's to answer for.
            (json!({"tools": null}), json!({"tools": null})),
            (json!({"logging": 7}), json!({"logging": 7})),
        ] {
            let result = initialized(json!({"capabilities": discovered}), None);
            assert_eq!(result["capabilities"], want, "{discovered}");
        }
        // Verbatim, to the digit, and whatever is escaped.
        let text = r#"{"capabilities":{"experimental":{"n":1.50,"big":36893488147419103233,"\u0061":"\u2028"},"t\u006fols":{"list\u0043hanged":true,"z":1e2},"\u0065xtensions":{}}}"#;
        let response = response(text, Form::Initialize(NEWEST)).unwrap();
        let want = r#""capabilities":{"experimental":{"n":1.50,"big":36893488147419103233,"\u0061":"\u2028"},"tools":{"z":1e2}}"#;
        assert!(response.contains(want), "{response}");
    }

    #[test]
    fn instructions_are_kept() {
        for (discovered, want) in [
            (json!({}), None),
            (json!({"instructions": null}), None),
            (json!({"instructions": ""}), Some(json!(""))),
            (
                json!({"instructions": "Be kind.\u{2028}"}),
                Some(json!("Be kind.\u{2028}")),
            ),
        ] {
            let result = initialized(discovered.clone(), None);
            assert_eq!(result.get("instructions"), want.as_ref(), "{discovered}");
        }
        // On one line for every reader.
        let raw = "{\"instructions\":\"a\u{2028}b\",\"capabilities\":{\"x\":{\n}}}";
        let response = response(raw, Form::Initialize(NEWEST)).unwrap();
        assert!(response.contains(r#""a\u2028b""#), "{response}");
        assert!(!response.contains(['\n', '\u{2028}']), "{response}");
    }

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

    #[test]
    fn whatever_is_written_is_one_line_for_the_most_naive_reader() {
        let nasty = "a\n\r\0\u{85}\u{2028}\u{2029}\"\\";
        let asks = json!({
            "resultType": "input_required",
            "inputRequests": {"a": {"method": nasty, "params": {"message": nasty}}},
        });
        let lacking = RpcError::missing_capability(json!({nasty: {}})).with_message(nasty);
        let named = json!({"_meta": {SERVER_INFO: {"name": nasty}}, "capabilities": {nasty: {}}});
        for written in [
            response(&asks.to_string(), TOOL).unwrap(),
            response(&asks.to_string(), OTHER).unwrap(),
            error(&lacking, TOOL, Some(&7.into())).1,
            error(&lacking, OTHER, Some(&7.into())).1,
            response(&named.to_string(), Form::Initialize(NEWEST)).unwrap(),
        ] {
            assert!(
                !written.contains(['\n', '\r', '\0', '\u{85}', '\u{2028}', '\u{2029}']),
                "{written:?}"
            );
            serde_json::from_str::<Value>(&written).unwrap();
        }
    }
}
