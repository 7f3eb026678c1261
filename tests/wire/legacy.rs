//! What a message to a client of an earlier revision has to be.
//!
//! There is no schema of the earlier revisions here. What they share with the present one is held against its definitions, which
//! is all but the members that only the present one has: those must not be there.

use serde_json::{Map, Value, json};

use crate::schema::{validate_definition, validate_server_message};

/// The results that both eras have, by the method of their request.
const SHARED: [(&str, &str); 8] = [
    ("tools/list", "ListToolsResult"),
    ("tools/call", "CallToolResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/read", "ReadResourceResult"),
    ("prompts/list", "ListPromptsResult"),
    ("prompts/get", "GetPromptResult"),
    ("completion/complete", "CompleteResult"),
];
/// The versions that a handshake may agree on.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN_MEMBERS: [&str; 3] = ["resultType", "inputRequests", "requestState"];
const MODERN_META: [&str; 6] = [
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];
const MODERN_NOTIFICATION: &str = "notifications/subscriptions/acknowledged";

/// Validates a message in the answer to a request with this method, or to none.
///
/// # Errors
///
/// Names what is wrong with it.
pub(crate) fn check(method: Option<&str>, message: &Value) -> Result<(), String> {
    let members = message.as_object().ok_or("no object")?;
    match members.get("result") {
        Some(result) => {
            only(members, &["jsonrpc", "id", "result"])?;
            validate_server_message(&completed(message))?;
            modern_members(result)?;
            contents(method, result)
        }
        None => {
            if let Some(error) = members.get("error").and_then(Value::as_object) {
                only(members, &["jsonrpc", "id", "error"])?;
                only(error, &["code", "message", "data"])?;
            } else {
                only(members, &["jsonrpc", "method", "params"])?;
            }
            validate_server_message(message)?;
            if message["method"] == MODERN_NOTIFICATION {
                return Err(format!(
                    "{MODERN_NOTIFICATION} is none of an earlier revision"
                ));
            }
            modern_meta(&message["params"])
        }
    }
}

/// JSON-RPC has no other members.
fn only(members: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("a message has no member {key:?}")),
        None => Ok(()),
    }
}

/// The message as it would be to a modern client, so that the schema's definitions apply to it.
fn completed(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(result) = message["result"].as_object_mut() {
        for (member, value) in [
            ("resultType", json!("complete")),
            ("ttlMs", json!(0)),
            ("cacheScope", json!("private")),
        ] {
            result.entry(member).or_insert(value);
        }
    }
    message
}

fn modern_members(result: &Value) -> Result<(), String> {
    match MODERN_MEMBERS
        .iter()
        .find(|name| result.get(name).is_some())
    {
        Some(name) => Err(format!("{name} is none of an earlier revision")),
        None => modern_meta(result),
    }
}

fn modern_meta(carrier: &Value) -> Result<(), String> {
    match MODERN_META
        .iter()
        .find(|key| carrier["_meta"].get(key).is_some())
    {
        Some(key) => Err(format!("{key} in _meta is none of an earlier revision")),
        None => Ok(()),
    }
}

fn contents(method: Option<&str>, result: &Value) -> Result<(), String> {
    match method {
        Some("initialize") => {
            let version = result["protocolVersion"].as_str().unwrap_or_default();
            if !VERSIONS.contains(&version) {
                return Err(format!("protocolVersion {version:?} has no handshake"));
            }
            if result
                .get("instructions")
                .is_some_and(|words| !words.is_string())
            {
                return Err("instructions are a text".into());
            }
            validate_definition("ServerCapabilities", &result["capabilities"])?;
            validate_definition("Implementation", &result["serverInfo"])
        }
        Some("tools/call")
            if result
                .get("structuredContent")
                .is_some_and(|content| !content.is_object()) =>
        {
            Err("structuredContent is an object in an earlier revision".into())
        }
        Some("server/discover" | "subscriptions/listen") => {
            Err("an earlier revision has no such method, so it has no result".into())
        }
        Some(method) => match SHARED.iter().find(|(shared, _)| *shared == method) {
            Some((_, definition)) => {
                validate_definition(definition, &completed(&json!({"result": result}))["result"])
            }
            None => Ok(()),
        },
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, check, json};

    fn result(result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "result": result})
    }

    fn notification(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    }

    #[test]
    fn what_an_earlier_revision_has_is_taken() {
        let tool = json!({"content": [{"type": "text", "text": "t"}], "isError": true});
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": false}, "logging": {}},
            "serverInfo": {"name": "n", "version": "1"},
            "instructions": "i",
        });
        for (method, message) in [
            ("tools/call", result(tool)),
            ("tools/list", result(json!({"tools": []}))),
            (
                "tools/list",
                result(json!({"tools": [], "ttlMs": 1, "cacheScope": "public"})),
            ),
            ("initialize", result(hello)),
            ("ping", result(json!({}))),
            ("x", result(json!({"_meta": {"example.com/a": 1}}))),
            (
                "x",
                json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "m"}}),
            ),
            (
                "x",
                json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32002, "message": "m", "data": 1}}),
            ),
            (
                "x",
                notification("notifications/message", json!({"level": "info", "data": 1})),
            ),
            (
                "x",
                notification(
                    "notifications/progress",
                    json!({"progressToken": 1, "progress": 1}),
                ),
            ),
        ] {
            assert_eq!(check(Some(method), &message), Ok(()), "{method}: {message}");
            assert_eq!(check(None, &message), Ok(()), "{message}");
        }
    }

    #[test]
    fn what_only_the_present_revision_has_is_refused() {
        let server =
            json!({"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}}});
        let stamped = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 1}});
        for (message, reason) in [
            (result(json!({"resultType": "complete"})), "resultType"),
            (result(json!({"inputRequests": {}})), "inputRequests"),
            (result(json!({"requestState": "s"})), "requestState"),
            (result(server), "serverInfo"),
            (
                notification("notifications/tools/list_changed", stamped),
                "subscriptionId",
            ),
            (
                notification(super::MODERN_NOTIFICATION, json!({"notifications": {}})),
                "acknowledged",
            ),
        ] {
            let problem = check(None, &message).expect_err(reason);
            assert!(
                problem.contains(reason) && problem.contains("none of an earlier revision"),
                "{message}: {problem}"
            );
        }
        let discovered = result(json!({"supportedVersions": [], "capabilities": {}}));
        assert!(check(Some("server/discover"), &discovered).is_err());
    }

    #[test]
    fn a_message_is_json_rpc_to_the_letter() {
        for message in [
            json!([]),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"id": 1, "result": {}}),
            json!({"jsonrpc": "1.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "result": {}}),
            json!({"jsonrpc": "2.0", "id": null, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1.5, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "x": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "method": "m"}),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m", "x": 1}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": "m"}),
            json!({"jsonrpc": "2.0", "method": 1}),
            json!({"jsonrpc": "2.0", "method": "m", "params": []}),
            json!({"jsonrpc": "2.0", "method": "m", "x": 1}),
            // Nobody has said that it can be asked.
            json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}),
        ] {
            assert!(check(None, &message).is_err(), "{message}");
        }
    }

    #[test]
    fn a_result_meets_the_definition_for_its_request() {
        let hello = |version: &str, server: Value| {
            result(json!({"protocolVersion": version, "capabilities": {}, "serverInfo": server}))
        };
        let server = || json!({"name": "n", "version": "1"});
        for (method, message) in [
            ("tools/call", result(json!({}))),
            ("tools/call", result(json!({"content": [{"type": "text"}]}))),
            (
                "tools/call",
                result(json!({"content": [], "structuredContent": [1]})),
            ),
            ("tools/list", result(json!({}))),
            ("resources/read", result(json!({"contents": [{}]}))),
            ("initialize", result(json!({}))),
            ("initialize", hello("2026-07-28", server())),
            ("initialize", hello("2025-11-25", json!({"name": "n"}))),
        ] {
            assert!(
                check(Some(method), &message).is_err(),
                "{method}: {message}"
            );
        }
        assert_eq!(
            check(Some("initialize"), &hello("2025-11-25", server())),
            Ok(())
        );
    }
}
