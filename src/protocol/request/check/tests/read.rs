//! What is read of a message that passes.

use super::*;
use crate::protocol::json::raw::RawJson;

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
        (
            json!({"value": {}}),
            "`params.arguments.value`: invalid type: map",
        ),
        (
            json!({"value": [1, [2]]}),
            "`params.arguments.value[1]`: invalid type: sequence",
        ),
        (
            json!({"value": [[], 1]}),
            "`params.arguments.value[0]`: invalid type: sequence",
        ),
        (
            json!({"value": [1, {"a": 1}]}),
            "`params.arguments.value[1]`: invalid type: map",
        ),
        (
            json!({"value": [null, [1]]}),
            "`params.arguments.value[0]`: invalid type: null",
        ),
        (
            json!({"a": [], "value": 1}),
            "`params.arguments.value`: invalid type: integer",
        ),
        (json!([]), "`params.arguments`: invalid length 0"),
        (json!({"other": 1}), "missing field `value`"),
        (json!({}), "`params.arguments`: missing field `value`"),
    ] {
        let error = with(arguments).params::<Params<'_>>().unwrap_err();
        assert_eq!((error.code(), error.status().as_u16()), (-32602, 200));
        assert!(error.message().contains(said), "{error}");
        assert!(!error.message().contains(" column "), "{error}");
    }
    // Wherever there is room between.
    for space in ["", " ", "\n", "\n\n  ", "\r\n\t"] {
        let text = format!("{{\"value\":{space}[{space}[{space}[],{space}1]{space}]}}");
        let error = RawJson::new(&text).parse::<Arguments>().unwrap_err();
        let said = "`value[0]`: invalid type: sequence, expected u8";
        assert!(error.message().starts_with(said), "{text:?}: {error}");
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
    let token = r#""_meta":{"progressToken":1}"#;
    for (params, name) in [
        (
            format!(r#""params":{{"name":"a",{token}}},"params":{{}}"#),
            None,
        ),
        (
            format!(r#""params":{{"name":"a",{token},"_meta":{{}}}}"#),
            Some("a"),
        ),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",{params}}}"#);
        let message = Message::parse(body).unwrap();
        assert_eq!(message.name().as_deref(), name, "{params}");
        assert_eq!(message.meta().progress_token(), None, "{params}");
    }
}

#[test]
fn the_endpoint_is_the_uri_that_the_request_was_sent_to() {
    for (uri, endpoint) in [
        ("/mcp?x=1", "/mcp?x=1"),
        ("/", "/"),
        ("*", "*"),
        ("localhost:80", "localhost:80"),
        ("http://localhost:80", "http://localhost:80/"),
        ("http://localhost?x=1", "http://localhost/?x=1"),
        ("https://u@localhost/a?b?c", "https://u@localhost/a?b?c"),
    ] {
        let meta = RequestMeta::new(&Envelope::default(), "", &uri.parse().unwrap(), None);
        assert_eq!(meta.endpoint(), endpoint, "{uri}");
    }
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
