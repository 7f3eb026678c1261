mod legacy;
mod mirror;
mod read;
mod shape;

use http::{HeaderName, HeaderValue, Method as HttpMethod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::request::admission::{Policy, check_head};
use crate::protocol::request::arrival::{broken_body, too_large, too_large_for_another};

/// Clients of earlier revisions are not served.
const STRICT: LegacyClients = LegacyClients {
    served: false,
    log_level: None,
};

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

fn check_for(
    legacy: LegacyClients,
    list: &[(&str, &str)],
    accepts: Accepts,
    body: impl Into<Vec<u8>>,
) -> Result<Message, Rejection> {
    let uri = Uri::from_static("/mcp?x=1");
    let body = Bytes::from(body.into());
    check_body(&headers(list), &uri, accepts, legacy, body)
}

fn check_with(
    list: &[(&str, &str)],
    accepts: Accepts,
    body: impl Into<Vec<u8>>,
) -> Result<Message, Rejection> {
    check_for(STRICT, list, accepts, body)
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
        let any = [Accepts::Both, Accepts::JsonOnly].map(|accepts| (STRICT, accepts));
        for (legacy, accepts) in any.into_iter().chain([(LegacyClients::default(), Accepts::Both)]) {
            match check_body(&map, &Uri::from_static("/"), accepts, legacy, Bytes::from(body.clone())) {
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
    check_body(&map, &uri, accepts, STRICT, Bytes::from(call().to_string())).unwrap();
}
