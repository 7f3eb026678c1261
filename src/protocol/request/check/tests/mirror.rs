//! The headers that say what the body says.

use super::*;

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
