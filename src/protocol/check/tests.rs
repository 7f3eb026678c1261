use http::{HeaderName, HeaderValue, Method as HttpMethod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::protocol::level::LogLevel;
use crate::protocol::rejection::Rejection;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

/// A valid call of the tool `echo`.
fn call() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "echo", "arguments": {"value": 1},
            "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}},
        },
    })
}

const CALL: [(&str, &str); 3] = [
    ("MCP-Protocol-Version", "2026-07-28"),
    ("Mcp-Method", "tools/call"),
    ("Mcp-Name", "echo"),
];

/// `call()` with changes: a pointer and a value, or null to remove it.
fn changed(changes: &[(&str, Value)]) -> String {
    let mut body = call();
    for (path, value) in changes {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        let parent = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(&key)),
            _ => drop(parent.insert(key, value.clone())),
        }
    }
    body.to_string()
}

fn check_with(
    list: &[(&str, &str)],
    accepts: Accepts,
    body: impl Into<Vec<u8>>,
) -> Result<Message, Rejection> {
    let uri = Uri::from_static("/mcp?x=1");
    check_body(&headers(list), &uri, accepts, Bytes::from(body.into()))
}

fn check(list: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Result<Message, Rejection> {
    check_with(list, Accepts::Both, body)
}

#[track_caller]
fn refused(
    outcome: Result<Message, Rejection>,
    code: i64,
    id: Option<&str>,
    message: &str,
) -> Rejection {
    let rejection = outcome.expect_err(message);
    let said = rejection.error().message();
    assert!(said.contains(message), "{message:?} is not in {said:?}");
    assert_eq!(rejection.error().code(), code, "{said}");
    let status = if said.contains("event-stream") {
        406
    } else {
        400
    };
    assert_eq!(rejection.status(), status, "{said}");
    assert_eq!(
        rejection.id().map(ToString::to_string).as_deref(),
        id,
        "{said}"
    );
    let json: Value = serde_json::from_slice(&rejection.to_json()).unwrap();
    assert_eq!(json["error"]["message"], *said);
    assert_eq!(json.get("id").map(ToString::to_string).as_deref(), id);
    rejection
}

#[test]
fn a_valid_request_becomes_a_message() {
    let body = changed(&[
        ("/params/_meta/progressToken", json!("t")),
        (
            "/params/_meta/io.modelcontextprotocol~1logLevel",
            json!("warning"),
        ),
        (
            "/params/_meta/io.modelcontextprotocol~1clientInfo",
            json!({"name": "n"}),
        ),
        ("/params/_meta/baggage", json!("a=b")),
    ]);
    let message = check(&CALL, body.clone()).unwrap();
    assert_eq!(message.id(), Some(&1.into()));
    assert_eq!(message.method(), "tools/call");
    assert_eq!(message.name().as_deref(), Some("echo"));
    assert!(!message.is_notification() && !message.is_subscription());
    assert_eq!(message.body(), &body);
    let params: Value = message.raw_params().unwrap().parse().unwrap();
    assert_eq!(params["arguments"]["value"], 1);
    let meta = message.meta();
    assert_eq!(meta.progress_token(), Some(&"t".into()));
    assert_eq!(meta.log_level(), Some(LogLevel::Warning));
    assert_eq!(meta.protocol_version(), Some("2026-07-28"));
    assert_eq!(meta.client_info().unwrap().as_str(), r#"{"name":"n"}"#);
    assert_eq!(meta.client_capabilities().unwrap().as_str(), "{}");
    assert_eq!(meta.baggage(), Some("a=b"));
    assert_eq!(meta.traceparent(), None);
    assert_eq!(meta.endpoint(), "/mcp?x=1");
}

#[test]
fn escapes_in_the_body_change_nothing() {
    let body = r#"{"\u006asonrpc":"2\u002e0","i\u0064":"\u0061","method":"tools\/call","params":
        {"n\u0061me":"\u0065cho","_met\u0061":{"io.modelcontextprotocol\/protocolVersion":"2026\u002d07-28",
        "io.modelcontextprotocol\/clientCapabilities":{},"progressT\u006fken":3,
        "io.modelcontextprotocol\/logLevel":"\u0069nfo"}}}"#;
    let message = check(&CALL, body).unwrap();
    assert_eq!(message.id(), Some(&"a".into()));
    assert_eq!(message.method(), "tools/call");
    assert_eq!(message.name().as_deref(), Some("echo"));
    assert_eq!(message.meta().progress_token(), Some(&3.into()));
    assert_eq!(message.meta().log_level(), Some(LogLevel::Info));
    assert_eq!(message.meta().protocol_version(), Some("2026-07-28"));
}

#[test]
fn what_is_not_one_json_text_is_a_parse_error() {
    let valid = call().to_string();
    for (body, message) in [
        (String::new(), "unexpected end"),
        ("{\"jsonrpc\": ".into(), "unexpected end"),
        (format!("{valid} {{}}"), "expected the end"),
        (format!("{valid},"), "expected the end"),
        (format!("\u{feff}{valid}"), "byte order mark"),
        (valid.replace("\"value\":1", "\"value\":01"), "leading zero"),
        // Syntax comes before shape, wherever it goes wrong.
        (
            "{\"id\":null,\"params\":[],\"x\":tru}".into(),
            "expected a value",
        ),
        ("[1,".into(), "unexpected end"),
        ("[".repeat(200_000), "128"),
    ] {
        refused(check(&CALL, body), codes::PARSE_ERROR, None, message);
    }
    let mut bytes = valid.into_bytes();
    bytes[3] = 0xff;
    refused(
        check(&CALL, bytes),
        codes::PARSE_ERROR,
        None,
        "UTF-8 at byte 3",
    );
}

#[test]
fn what_is_no_request_or_notification_is_invalid() {
    for (body, id, message) in [
        ("[]", None, "no batches"),
        ("42", None, "is a number"),
        ("null", None, "is null"),
        ("\"x\"", None, "is a string"),
        ("{}", None, "`jsonrpc`"),
        (r#"{"id":1,"method":"x"}"#, Some("1"), "`jsonrpc`"),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            Some("1"),
            "`jsonrpc`",
        ),
        (
            r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#,
            Some("1"),
            "`jsonrpc`",
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, None, "`id`"),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
            None,
            "`id` is a boolean",
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
            None,
            "`id` is an object",
        ),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"x"}"#, None, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1e2,"method":"x"}"#, None, "`id`"),
        (
            r#"{"jsonrpc":"2.0","id":"a"}"#,
            Some("\"a\""),
            "`method` is missing",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            Some("1"),
            "`method` is a number",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
            Some("1"),
            "`method`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            Some("1"),
            "response",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
            Some("1"),
            "response",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            Some("1"),
            "`params` is an array",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
            Some("1"),
            "`params` is null",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","params":1}"#,
            None,
            "`params`",
        ),
    ] {
        refused(check(&CALL, body), codes::INVALID_REQUEST, id, message);
    }
}

#[test]
fn what_must_be_there_once_is_not_there_twice() {
    let body = call().to_string();
    let meta = |extra: &str| body.replacen("\"_meta\":{", &format!("\"_meta\":{{{extra},"), 1);
    let params = |extra: &str| body.replacen("\"params\":{", &format!("\"params\":{{{extra},"), 1);
    let top = |extra: &str| body.replacen('{', &format!("{{{extra},"), 1);
    for (text, id, message) in [
        (top(r#""jsonrpc":"2.0""#), Some("1"), "jsonrpc"),
        (top(r#""\u0069d":1"#), None, "'id'"),
        (top(r#""method":"tools/call""#), Some("1"), "method"),
        (top(r#""params":{}"#), Some("1"), "params"),
        (params(r#""_meta":{}"#), Some("1"), "params._meta"),
        (params(r#""n\u0061me":"echo""#), Some("1"), "params.name"),
        (
            meta(r#""progressToken":1,"progressToken":1"#),
            Some("1"),
            "progressToken",
        ),
        (
            meta(&format!(r#""{VERSION}":"2026-07-28""#)),
            Some("1"),
            VERSION,
        ),
        (
            meta(&format!(r#""{CAPABILITIES}":{{}}"#)),
            Some("1"),
            CAPABILITIES,
        ),
        (
            meta(&format!(r#""{INFO}":{{}},"{INFO}":{{}}"#)),
            Some("1"),
            INFO,
        ),
        (
            meta(&format!(r#""{LEVEL}":"info","{LEVEL}":"info""#)),
            Some("1"),
            LEVEL,
        ),
        (
            meta(r#""io.modelcontextprotocol/x":1,"y":1,"io.modelcontextprotocol\/\u0078":1"#),
            Some("1"),
            "io.modelcontextprotocol/x",
        ),
        (
            meta(r#""io.modelcontextprotocol/\ud800":1,"io.modelcontextprotocol/\uD800":1"#),
            Some("1"),
            "io.modelcontextprotocol/",
        ),
    ] {
        refused(check(&CALL, text), codes::INVALID_REQUEST, id, message);
    }
    for text in [
        params(r#""uri":1,"uri":2"#),
        params(r#""x":1,"x":2"#),
        top(r#""x":1,"x":2"#),
        meta(r#""traceparent":1,"traceparent":2"#),
        meta(r#""com.example/x":1,"com.example/x":1"#),
        meta(r#""io.modelcontextprotocol/x":1,"io.modelcontextprotocol/y":1"#),
    ] {
        check(&CALL, text.clone()).expect(&text);
    }
}

#[test]
fn very_many_reserved_keys_are_judged_quickly() {
    let extra: String = (0..60_000)
        .map(|n| format!("\"io.modelcontextprotocol/{n}\":0,"))
        .collect();
    let body = call()
        .to_string()
        .replacen("\"_meta\":{", &format!("\"_meta\":{{{extra}"), 1);
    #[allow(clippy::disallowed_methods)] // The clock is what this is about.
    let started = std::time::Instant::now();
    check(&CALL, body).unwrap();
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn the_version_header_mirrors_the_body_and_is_served() {
    let rest = [CALL[1], CALL[2]];
    let with = |versions: &[&'static str]| {
        let mut list: Vec<_> = versions
            .iter()
            .map(|v| ("MCP-Protocol-Version", *v))
            .collect();
        list.extend(rest);
        list
    };
    let body = call().to_string();
    let version =
        |v: Value| changed(&[("/params/_meta/io.modelcontextprotocol~1protocolVersion", v)]);
    for (list, body, message) in [
        (with(&[]), body.clone(), "is missing"),
        (with(&["2025-11-25"]), body.clone(), "differs"),
        (
            with(&["2026-07-28"]),
            version(json!("2025-11-25")),
            "differs",
        ),
        (
            with(&["2026-07-28", "2025-11-25"]),
            body.clone(),
            "repeated",
        ),
        (with(&["2026-07-28é"]), body.clone(), "visible ASCII"),
        (with(&[""]), body.clone(), "differs"),
    ] {
        let rejection = refused(
            check(&list, body),
            codes::HEADER_MISMATCH,
            Some("1"),
            message,
        );
        assert!(rejection.error().message().contains("MCP-Protocol-Version"));
    }
    for list in [
        with(&["2026-07-28", " 2026-07-28\t"]),
        with(&[" 2026-07-28 "]),
    ] {
        check(&list, body.clone()).unwrap();
    }
    // Before what else is missing, and also without a version in the body.
    for body in [
        version(json!("1900-01-01")),
        version(Value::Null),
        version(json!(7)),
    ] {
        let outcome = check(&[("MCP-Protocol-Version", "1900-01-01")], body);
        let rejection = refused(
            outcome,
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            Some("1"),
            "2026-07-28",
        );
        let data: Value = rejection.error().data().unwrap().parse().unwrap();
        assert_eq!(
            data,
            json!({"supported": ["2026-07-28"], "requested": "1900-01-01"})
        );
    }
}

#[test]
fn the_method_header_mirrors_the_method() {
    for (methods, message) in [
        (&[][..], "is missing"),
        (&["Tools/Call"], "differs"),
        (&["tools/list"], "differs"),
        (&["tools/call", "tools/list"], "repeated"),
        (&["tools/cällé"], "visible ASCII"),
    ] {
        let mut list = vec![CALL[0], CALL[2]];
        list.extend(methods.iter().map(|method| ("Mcp-Method", *method)));
        let outcome = check(&list, call().to_string());
        let rejection = refused(outcome, codes::HEADER_MISMATCH, Some("1"), message);
        assert!(rejection.error().message().contains("Mcp-Method"));
    }
}

fn named(method: &str, field: &str, name: &str) -> String {
    changed(&[
        ("/method", json!(method)),
        ("/params/name", Value::Null),
        (&format!("/params/{field}"), json!(name)),
    ])
}

#[test]
fn the_name_header_mirrors_name_or_uri() {
    for (method, field) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
    ] {
        let list = |names: &[&'static str]| {
            let mut list = vec![CALL[0], ("Mcp-Method", method)];
            list.extend(names.iter().map(|name| ("Mcp-Name", *name)));
            list
        };
        for (names, name) in [
            (&["echo"][..], "echo"),
            (&[" echo\t"], "echo"),
            (&["echo", "echo"], "echo"),
            (&["my tool"], "my tool"),
            (&[""], ""),
            (&["=?base64?ZWNobw==?="], "echo"),
            (&["=?base64?5LiW55WM?="], "世界"),
            (&["=?base64?IHBhZGRlZCA=?="], " padded "),
            (
                &["=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
                "=?base64?literal?=",
            ),
            (&["=?base64??="], ""),
            (&["=?base64?="], "=?base64?="),
            (&["=?base64?ZWNobw=="], "=?base64?ZWNobw=="),
            (&["=?BASE64?ZWNobw==?="], "=?BASE64?ZWNobw==?="),
        ] {
            let message = check(&list(names), named(method, field, name)).expect(name);
            assert_eq!(message.name().as_deref(), Some(name));
        }
        for (names, message) in [
            (&[][..], "is missing"),
            (&["other"], "differs"),
            (&["Echo"], "differs"),
            (&["echo", "other"], "repeated"),
            (&["échö"], "visible ASCII"),
            (&["=?base64?b3RoZXI=?="], "differs"),
            (&["=?base64?!!!?="], "base64"),
            (&["=?base64?ZWNobw?="], "base64"),
            (&["=?base64?ZWNobx==?="], "base64"),
            (&["=?base64?-_-_?="], "base64"),
            (&["=?base64?/w==?="], "UTF-8"),
        ] {
            let outcome = check(&list(names), named(method, field, "echo"));
            let rejection = refused(outcome, codes::HEADER_MISMATCH, Some("1"), message);
            assert!(rejection.error().message().contains("Mcp-Name"));
        }
        for value in [json!(1), json!(null), json!({})] {
            let mut body: Value = serde_json::from_str(&named(method, field, "echo")).unwrap();
            body["params"][field] = value;
            let outcome = check(&list(&["echo"]), body.to_string());
            refused(outcome, codes::HEADER_MISMATCH, Some("1"), "no string");
        }
    }
    let other = [
        CALL[0],
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "stray"),
        ("Mcp-Name", "é"),
    ];
    let message = check(&other, changed(&[("/method", json!("tools/list"))])).unwrap();
    assert_eq!(message.name(), None);
}

#[test]
fn metadata_is_required_and_typed() {
    let meta = |key: &str, value: Value| {
        let key = key.replace('/', "~1");
        changed(&[(&format!("/params/_meta/{key}"), value)])
    };
    let null = |key: &str| {
        let mut body = call();
        body["params"]["_meta"][key] = Value::Null;
        body.to_string()
    };
    for (body, message) in [
        (
            changed(&[("/params/_meta", Value::Null)]),
            "`params._meta` is missing",
        ),
        (
            changed(&[("/params/_meta", json!(1))]),
            "`params._meta` is a number",
        ),
        (meta(VERSION, Value::Null), "protocolVersion"),
        (meta(VERSION, json!(1)), "protocolVersion"),
        (meta(CAPABILITIES, Value::Null), "clientCapabilities"),
        (meta(CAPABILITIES, json!([])), "clientCapabilities"),
        (meta(INFO, json!("x")), "clientInfo"),
        (null(INFO), "clientInfo"),
        (meta(LEVEL, json!("loud")), "logLevel"),
        (meta(LEVEL, json!("Info")), "logLevel"),
        (null(LEVEL), "logLevel"),
        (meta("progressToken", json!(1.5)), "progressToken"),
        (meta("progressToken", json!({})), "progressToken"),
        (null("progressToken"), "progressToken"),
    ] {
        refused(
            check(&CALL, body),
            codes::INVALID_PARAMS,
            Some("1"),
            message,
        );
    }
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let list = [CALL[0], ("Mcp-Method", "tools/list")];
    refused(
        check(&list, bare),
        codes::INVALID_PARAMS,
        Some("1"),
        "`params._meta` is missing",
    );
    for body in [
        meta("traceparent", json!(1)),
        meta("tracestate", json!({})),
        meta("baggage", json!("\n")),
        meta("progressToken", json!("")),
        meta("com.example/x", json!(null)),
    ] {
        check(&CALL, body).unwrap();
    }
}

#[test]
fn notifications_need_no_headers_and_no_metadata() {
    let bare = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let message = check(&[], bare).unwrap();
    assert!(message.is_notification() && message.id().is_none());
    assert_eq!(message.meta().protocol_version(), None);
    check(&[], r#"{"jsonrpc":"2.0","method":"x"}"#).unwrap();
    check(
        &[],
        r#"{"jsonrpc":"2.0","method":"x","params":{"_meta":7}}"#,
    )
    .unwrap();
    check(
        &[],
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":1}}"#,
    )
    .unwrap();
    check(
        &[("Mcp-Name", "x")],
        r#"{"jsonrpc":"2.0","method":"tools/call"}"#,
    )
    .unwrap();
    check(&[CALL[0], ("Mcp-Method", "notifications/cancelled")], bare).unwrap();
    let old = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{{"_meta":{{"{VERSION}":"2025-11-25"}}}}}}"#
    );
    check(&[], old.clone()).unwrap();
    for (list, body, code, message) in [
        (
            &[CALL[0]][..],
            old.as_str(),
            codes::HEADER_MISMATCH,
            "MCP-Protocol-Version",
        ),
        (
            &[("MCP-Protocol-Version", "2025-11-25")],
            bare,
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            "2026-07-28",
        ),
        (
            &[("Mcp-Method", "x")],
            bare,
            codes::HEADER_MISMATCH,
            "Mcp-Method",
        ),
        (
            &[CALL[1], ("Mcp-Method", "x")],
            bare,
            codes::HEADER_MISMATCH,
            "repeated",
        ),
    ] {
        refused(check(list, body), code, None, message);
    }
}

#[test]
fn an_old_client_is_told_which_versions_are_served() {
    let old = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    refused(
        check(&[], old),
        codes::HEADER_MISMATCH,
        Some("0"),
        "serves protocol version 2026-07-28 only",
    );
    refused(
        check(&[CALL[0], ("Mcp-Method", "initialize")], old),
        codes::INVALID_PARAMS,
        Some("0"),
        "serves protocol version 2026-07-28 only",
    );
    refused(
        check(&[], old.replace("\"2.0\"", "\"1.0\"")),
        codes::INVALID_REQUEST,
        Some("0"),
        "serves protocol version 2026-07-28 only",
    );
    let modern = [CALL[0], ("Mcp-Method", "initialize")];
    check(&modern, changed(&[("/method", json!("initialize"))])).unwrap();
    let rejection = check(&CALL, changed(&[("/method", json!("initialize"))])).unwrap_err();
    assert!(!rejection.error().message().contains("handshake"));
}

#[test]
fn a_json_only_client_has_no_token_no_level_and_no_subscription() {
    let body = changed(&[
        ("/params/_meta/progressToken", json!("t")),
        (
            "/params/_meta/io.modelcontextprotocol~1logLevel",
            json!("debug"),
        ),
    ]);
    for (accepts, kept) in [
        (Accepts::Both, true),
        (Accepts::StreamOnly, true),
        (Accepts::JsonOnly, false),
    ] {
        let message = check_with(&CALL, accepts, body.clone()).unwrap();
        assert_eq!(message.meta().progress_token().is_some(), kept);
        assert_eq!(message.meta().log_level().is_some(), kept);
        assert_eq!(message.meta().protocol_version(), Some("2026-07-28"));
    }
    let list = [CALL[0], ("Mcp-Method", LISTEN)];
    let listen = changed(&[("/method", json!(LISTEN))]);
    assert!(check(&list, listen.clone()).unwrap().is_subscription());
    refused(
        check_with(&list, Accepts::JsonOnly, listen),
        codes::INVALID_REQUEST,
        Some("1"),
        "event-stream",
    );
    // After the other rules.
    refused(
        check_with(
            &list[..1],
            Accepts::JsonOnly,
            changed(&[("/method", json!(LISTEN))]),
        ),
        codes::HEADER_MISMATCH,
        Some("1"),
        "Mcp-Method",
    );
}

#[test]
fn a_body_that_is_too_large_or_broken_is_told_apart() {
    for (rejection, status, message) in [
        (too_large(4096), 413, "4096"),
        (too_large_for_another(), 413, "limit"),
        (broken_body(&"reset by peer"), 400, "reset by peer"),
    ] {
        assert_eq!(rejection.status(), status);
        assert_eq!(rejection.error().code(), codes::INVALID_REQUEST);
        assert!(rejection.error().message().contains(message));
        assert!(rejection.id().is_none() && !rejection.allow_post());
    }
}

#[test]
fn what_a_client_sends_is_cut_in_messages() {
    let long = "x".repeat(100_000);
    let body = changed(&[("/params/name", json!(long))]);
    let rejection = check(&CALL, body).unwrap_err();
    assert!(rejection.error().message().len() < 400);
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    #[derive(serde::Deserialize, Debug)]
    struct Params<'a> {
        #[serde(borrow)]
        name: &'a str,
        arguments: Arguments,
    }
    #[derive(serde::Deserialize, Debug)]
    struct Arguments {
        value: Vec<u8>,
    }
    let with = |value: Value| check(&CALL, changed(&[("/params/arguments", value)])).unwrap();
    let message = with(json!({"value": [1]}));
    let params: Params<'_> = message.params().unwrap();
    assert_eq!((params.name, params.arguments.value), ("echo", vec![1]));
    for (arguments, said) in [
        (
            json!({"value": "x"}),
            "`params.arguments.value`: invalid type: string \"x\"",
        ),
        (json!({"value": [1, 2, 300]}), "`params.arguments.value[2]`"),
        (json!({"other": 1}), "missing field `value`"),
        (json!({}), "`params.arguments`: missing field `value`"),
    ] {
        let error = with(arguments).params::<Params<'_>>().unwrap_err();
        assert_eq!((error.code(), error.status().as_u16()), (-32602, 200));
        assert!(error.message().contains(said), "{error}");
        assert!(!error.message().contains(" column "), "{error}");
    }
    let bare = check(&[], r#"{"jsonrpc":"2.0","method":"x"}"#).unwrap();
    assert!(bare.raw_params().is_none());
    assert!(
        bare.params::<Value>()
            .unwrap()
            .as_object()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn capabilities_are_required_by_name() {
    let capabilities = json!({"sampling": {"context": {}}, "roots": {}, "elicitation": null});
    let body = changed(&[(
        "/params/_meta/io.modelcontextprotocol~1clientCapabilities",
        capabilities,
    )]);
    let message = check(&CALL, body).unwrap();
    let meta = message.meta();
    for ok in [
        json!({}),
        json!({"roots": {}}),
        json!({"sampling": {"context": {}}, "roots": {}}),
    ] {
        meta.require_capabilities(ok).unwrap();
    }
    for (required, missing, name) in [
        (
            json!({"elicitation": {}, "roots": {}}),
            json!({"elicitation": {}}),
            "elicitation",
        ),
        (
            json!({"sampling": {"tools": {}, "context": {}}}),
            json!({"sampling": {"tools": {}}}),
            "sampling.tools",
        ),
    ] {
        let error = meta.require_capabilities(required).unwrap_err();
        assert_eq!((error.code(), error.status().as_u16()), (-32021, 400));
        let data: Value = error.data().unwrap().parse().unwrap();
        assert_eq!(data, json!({"requiredCapabilities": missing}));
        assert!(error.message().ends_with(name), "{error}");
    }
    assert_eq!(meta.require_capabilities(1).unwrap_err().code(), -32603);
    assert!(
        RequestMeta::default()
            .require_capabilities(json!({"roots": {}}))
            .is_err()
    );
}

#[test]
fn trace_context_is_kept_when_it_is_well_formed() {
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let meta = |traceparent: &str, state: &str| {
        check(
            &CALL,
            changed(&[
                ("/params/_meta/traceparent", json!(traceparent)),
                ("/params/_meta/tracestate", json!(state)),
            ]),
        )
        .unwrap()
        .meta()
        .clone()
    };
    let kept = meta(good, "a=b");
    assert_eq!(
        (kept.traceparent(), kept.tracestate()),
        (Some(good), Some("a=b"))
    );
    assert_eq!(meta(good, "a\n").tracestate(), None);
    let future = good.replacen("00", "01", 1) + "-more";
    assert_eq!(meta(&future, "").traceparent(), Some(future.as_str()));
    for bad in [
        "",
        "x",
        &good.to_uppercase(),
        &good[1..],
        &format!("{good}-more"),
        &good.replacen("00", "ff", 1),
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    ] {
        let dropped = meta(bad, "a=b");
        assert_eq!(
            (dropped.traceparent(), dropped.tracestate()),
            (None, None),
            "{bad}"
        );
    }
}

#[test]
fn long_metadata_is_kept_whole() {
    for length in [900, 1000, 1024, 5000] {
        let info = json!({"name": "é".repeat(length)});
        let body = changed(&[(
            "/params/_meta/io.modelcontextprotocol~1clientInfo",
            info.clone(),
        )]);
        let message = check(&CALL, body).unwrap();
        assert_eq!(
            message.meta().client_info().unwrap().as_str(),
            info.to_string()
        );
        assert_eq!(message.meta().client_capabilities().unwrap().as_str(), "{}");
    }
}

#[test]
fn the_last_of_what_is_read_twice_counts() {
    for (params, want) in [
        (r#""params":{"arguments":{"a":1}},"params":{}"#, json!({})),
        (r#""params":{"arguments":7},"params":{}"#, json!({})),
        (
            r#""params":{"arguments":7,"arguments":{"b":1}}"#,
            json!({"b": 1}),
        ),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",{params}}}"#);
        let message = Message::parse(body).unwrap();
        assert_eq!(message.arguments::<Value>().unwrap(), want, "{params}");
    }
    let first = r#"{"name":"a","_meta":{"progressToken":1}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{first},"params":{{}}}}"#
    );
    let message = Message::parse(body).unwrap();
    assert_eq!(
        (message.name(), message.meta().progress_token()),
        (None, None)
    );
}

#[test]
fn a_nul_in_the_metadata_moves_nothing_else() {
    let version = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
    let body = changed(&[(version, json!("2026\u{0}07"))]);
    let message = Message::parse(body).unwrap();
    assert_eq!(message.meta().protocol_version(), None);
    assert_eq!(message.meta().client_capabilities().unwrap().as_str(), "{}");
}

#[test]
fn messages_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    shared::<Message>();
    shared::<RequestMeta>();
    shared::<RequestId>();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_body_and_no_header_makes_the_checks_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, prop_oneof![
            prop::collection::vec(any::<u8>(), 0..4),
            "[\\[\\]{}:,\"\\\\0-9eu.n]{0,6}".prop_map(String::into_bytes),
            Just(br"\ud800".to_vec()),
            Just(br#""_meta":{},"#.to_vec()),
            Just(br#""id":"x","#.to_vec()),
        ]), 0..4),
        header in prop::collection::vec(32..=255u8, 0..12).prop_filter("DEL", |bytes| !bytes.contains(&127)),
        which in 0..3usize,
        as_is in any::<bool>(),
    ) {
        let mut body = call().to_string().into_bytes();
        for (at, drop, insert) in edits {
            let at = at.index(body.len() + 1);
            let end = (at + drop).min(body.len());
            body.splice(at..end, insert);
        }
        let mut map = headers(&CALL);
        if !as_is {
            map.insert(HeaderName::from_bytes(CALL[which].0.to_ascii_lowercase().as_bytes()).unwrap(), HeaderValue::from_bytes(&header).unwrap());
        }
        for accepts in [Accepts::Both, Accepts::JsonOnly] {
            match check_body(&map, &Uri::from_static("/"), accepts, Bytes::from(body.clone())) {
                Ok(message) => {
                    // Whatever passes, serde_json reads too.
                    let value: Value = serde_json::from_slice(message.body()).unwrap_or_default();
                    if value.is_object() {
                        assert_eq!(value["method"], message.method());
                    }
                    let _ = (message.name(), message.meta().client_info());
                }
                Err(rejection) => {
                    let json: Value = serde_json::from_slice(&rejection.to_json()).unwrap();
                    assert_eq!(json["jsonrpc"], "2.0");
                    assert!(rejection.status().is_client_error());
                }
            }
        }
    }
}

/// The head and the body of a typical request together.
#[test]
fn a_head_that_is_fine_leads_to_the_body() {
    let mut map = headers(&CALL);
    map.insert("content-type", HeaderValue::from_static("application/json"));
    map.insert(
        "accept",
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    let uri = Uri::from_static("/mcp");
    let accepts = check_head(&HttpMethod::POST, &uri, &map, &Policy::default()).unwrap();
    check_body(&map, &uri, accepts, Bytes::from(call().to_string())).unwrap();
}
