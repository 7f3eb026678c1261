//! What a request of an earlier revision asks for: of the handler, or of the layer itself.

use bytes::Bytes;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::Message;
use crate::protocol::era::{DISCOVER, LISTEN, NEWEST_LEGACY, legacy_version};
use crate::protocol::id::RequestId;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::legacy::{Form, write_error};
use crate::protocol::reply::rpc_error::RpcError;

/// Who answers a message, and how.
#[derive(Debug)]
pub(crate) enum Task {
    /// The handler answers this message, in this form.
    Handle(Message, Form),
    /// The response, as JSON.
    Reply(StatusCode, Bytes),
    /// A notification that has nothing to say to a handler.
    Taken,
}

/// Sorts a message of an earlier revision. `uri` is the one that it was posted to.
pub(crate) fn sort(message: Message, uri: &Uri) -> Task {
    let Some(id) = message.id() else {
        return match message.method() {
            // Each request is answered by itself, so there is no handshake to end, and nothing that
            // a client could cancel but by closing the response.
            "notifications/initialized" | "notifications/cancelled" => Task::Taken,
            _ => Task::Handle(message, Form::Legacy { tool: false }),
        };
    };
    let answer = match message.method() {
        "initialize" => match discover(&message, id, uri) {
            Ok(task) => return task,
            Err(error) => Err(error),
        },
        "ping" => Ok(()),
        "logging/setLevel" => set_level(&message),
        method @ (DISCOVER | LISTEN) => Err(RpcError::method_not_found(method)),
        method => {
            let tool = method == "tools/call";
            return Task::Handle(message, Form::Legacy { tool });
        }
    };
    let mut json = Vec::with_capacity(64);
    let status = match answer {
        Ok(()) => {
            json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            id.write_json(&mut json);
            json.extend_from_slice(br#","result":{}}"#);
            StatusCode::OK
        }
        Err(error) => write_error(&error, Form::Legacy { tool: false }, Some(id), &mut json),
    };
    Task::Reply(status, json.into())
}

/// Checks a level. Where clients can be remembered, it is used.
fn set_level(message: &Message) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct SetLevel {
        level: String,
    }
    let SetLevel { level } = message.params()?;
    match level.parse::<LogLevel>() {
        Ok(_) => Ok(()),
        Err(error) => Err(RpcError::invalid_params(format!("`params.level`: {error}"))),
    }
}

/// Turns an `initialize` request into a `server/discover` request for the handler.
fn discover(message: &Message, id: &RequestId, uri: &Uri) -> Result<Task, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, default)]
        client_info: Option<&'a RawValue>,
    }
    let Initialize {
        protocol_version,
        capabilities,
        client_info,
    } = message.params()?;
    let version = legacy_version(protocol_version.as_bytes()).unwrap_or(NEWEST_LEGACY);
    let capabilities = object("capabilities", capabilities)?.unwrap_or("{}");
    let client_info = object("clientInfo", client_info)?;

    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut body);
    let mut params = format!(
        r#","method":"{DISCOVER}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
    );
    if let Some(info) = client_info {
        params.push_str(r#","io.modelcontextprotocol/clientInfo":"#);
        params.push_str(info);
    }
    params.push_str("}}}");
    body.extend_from_slice(params.as_bytes());
    // What a client said may nest too deeply for a place that is deeper than where it stood.
    let message = Message::read(body.into(), Some(version), uri)
        .map_err(|error| RpcError::invalid_params(error.message().to_owned()))?;
    Ok(Task::Handle(message, Form::Initialize(version)))
}

fn object<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<&'a str>, RpcError> {
    match value.map(RawValue::get) {
        None => Ok(None),
        Some(object) if object.starts_with('{') => Ok(Some(object)),
        Some(_) => Err(RpcError::invalid_params(format!(
            "`params.{name}` must be an object"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::era::Era;
    use serde_json::{Value, json};

    const URI: &str = "/mcp?x=1";

    fn sorted(text: &str) -> Task {
        let uri = Uri::from_static(URI);
        let message = Message::read(text.to_owned().into(), Some("2025-06-18"), &uri);
        sort(message.expect(text), &uri)
    }

    /// A request with these parameters, if they are not null.
    fn request(method: &str, params: Value) -> String {
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        message.to_string()
    }

    /// The response that the layer makes by itself.
    #[track_caller]
    fn replied(text: &str) -> Value {
        match sorted(text) {
            Task::Reply(status, json) => {
                assert_eq!(status, StatusCode::OK, "{text}");
                let response: Value = serde_json::from_slice(&json).unwrap();
                assert_eq!(response["jsonrpc"], "2.0", "{text}");
                response
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[track_caller]
    fn refused(text: &str, code: i64, says: &str) {
        let response = replied(text);
        assert_eq!(response["id"], 1, "{text}");
        assert_eq!(response["error"]["code"], code, "{text}");
        let said = response["error"]["message"].as_str().unwrap();
        assert!(said.contains(says), "{text}: {says:?} is not in {said:?}");
    }

    #[track_caller]
    fn handled(text: &str) -> (Message, Form) {
        match sorted(text) {
            Task::Handle(message, form) => (message, form),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_handler_answers_what_the_layer_does_not() {
        for (method, tool) in [
            ("tools/call", true),
            ("tools/list", false),
            ("Tools/Call", false),
            ("prompts/get", false),
            ("resources/read", false),
            ("resources/subscribe", false),
            ("completion/complete", false),
            ("initialized", false),
            ("Ping", false),
            ("", false),
            ("notifications/initialized", false),
        ] {
            let text = request(method, json!({"name": "n", "_meta": {"progressToken": 1}}));
            let (message, form) = handled(&text);
            assert_eq!(form, Form::Legacy { tool }, "{method}");
            assert_eq!(message.method(), method);
            assert_eq!(message.body(), &text);
        }
        let (_, form) = handled(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll"}"#);
        assert_eq!(form, Form::Legacy { tool: true });
    }

    #[test]
    fn a_notification_reaches_the_handler_if_it_has_something_to_say() {
        for (method, taken) in [
            ("notifications/initialized", true),
            ("notifications/cancelled", true),
            ("notifications/progress", false),
            ("notifications/roots/list_changed", false),
            ("notifications/own", false),
            ("notifications/Initialized", false),
            // Without an id these want no answer.
            ("initialize", false),
            ("ping", false),
            ("logging/setLevel", false),
            ("server/discover", false),
            ("subscriptions/listen", false),
            ("tools/call", false),
        ] {
            let text = json!({"jsonrpc": "2.0", "method": method}).to_string();
            match sorted(&text) {
                Task::Taken => assert!(taken, "{method}"),
                Task::Handle(message, form) => {
                    assert!(!taken, "{method}");
                    assert_eq!(form, Form::Legacy { tool: false }, "{method}");
                    assert_eq!(message.body(), &text);
                }
                Task::Reply(..) => panic!("{method} is answered"),
            }
        }
    }

    #[test]
    fn a_ping_is_answered_with_nothing() {
        for params in [
            json!(null),
            json!({}),
            json!({"_meta": {"progressToken": 1}}),
        ] {
            let response = replied(&request("ping", params));
            assert_eq!(response, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        }
    }

    #[test]
    fn a_level_is_one_that_is_known() {
        for level in [
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
        ] {
            let response = replied(&request("logging/setLevel", json!({"level": level})));
            assert_eq!(response["result"], json!({}), "{level}");
        }
        for (params, says) in [
            (json!(null), "missing field `level`"),
            (json!({}), "missing field `level`"),
            (json!({"level": null}), "`params.level`"),
            (json!({"level": 7}), "`params.level`"),
            (json!({"level": ["info"]}), "`params.level`"),
            (json!({"level": ""}), "`params.level`"),
            (json!({"level": "loud"}), "expected debug, info"),
            (json!({"level": "Info"}), "expected debug, info"),
        ] {
            refused(&request("logging/setLevel", params), -32602, says);
        }
    }

    #[test]
    fn an_old_request_for_what_only_the_modern_revision_has_finds_no_method() {
        for method in [DISCOVER, LISTEN] {
            for params in [
                json!(null),
                json!({"notifications": {"toolsListChanged": true}}),
            ] {
                refused(&request(method, params), -32601, method);
            }
        }
    }

    #[test]
    fn an_answer_of_the_layer_has_the_id_to_the_digit() {
        for id in ["36893488147419103233", "-0", "0", "\"1\"", "\"a\\u2028\""] {
            let with_id = |text: String| text.replace(r#""id":1"#, &format!(r#""id":{id}"#));
            for text in [
                request("ping", json!(null)),
                request("logging/setLevel", json!({"level": "info"})),
                request("logging/setLevel", json!(null)),
                request("initialize", json!(null)),
                request(LISTEN, json!(null)),
            ] {
                let Task::Reply(_, json) = sorted(&with_id(text)) else {
                    panic!("{id} is not answered")
                };
                let begins = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
                assert!(json.starts_with(begins.as_bytes()), "{json:?}");
            }
            let initialize = request("initialize", json!({"protocolVersion": "2025-06-18"}));
            let (message, _) = handled(&with_id(initialize));
            assert_eq!(message.id().unwrap().to_string(), id);
        }
    }

    // Initialize

    #[test]
    fn the_version_is_the_one_asked_for_or_the_newest_that_begins_so() {
        for (asked, chosen) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            // A modern one has no such handshake.
            ("2026-07-28", "2025-11-25"),
            ("2024-10-07", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
            (" 2025-06-18", "2025-11-25"),
            ("DRAFT-2025-v2", "2025-11-25"),
            ("1.0", "2025-11-25"),
            ("", "2025-11-25"),
            ("\"\\", "2025-11-25"),
        ] {
            let (message, form) =
                handled(&request("initialize", json!({"protocolVersion": asked})));
            assert_eq!(form, Form::Initialize(chosen), "{asked}");
            assert_eq!(message.meta().protocol_version(), Some(chosen), "{asked}");
            assert_eq!(message.meta().era(), Era::Legacy);
            let body: Value = serde_json::from_slice(message.body()).unwrap();
            assert_eq!(
                body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
                chosen
            );
        }
    }

    #[test]
    fn initialize_asks_the_handler_to_discover() {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {"listChanged": true}},
            "clientInfo": {"name": "n", "version": "1"},
            "_meta": {"progressToken": 1},
            "own": 1,
        });
        let (message, _) = handled(&request("initialize", params));
        assert_eq!(message.id(), Some(&1.into()));
        assert_eq!(message.method(), DISCOVER);
        assert_eq!(message.name(), None);
        assert!(!message.is_subscription());
        let meta = message.meta();
        assert_eq!(meta.endpoint(), URI);
        assert_eq!(
            meta.client_info().unwrap().as_str(),
            r#"{"name":"n","version":"1"}"#
        );
        assert_eq!(
            meta.client_capabilities().unwrap().as_str(),
            r#"{"roots":{"listChanged":true}}"#
        );
        // The client waits for one answer, and hears nothing before.
        assert_eq!(meta.progress_token(), None);
        assert_eq!(meta.log_level(), None);
        let body: Value = serde_json::from_slice(message.body()).unwrap();
        assert_eq!(
            body,
            json!({"jsonrpc": "2.0", "id": 1, "method": DISCOVER, "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2025-06-18",
                "io.modelcontextprotocol/clientCapabilities": {"roots": {"listChanged": true}},
                "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"},
            }}})
        );
    }

    #[test]
    fn what_a_client_says_of_itself_is_passed_on_as_it_wrote_it() {
        for (params, capabilities, info) in [
            (r#""protocolVersion":"1""#, "{}", None),
            (
                r#""protocolVersion":"1","capabilities":null,"clientInfo":null"#,
                "{}",
                None,
            ),
            (
                "\"capabilities\": { \"n\": 1.50,\n\"big\":36893488147419103233 } ,\"protocolVersion\":\"1\"",
                "{ \"n\": 1.50,\n\"big\":36893488147419103233 }",
                None,
            ),
            (
                r#""protocolV\u0065rsion":"1","client\u0049nfo":{"name":"\ud83d\ude00\u2028"}"#,
                "{}",
                Some(r#"{"name":"\ud83d\ude00\u2028"}"#),
            ),
            // It cannot say anything beside, by whatever it writes.
            (
                r#""protocolVersion":"1","capabilities":{"a":"}}}"},"clientInfo":{"io.modelcontextprotocol/logLevel":"debug"}"#,
                r#"{"a":"}}}"}"#,
                Some(r#"{"io.modelcontextprotocol/logLevel":"debug"}"#),
            ),
        ] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{params}}}}}"#
            );
            let (message, _) = handled(&text);
            let meta = message.meta();
            assert_eq!(meta.client_capabilities().unwrap().as_str(), capabilities);
            assert_eq!(meta.client_info().map(|info| info.as_str()), info);
            assert_eq!(meta.log_level(), None);
        }
    }

    #[test]
    fn an_initialize_that_is_malformed_is_refused() {
        let with = |name: &str, value: Value| {
            let mut params = json!({"protocolVersion": "2025-06-18"});
            params[name] = value;
            params
        };
        for (params, says) in [
            (json!(null), "missing field `protocolVersion`"),
            (json!({}), "missing field `protocolVersion`"),
            (
                with("protocolVersion", json!(null)),
                "`params.protocolVersion`",
            ),
            (
                with("protocolVersion", json!(7)),
                "`params.protocolVersion`",
            ),
            (
                with("protocolVersion", json!([])),
                "`params.protocolVersion`",
            ),
            (
                with("capabilities", json!([])),
                "`params.capabilities` must be an object",
            ),
            (
                with("capabilities", json!(true)),
                "`params.capabilities` must be an object",
            ),
            (
                with("capabilities", json!("{}")),
                "`params.capabilities` must be an object",
            ),
            (
                with("clientInfo", json!("me")),
                "`params.clientInfo` must be an object",
            ),
            (
                with("clientInfo", json!(7)),
                "`params.clientInfo` must be an object",
            ),
            (
                with("clientInfo", json!([{}])),
                "`params.clientInfo` must be an object",
            ),
        ] {
            refused(&request("initialize", params), -32602, says);
        }
        for twice in [
            r#""protocolVersion":"2025-06-18","protocolVersion":"2024-11-05""#,
            r#""protocolVersion":"2025-06-18","capabilities":{},"capabilities":{}"#,
            r#""protocolVersion":"2025-06-18","clientInfo":{},"clientInfo":{}"#,
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{twice}}}}}"#);
            refused(&text, -32602, "duplicate field");
        }
    }

    /// Where it stands then is one deeper than where it stood.
    #[test]
    fn what_nests_too_deeply_to_be_passed_on_is_refused() {
        let nested = |depth: usize| {
            let (open, close) = (r#"{"a":"#.repeat(depth - 1), "}".repeat(depth - 1));
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{open}{{}}{close}}}}}"#
            )
        };
        let deepest = (1..)
            .take_while(|depth| {
                let text = nested(*depth).into();
                Message::read(text, Some("2025-06-18"), &Uri::from_static(URI)).is_ok()
            })
            .last()
            .unwrap();
        handled(&nested(deepest - 1));
        refused(&nested(deepest), -32602, "128");
    }
}
