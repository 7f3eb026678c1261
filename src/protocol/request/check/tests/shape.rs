//! What is no JSON, and what is JSON but no request or notification.

use super::*;

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
    let extra: String = (0..10_000)
        .map(|n| format!("\"io.modelcontextprotocol/{n}\":0,"))
        .collect();
    let body = call()
        .to_string()
        .replacen("\"_meta\":{", &format!("\"_meta\":{{{extra}"), 1);
    #[allow(clippy::disallowed_methods)] // The clock is what this is about.
    let started = std::time::Instant::now();
    check(&CALL, body).unwrap();
    // A small part of a second, even unoptimized; minutes, if each were compared with each.
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn what_a_client_sends_is_cut_in_messages() {
    let long = "x".repeat(100_000);
    let body = changed(&[("/params/name", json!(long))]);
    let rejection = check(&CALL, body).unwrap_err();
    assert!(rejection.error().message().len() < 400);
}
