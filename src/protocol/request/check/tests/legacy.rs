//! What holds where clients of earlier revisions are served.

use super::*;
use crate::protocol::era::Era;

const SERVED: LegacyClients = LegacyClients {
    served: true,
    log_level: Some(LogLevel::Info),
};

const OLD: (&str, &str) = ("MCP-Protocol-Version", "2025-06-18");

/// The heads of legacy requests that mirror nothing.
const OLD_HEADS: [&[(&str, &str)]; 2] = [&[], &[OLD]];

fn check_served(list: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Result<Message, Rejection> {
    check_for(SERVED, list, Accepts::Both, body)
}

/// A request of an earlier revision, with these parameters if they are not null.
fn old(method: &str, params: Value) -> String {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
    if !params.is_null() {
        message["params"] = params;
    }
    message.to_string()
}

/// A call of the tool `echo` with this `_meta`.
fn old_call(meta: Value) -> String {
    old("tools/call", json!({"name": "echo", "_meta": meta}))
}

/// All that can be seen of a message that passed.
fn seen(message: &Message) -> String {
    format!(
        "{message:?} {:?} {:?} {:?} {:?}",
        message.name(),
        message.arguments::<Value>(),
        message.meta(),
        message.meta().endpoint(),
    )
}

// What holds in both eras

#[test]
fn what_is_no_message_is_none_in_either_era() {
    for (body, code, id, said) in [
        ("", codes::PARSE_ERROR, None, "unexpected end"),
        ("{\"jsonrpc\":", codes::PARSE_ERROR, None, "unexpected end"),
        ("\u{feff}{}", codes::PARSE_ERROR, None, "byte order mark"),
        ("[]", codes::INVALID_REQUEST, None, "batches"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            codes::INVALID_REQUEST,
            None,
            "batches",
        ),
        ("7", codes::INVALID_REQUEST, None, "a number"),
        ("null", codes::INVALID_REQUEST, None, "null"),
        ("{}", codes::INVALID_REQUEST, None, "`jsonrpc`"),
        (
            r#"{"id":1,"method":"ping"}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "`jsonrpc`",
        ),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "`jsonrpc`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            codes::INVALID_REQUEST,
            None,
            "leave it out of a notification",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#,
            codes::INVALID_REQUEST,
            None,
            "without fraction",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#,
            codes::INVALID_REQUEST,
            None,
            "without fraction",
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            codes::INVALID_REQUEST,
            None,
            "`id`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a"}"#,
            codes::INVALID_REQUEST,
            Some("\"a\""),
            "`method` is missing",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "`method`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "Unicode",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "a response",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "a response",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
            codes::INVALID_REQUEST,
            Some("1"),
            "`params`",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","params":[]}"#,
            codes::INVALID_REQUEST,
            None,
            "`params`",
        ),
    ] {
        for list in OLD_HEADS {
            refused(check_served(list, body), code, id, said);
            refused(check(list, body), code, id, said);
        }
    }
    let mut not_utf_8 = old("ping", Value::Null).into_bytes();
    not_utf_8[3] = 0xff;
    let said = "UTF-8 at byte 3";
    refused(check_served(&[], not_utf_8), codes::PARSE_ERROR, None, said);
}

#[test]
fn what_may_be_there_once_is_there_once_in_either_era() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":1,"a":1}}}"#;
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#;
    let id = Some("1");
    for (body, from, to, id) in [
        (call, r#""id":1"#, r#""id":1,"id":1"#, None),
        (call, r#""id":1"#, r#""id":1,"jsonrpc":"2.0""#, id),
        (call, r#""id":1"#, r#""id":1,"method":"tools/call""#, id),
        (call, r#""id":1"#, r#""id":1,"p\u0061rams":{}"#, id),
        (call, r#""name""#, r#""_meta":{},"name""#, id),
        (call, r#""name""#, r#""name":"echo","name""#, id),
        (call, r#""name""#, r#""n\u0061me":"other","name""#, id),
        (read, r#""uri""#, r#""uri":"a:b","uri""#, id),
        (call, r#""a":1"#, r#""progressToken":1"#, id),
        (
            call,
            r#""a":1"#,
            r#""io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientInfo":{}"#,
            id,
        ),
        (
            call,
            r#""a":1"#,
            r#""io.modelcontextprotocol/later":1,"io.modelcontextprotocol/l\u0061ter":2"#,
            id,
        ),
    ] {
        let body = body.replacen(from, to, 1);
        for list in OLD_HEADS {
            refused(
                check_served(list, body.clone()),
                codes::INVALID_REQUEST,
                id,
                "more than once",
            );
        }
        refused(
            check(&CALL, body),
            codes::INVALID_REQUEST,
            id,
            "more than once",
        );
    }
    for (from, to) in [
        (r#""name""#, r#""arguments":1,"arguments":{},"name""#),
        (r#""name""#, r#""uri":1,"uri":1,"name""#),
        (r#""a":1"#, r#""a":1,"a":2"#),
        (
            r#""id":1,"method":"tools/call""#,
            r#""id":1,"method":"tools/list","name":"x""#,
        ),
    ] {
        check_served(&[], call.replacen(from, to, 1)).expect(to);
    }
}

#[test]
fn a_method_header_that_is_there_is_true_in_either_era() {
    // Without a version header it makes a request a modern one.
    for (methods, said) in [
        (&["tools/list"][..], "differs"),
        (&["Tools/Call"], "differs"),
        (&[""], "differs"),
        (&["tools/call", "tools/list"], "repeated"),
        (&["tools/cällé"], "visible ASCII"),
    ] {
        let mut list = vec![OLD];
        list.extend(methods.iter().map(|method| ("Mcp-Method", *method)));
        let outcome = check_served(&list, old_call(json!({})));
        let rejection = refused(outcome, codes::HEADER_MISMATCH, Some("1"), said);
        assert!(rejection.error().message().contains("`Mcp-Method`"));
    }
    for methods in [&["tools/call"][..], &[" tools/call\t", "tools/call"], &[]] {
        let mut list = vec![OLD];
        list.extend(methods.iter().map(|method| ("Mcp-Method", *method)));
        check_served(&list, old_call(json!({}))).unwrap();
    }
    // Whatever the layer will answer by itself, and a notification, too.
    for method in ["initialize", "ping", "logging/setLevel"] {
        let outcome = check_served(
            &[OLD, ("Mcp-Method", "tools/call")],
            old(method, Value::Null),
        );
        refused(outcome, codes::HEADER_MISMATCH, Some("1"), "differs");
    }
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let lie = [OLD, ("Mcp-Method", "notifications/cancelled")];
    let outcome = check_served(&lie, initialized);
    refused(outcome, codes::HEADER_MISMATCH, None, "differs");
    let truth = [OLD, ("Mcp-Method", "notifications/initialized")];
    check_served(&truth, initialized).unwrap();
}

#[test]
fn a_name_header_that_is_there_is_true_in_either_era() {
    for (method, field) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
    ] {
        for head in OLD_HEADS {
            let check = |names: &[&'static str], value: Value| {
                let mut list = head.to_vec();
                list.extend(names.iter().map(|name| ("Mcp-Name", *name)));
                check_served(&list, old(method, json!({field: value})))
            };
            for (names, value) in [
                (&[][..], "echo"),
                (&["echo"], "echo"),
                (&[" echo\t", "echo"], "echo"),
                (&["=?base64?ZWNobw==?="], "echo"),
                (&["=?base64?5LiW55WM?="], "世界"),
                (&["=?base64??="], ""),
                (&["=?base64?ZWNobw=="], "=?base64?ZWNobw=="),
            ] {
                let message = check(names, json!(value)).expect(value);
                assert_eq!(message.name().as_deref(), Some(value));
            }
            for (names, value, said) in [
                (&["other"][..], json!("echo"), "differs"),
                (&["Echo"], json!("echo"), "differs"),
                (&[""], json!("echo"), "differs"),
                (&["echo", "other"], json!("echo"), "repeated"),
                (&["échö"], json!("échö"), "visible ASCII"),
                (&["=?base64?b3RoZXI=?="], json!("echo"), "differs"),
                (&["=?base64?ZWNobw?="], json!("echo"), "base64"),
                (&["=?base64?/w==?="], json!("echo"), "UTF-8"),
                (&["1"], json!(1), "no string"),
                (&["echo"], json!(null), "no string"),
            ] {
                let rejection =
                    refused(check(names, value), codes::HEADER_MISMATCH, Some("1"), said);
                assert!(rejection.error().message().contains("`Mcp-Name`"));
            }
            // Without the header nobody minds what it would mirror.
            for value in [json!(1), json!(null), json!({})] {
                assert_eq!(check(&[], value).unwrap().name(), None);
            }
        }
    }
    // It says nothing on another method, nor on a notification.
    let stray = [("Mcp-Name", "stray"), ("Mcp-Name", "é")];
    check_served(&stray, old("tools/list", json!({"name": "x"}))).unwrap();
    let note = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#;
    check_served(&stray, note).unwrap();
}

#[test]
fn malformed_metadata_of_an_old_request_is_refused() {
    for (meta, said) in [
        (json!(1), "`params._meta` is a number"),
        (json!([]), "`params._meta` is an array"),
        (json!("x"), "`params._meta` is a string"),
        (json!(false), "`params._meta` is a boolean"),
        (json!({"progressToken": 1.5}), "progressToken"),
        (json!({"progressToken": 1e300}), "progressToken"),
        (json!({"progressToken": {}}), "progressToken"),
        (json!({"progressToken": []}), "progressToken"),
        (json!({"progressToken": true}), "progressToken"),
    ] {
        for list in OLD_HEADS {
            let outcome = check_served(list, old_call(meta.clone()));
            refused(outcome, codes::INVALID_PARAMS, Some("1"), said);
        }
        // Of a notification it is passed over.
        let mut note: Value = serde_json::from_str(&old_call(meta)).unwrap();
        note.as_object_mut().unwrap().remove("id");
        check_served(&[OLD], note.to_string()).unwrap();
    }
}

#[test]
fn an_error_of_an_old_request_does_not_speak_of_the_versions_that_are_served() {
    let initialize = old("initialize", json!({"_meta": 1}));
    let rejection = check_served(&[], initialize.clone()).unwrap_err();
    assert!(!rejection.error().message().contains("handshake"));
    let rejection = check(&[], initialize).unwrap_err();
    assert!(rejection.error().message().contains("handshake"));
}

// What an old request need not say

#[test]
fn an_old_request_needs_no_metadata_and_no_mirrors() {
    for (list, body) in [
        (&[][..], old("tools/list", Value::Null)),
        (&[], old("tools/list", json!({}))),
        (&[], old("initialize", Value::Null)),
        (&[OLD], old("ping", Value::Null)),
        (&[OLD], old("subscriptions/listen", Value::Null)),
        (&[OLD], old("server/discover", Value::Null)),
        (&[], old_call(json!({}))),
        // What some clients write as null is absent.
        (&[], old_call(Value::Null)),
        (&[], old_call(json!({"progressToken": null}))),
        // Of what only the modern revision has, nothing is minded.
        (&[], old_call(json!({CAPABILITIES: 1}))),
        (&[], old_call(json!({INFO: "x"}))),
        (&[], old_call(json!({LEVEL: "loud"}))),
        (&[], old_call(json!({"com.example/x": null}))),
        (&[("Mcp-Param-Value", "1")], old_call(json!({}))),
    ] {
        let message = check_served(list, body.clone()).expect(&body);
        assert_eq!(message.meta().era(), Era::Legacy, "{body}");
        assert_eq!(message.meta().progress_token(), None, "{body}");
        assert!(!message.is_subscription(), "{body}");
        assert_eq!(message.body(), &body);
        // Where they are not served, each is told what it lacks.
        let rejection = check(list, body.clone()).expect_err(&body);
        assert_eq!(rejection.status(), 400, "{body}");
    }
}

/// A client that takes only JSON cannot listen, and an old one is told later that it cannot anyway.
#[test]
fn an_old_request_to_listen_is_not_judged_by_what_it_accepts() {
    let body = old("subscriptions/listen", Value::Null);
    check_for(SERVED, &[OLD], Accepts::JsonOnly, body).unwrap();
}

#[test]
fn an_old_request_is_in_the_revision_of_its_header() {
    for (versions, want) in [
        (&[][..], "2025-03-26"),
        (&["2024-11-05"], "2024-11-05"),
        (&["2025-03-26"], "2025-03-26"),
        (&["2025-06-18"], "2025-06-18"),
        (&["2025-11-25"], "2025-11-25"),
        (&[" 2025-11-25\t", "2025-11-25"], "2025-11-25"),
    ] {
        let list: Vec<_> = versions.iter().map(|v| (OLD.0, *v)).collect();
        let initialize = old("initialize", json!({"protocolVersion": "2024-11-05"}));
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        for body in [old_call(json!({})), initialize, note.to_owned()] {
            let message = check_served(&list, body.clone()).expect(&body);
            let meta = message.meta();
            assert_eq!(meta.era(), Era::Legacy, "{body}");
            assert_eq!(meta.protocol_version(), Some(want), "{body}");
            assert_eq!(meta.endpoint(), "/mcp?x=1", "{body}");
        }
    }
}

#[test]
fn what_an_old_request_says_of_itself_is_kept() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let body = old_call(json!({
        "progressToken": "t", "traceparent": trace, "baggage": "a=b",
        INFO: {"name": "n"}, CAPABILITIES: {"roots": {}}, LEVEL: "error",
    }));
    let message = check_served(&[OLD], body).unwrap();
    let meta = message.meta();
    assert_eq!(message.id(), Some(&1.into()));
    assert_eq!(message.name().as_deref(), Some("echo"));
    assert_eq!(meta.progress_token(), Some(&"t".into()));
    assert_eq!(meta.log_level(), Some(LogLevel::Error));
    assert_eq!(meta.protocol_version(), Some("2025-06-18"));
    assert_eq!(meta.client_info().unwrap().as_str(), r#"{"name":"n"}"#);
    assert_eq!(
        meta.client_capabilities().unwrap().as_str(),
        r#"{"roots":{}}"#
    );
    assert_eq!(meta.traceparent(), Some(trace));
    assert_eq!(meta.baggage(), Some("a=b"));
    // Digits and all.
    let many = "36893488147419103233";
    let body = old_call(json!({"progressToken": 5})).replace(":5", &format!(":{many}"));
    let body = body.replace(r#""id":1"#, &format!(r#""id":{many}"#));
    let message = check_served(&[], body).unwrap();
    assert_eq!(message.id().unwrap().to_string(), many);
    let token = message.meta().progress_token().unwrap();
    assert_eq!(token.to_string(), many);
}

#[test]
fn logs_of_an_old_request_begin_at_info_unless_something_sets_the_level() {
    use LogLevel::{Debug, Emergency, Info, Warning};
    for (option, said, want) in [
        (Some(Info), None, Some(Info)),
        (Some(Warning), None, Some(Warning)),
        (Some(Debug), None, Some(Debug)),
        (None, None, None),
        (Some(Info), Some("debug"), Some(Debug)),
        (Some(Warning), Some("emergency"), Some(Emergency)),
        (None, Some("debug"), Some(Debug)),
        (Some(Info), Some("loud"), Some(Info)),
        (None, Some("loud"), None),
    ] {
        let legacy = LegacyClients {
            served: true,
            log_level: option,
        };
        let meta = said.map_or(json!({}), |level| json!({LEVEL: level}));
        for list in OLD_HEADS {
            let message = check_for(legacy, list, Accepts::Both, old_call(meta.clone())).unwrap();
            assert_eq!(message.meta().log_level(), want, "{option:?} {said:?}");
        }
        // A modern request that names none has none, whatever the option is.
        let message = check_for(legacy, &CALL, Accepts::Both, call().to_string()).unwrap();
        assert_eq!(message.meta().log_level(), None, "{option:?}");
    }
    assert_eq!(LegacyClients::default().log_level, Some(Info));
    assert!(LegacyClients::default().served);
}

#[test]
fn an_old_json_only_client_has_no_token_and_no_level() {
    for (accepts, kept) in [
        (Accepts::Both, true),
        (Accepts::StreamOnly, true),
        (Accepts::JsonOnly, false),
    ] {
        for meta in [
            json!({"progressToken": 1}),
            json!({"progressToken": 1, LEVEL: "debug"}),
        ] {
            for list in OLD_HEADS {
                let message = check_for(SERVED, list, accepts, old_call(meta.clone())).unwrap();
                assert_eq!(message.meta().progress_token().is_some(), kept);
                assert_eq!(message.meta().log_level().is_some(), kept);
                assert_eq!(message.meta().era(), Era::Legacy);
            }
        }
    }
}

// Modern requests

#[test]
fn a_modern_request_that_lacks_something_is_told_what_it_lacks() {
    let meta = |changes: &[(&str, Value)]| changed(changes);
    let version = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
    let capabilities = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
    for (list, body, code, said) in [
        (&[][..], meta(&[]), codes::HEADER_MISMATCH, "is missing"),
        (&[OLD], meta(&[]), codes::HEADER_MISMATCH, "differs"),
        (
            &[OLD],
            meta(&[(version, json!("2025-06-18"))]),
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            "not served",
        ),
        (
            &[OLD],
            meta(&[(version, json!(7))]),
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            "not served",
        ),
        (
            &[(OLD.0, "1900-01-01")],
            old_call(json!({})),
            codes::UNSUPPORTED_PROTOCOL_VERSION,
            "not served",
        ),
        (
            &[OLD, (OLD.0, "2025-11-25")],
            old_call(json!({})),
            codes::HEADER_MISMATCH,
            "repeated",
        ),
        (
            &CALL[..1],
            old_call(json!({})),
            codes::HEADER_MISMATCH,
            "`Mcp-Method` header is missing",
        ),
        (
            &CALL[1..2],
            old_call(json!({})),
            codes::HEADER_MISMATCH,
            "`MCP-Protocol-Version` header is missing",
        ),
        (
            &CALL[..2],
            meta(&[]),
            codes::HEADER_MISMATCH,
            "`Mcp-Name` header is missing",
        ),
        (
            &CALL,
            meta(&[("/params/_meta", Value::Null)]),
            codes::INVALID_PARAMS,
            "`params._meta` is missing",
        ),
        (
            &CALL,
            meta(&[(version, Value::Null)]),
            codes::INVALID_PARAMS,
            "protocolVersion",
        ),
        (
            &CALL,
            meta(&[(capabilities, Value::Null)]),
            codes::INVALID_PARAMS,
            "clientCapabilities",
        ),
        (
            &[],
            old("server/discover", Value::Null),
            codes::HEADER_MISMATCH,
            "`MCP-Protocol-Version` header is missing",
        ),
        (
            &[],
            old("subscriptions/listen", Value::Null),
            codes::HEADER_MISMATCH,
            "`MCP-Protocol-Version` header is missing",
        ),
    ] {
        refused(check_served(list, body.clone()), code, Some("1"), said);
        refused(check(list, body), code, Some("1"), said);
    }
}

/// One of these, most often the first; null for none.
fn mostly(list: &[Value]) -> impl Strategy<Value = Option<Value>> + use<> {
    let (first, rest) = (list[0].clone(), list[1..].to_vec());
    let one = prop_oneof![6 => Just(first), 1 => prop::sample::select(rest)];
    one.prop_map(|value| Some(value).filter(|value| *value != json!("absent")))
}

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let members = members.into_iter();
    let members = members.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect())
}

/// Requests and their headers, with a fault here and there.
fn requests() -> impl Strategy<Value = (Value, Vec<(&'static str, String)>)> {
    let absent = || json!("absent");
    let method = prop::sample::select(vec![
        "tools/call",
        "tools/list",
        "resources/read",
        "initialize",
        "ping",
        "logging/setLevel",
        "notifications/initialized",
        LISTEN,
        "server/discover",
    ]);
    let meta = (
        prop_oneof![
            2 => Just(Some(json!("2026-07-28"))),
            1 => mostly(&[absent(), json!("2025-06-18"), json!(1), json!(null)]),
        ],
        mostly(&[
            json!({}),
            absent(),
            json!({"roots": {}}),
            json!([]),
            json!(null),
        ]),
        mostly(&[absent(), json!({"name": "n"}), json!("n")]),
        mostly(&[absent(), json!("debug"), json!("loud"), json!(null)]),
        mostly(&[json!(1), absent(), json!("t"), json!(1.5), json!(null)]),
    );
    let meta = meta.prop_map(|(version, capabilities, info, level, token)| {
        object([
            (VERSION, version),
            (CAPABILITIES, capabilities),
            (INFO, info),
            (LEVEL, level),
            ("progressToken", token),
        ])
    });
    let meta = prop_oneof![
        9 => meta.prop_map(Some),
        1 => mostly(&[absent(), json!(1), json!(null)]),
    ];
    let params = (
        meta,
        mostly(&[json!("echo"), absent(), json!(1)]),
        mostly(&[json!("echo"), absent(), json!(1)]),
    );
    let params = params
        .prop_map(|(meta, name, uri)| object([("_meta", meta), ("name", name), ("uri", uri)]));
    let params = prop_oneof![
        9 => params.prop_map(Some),
        1 => mostly(&[absent(), json!([]), json!(null)]),
    ];
    let id = mostly(&[json!(1), absent(), json!("a"), json!(null), json!(1.5)]);
    let body = (method, id, params).prop_map(|(method, id, params)| {
        object([
            ("jsonrpc", Some(json!("2.0"))),
            ("id", id),
            ("method", Some(json!(method))),
            ("params", params),
        ])
    });
    let versions = prop::sample::select(vec![
        vec!["2026-07-28"],
        vec!["2026-07-28"],
        vec!["2026-07-28", " 2026-07-28"],
        vec!["2025-06-18"],
        vec!["2025-11-25"],
        vec!["2025-11-25", "2026-07-28"],
        vec!["2025-11-25", "2025-06-18"],
        vec!["1900-01-01"],
        vec![""],
        vec![],
    ]);
    // Null for what the body says.
    let mirror = |others: &[Value]| {
        let mut list = vec![json!(null), absent()];
        list.extend_from_slice(others);
        mostly(&list)
    };
    let methods = mirror(&[json!("tools/list"), json!("")]);
    let names = mirror(&[
        json!("other"),
        json!("=?base64?ZWNobw==?="),
        json!("=?base64?!?="),
    ]);
    (body, versions, methods, names).prop_map(|(body, versions, method, name)| {
        let truth = |said: Option<Value>, truth: &Value| {
            let value = if said.as_ref()?.is_null() {
                truth
            } else {
                said.as_ref()?
            };
            Some(value.as_str()?.to_owned())
        };
        let method = truth(method, &body["method"]);
        let name = truth(name, &json!("echo"));
        let mut headers: Vec<_> = versions
            .into_iter()
            .map(|version| ("mcp-protocol-version", version.to_owned()))
            .collect();
        headers.extend(method.map(|method| ("mcp-method", method)));
        headers.extend(name.map(|name| ("mcp-name", name)));
        (body, headers)
    })
}

/// Whether the request is modern, by the words of [`Era`].
fn looks_modern(body: &Value, headers: &[(&str, String)]) -> bool {
    let values = |wanted: &str| {
        let mut values: Vec<_> = headers
            .iter()
            .filter(|(name, _)| *name == wanted)
            .map(|(_, value)| value.as_str())
            .collect();
        for value in &mut values {
            *value = value.trim();
        }
        values.dedup();
        values
    };
    let old = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let named = body["params"]["_meta"].get(VERSION).is_some();
    named
        || match &values("mcp-protocol-version")[..] {
            [] => {
                !values("mcp-method").is_empty()
                    || [json!(LISTEN), json!("server/discover")].contains(&body["method"])
            }
            [version] => !old.contains(version),
            _ => true,
        }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_modern_request_is_judged_as_if_there_were_no_old_clients((body, headers) in requests(), json_only in any::<bool>()) {
        let accepts = if json_only { Accepts::JsonOnly } else { Accepts::Both };
        let list: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = body.to_string();
        let served = check_for(SERVED, &list, accepts, text.clone());
        let strict = check_for(STRICT, &list, accepts, text);
        if !looks_modern(&body, &headers) {
            // An old request lacks what a modern one must say, so only notifications pass as both.
            match (&served, &strict) {
                (Ok(served), Ok(_)) => {
                    prop_assert!(served.is_notification());
                    prop_assert_eq!(served.meta().era(), Era::Legacy);
                }
                (Ok(served), Err(_)) => prop_assert_eq!(served.meta().era(), Era::Legacy),
                (Err(served), strict) => {
                    prop_assert!(strict.is_err());
                    let code = served.error().code();
                    prop_assert!([codes::INVALID_REQUEST, codes::INVALID_PARAMS, codes::HEADER_MISMATCH].contains(&code));
                }
            }
            return Ok(());
        }
        match (&served, &strict) {
            (Ok(served), Ok(strict)) => {
                prop_assert_eq!(served.meta().era(), Era::Modern);
                prop_assert_eq!(seen(served), seen(strict));
            }
            (Err(served), Err(strict)) => {
                prop_assert_eq!(served.status(), strict.status());
                prop_assert_eq!(served.id(), strict.id());
                prop_assert_eq!(served.error().code(), strict.error().code());
                prop_assert_eq!(served.error().data(), strict.error().data());
                // What an old client needs to know is said where it is not served.
                let said = strict.error().message().trim_end_matches(OLD_CLIENT);
                prop_assert_eq!(served.error().message(), said);
            }
            differ => prop_assert!(false, "{differ:?}"),
        }
    }
}
