//! The protocol's data and the check of messages against it, checked themselves.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::schema::{known, validate_definition, validate_reply, validate_server_message};

fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries
        .map(|entry| entry.expect("an entry of the directory").path())
        .collect()
}

/// Every example, with the name of the definition that it shows.
fn examples() -> Vec<(String, PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/examples");
    let mut examples = Vec::new();
    for directory in directories(&root) {
        let definition = directory
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name in UTF-8");
        for file in directories(&directory) {
            let text = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            examples.push((definition.to_owned(), file, value));
        }
    }
    examples
}

#[test]
fn the_schema_names_what_a_server_sends() {
    assert_eq!(known(), (8, 10, 8));
}

#[test]
fn every_example_meets_its_definition() {
    let examples = examples();
    assert!(examples.len() > 100, "only {} examples", examples.len());
    let problems: Vec<String> = examples
        .iter()
        .filter_map(|(definition, file, value)| {
            let problem = validate_definition(definition, value).err()?;
            Some(format!("{}: {problem}", file.display()))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_example_of_a_server_message_is_one() {
    let mut seen = 0;
    for (definition, file, value) in examples() {
        let method = match definition.as_str() {
            "DiscoverResultResponse" => "server/discover",
            "CallToolResultResponse" => "tools/call",
            "ListToolsResultResponse" => "tools/list",
            "SubscriptionsListenResultResponse" => "subscriptions/listen",
            "ReadResourceResultResponse" => "resources/read",
            // The schema has a server send it over stdio only.
            "CancelledNotification" => {
                assert!(
                    validate_server_message(&value).is_err(),
                    "{}",
                    file.display()
                );
                continue;
            }
            name if name.ends_with("Notification")
                || value.get("jsonrpc").is_some() && value.get("error").is_some() =>
            {
                ""
            }
            _ => continue,
        };
        let valid = if method.is_empty() {
            validate_server_message(&value)
        } else {
            validate_reply(method, &value)
        };
        valid.unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
        seen += 1;
    }
    assert!(seen > 15, "only {seen} examples");
}

#[test]
fn other_notifications_meet_the_general_definition() {
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/custom"}),
        json!({"jsonrpc": "2.0", "method": "notifications/custom", "params": {"x": [1]}}),
    ] {
        assert_eq!(validate_server_message(&message), Ok(()));
    }
}

#[test]
fn a_broken_message_is_refused() {
    let notification =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let error = |error: Value| json!({"jsonrpc": "2.0", "id": 1, "error": error});
    let broken = [
        ("no message", json!({"jsonrpc": "2.0", "id": 1})),
        ("an array", json!([])),
        (
            "a request",
            json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}),
        ),
        (
            "a client's method",
            json!({"jsonrpc": "2.0", "method": "tools/list"}),
        ),
        ("no version", json!({"method": "notifications/custom"})),
        (
            "another version",
            json!({"jsonrpc": "1.0", "method": "notifications/custom"}),
        ),
        (
            "a method that is no string",
            json!({"jsonrpc": "2.0", "method": 1}),
        ),
        (
            "params that are no object",
            notification("notifications/custom", json!([])),
        ),
        (
            "progress without a token",
            notification("notifications/progress", json!({"progress": 1})),
        ),
        (
            "a text as progress",
            notification(
                "notifications/progress",
                json!({"progressToken": 1, "progress": "1"}),
            ),
        ),
        (
            "a fraction as token",
            notification(
                "notifications/progress",
                json!({"progressToken": 1.5, "progress": 1}),
            ),
        ),
        (
            "null as total",
            notification(
                "notifications/progress",
                json!({"progressToken": 1, "progress": 1, "total": null}),
            ),
        ),
        (
            "an unknown level",
            notification("notifications/message", json!({"level": "loud", "data": 1})),
        ),
        (
            "a log without data",
            notification("notifications/message", json!({"level": "info"})),
        ),
        (
            "an update of nothing",
            notification("notifications/resources/updated", json!({})),
        ),
        (
            "an empty acknowledgement",
            notification("notifications/subscriptions/acknowledged", json!({})),
        ),
        (
            "a fraction as subscription id",
            notification(
                "notifications/tools/list_changed",
                json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 1.5}}),
            ),
        ),
        ("a result without its type", result(json!({}))),
        ("a result that is no object", result(json!(1))),
        (
            "a null id",
            json!({"jsonrpc": "2.0", "id": null, "result": {"resultType": "complete"}}),
        ),
        (
            "an error's null id",
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "m"}}),
        ),
        (
            "result and error",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}, "error": {"code": 1, "message": "m"}}),
        ),
        (
            "a code that is no integer",
            error(json!({"code": "1", "message": "m"})),
        ),
        ("an error without message", error(json!({"code": 1}))),
        (
            "versions left out",
            error(json!({"code": -32022, "message": "m"})),
        ),
        (
            "capabilities left out",
            error(json!({"code": -32021, "message": "m", "data": {}})),
        ),
    ];
    for (what, message) in broken {
        assert!(
            validate_server_message(&message).is_err(),
            "{what}: {message}"
        );
    }
}

#[test]
fn a_result_meets_the_definition_for_its_request() {
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": "a", "result": result});
    let tool =
        result(json!({"resultType": "complete", "content": [{"type": "text", "text": "t"}]}));
    assert_eq!(validate_reply("tools/call", &tool), Ok(()));
    assert_eq!(validate_server_message(&tool), Ok(()));
    let ended = result(
        json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": "a"}}),
    );
    assert_eq!(validate_reply("subscriptions/listen", &ended), Ok(()));

    let broken = [
        ("tools/list", tool.clone()),
        ("server/discover", tool.clone()),
        ("subscriptions/listen", tool),
        (
            "subscriptions/listen",
            result(json!({"resultType": "complete", "_meta": {}})),
        ),
        (
            "tools/list",
            result(json!({"resultType": "complete", "tools": [{}]})),
        ),
        ("tools/none", ended),
    ];
    for (method, message) in broken {
        assert!(
            validate_reply(method, &message).is_err(),
            "{method}: {message}"
        );
    }
}

#[test]
fn an_error_of_the_protocol_meets_its_own_definition() {
    let error = |error: Value| json!({"jsonrpc": "2.0", "error": error});
    let supported = json!({"supported": ["2026-07-28"], "requested": "1900-01-01"});
    for message in [
        error(json!({"code": -32022, "message": "m", "data": supported})),
        error(json!({"code": -32600, "message": "m"})),
        error(json!({"code": 7, "message": "m", "data": [1]})),
    ] {
        assert_eq!(validate_server_message(&message), Ok(()));
    }
}
