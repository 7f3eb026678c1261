//! What the guide "Answering" says, held against the protocol's schema.

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use support::request::{self, Call, served};
use support::schema::{validate_definition, validate_reply};

const GUIDE: &str = include_str!("../../docs/answering.md");

// Here as the guide has it, so that its private functions can be called.
include!("answering.rs");

fn service() -> request::Served {
    served(
        async |channel, message| match handler(channel, message).await {
            Ok(reply) => reply,
            Err(error) => Reply::error(error),
        },
    )
}

async fn answer(call: Call) -> request::Reply {
    let method = call.message["method"].as_str().unwrap().to_owned();
    let reply = call.send(service()).await;
    // Errors are held against the schema wherever a reply is read.
    if reply.last().get("result").is_some() {
        validate_reply(&method, reply.last()).unwrap();
    }
    reply
}

fn baking(arguments: Value) -> Call {
    Call::tool("bake").param("arguments", arguments)
}

#[test]
fn the_guide_shows_the_handler_that_is_tested_here() {
    let code = format!("```\n{}```\n", include_str!("answering.rs"));
    assert!(GUIDE.contains(&code), "copy the code of the guide to here");
}

#[tokio::test]
async fn its_results_meet_the_schema() {
    for call in [
        Call::new("server/discover"),
        Call::new("tools/list"),
        baking(json!({"loaves": 2})),
    ] {
        let reply = answer(call).await;
        assert_eq!(reply.status, 200);
        let result = &reply.json()["result"];
        assert_ne!(result["isError"], true, "{result}");
    }
    let reply = answer(baking(json!({"loaves": 2})).token("p")).await;
    assert_eq!(reply.events().len(), 3);
}

#[tokio::test]
async fn its_tool_takes_what_its_input_schema_says_and_fails_by_a_result() {
    let accepts = jsonschema::validator_for(&bake_tool()["inputSchema"]).unwrap();
    for (arguments, says) in [
        (json!({"loaves": 1}), ""),
        (json!({"loaves": 12}), ""),
        (json!({"loaves": 13}), "`loaves`"),
        (json!({"loaves": 0}), "`loaves`"),
        (json!({"loaves": "two"}), "loaves"),
        (json!({}), "loaves"),
    ] {
        let reply = answer(baking(arguments.clone())).await;
        let result = &reply.json()["result"];
        let failed = result["isError"] == true;
        assert_eq!(
            failed,
            !accepts.is_valid(&arguments),
            "{arguments}: {result}"
        );
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(says), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_as_in_the_specification() {
    let example = include_str!("../data/examples/InvalidParamsError/unknown-tool.json");
    let example: Value = serde_json::from_str(example).unwrap();
    let reply = answer(Call::tool("invalid_tool_name")).await;
    assert_eq!(reply.json()["error"], example);
    assert_eq!(reply.status, 200);

    let reply = answer(Call::new("prompts/list")).await;
    assert_eq!(reply.json()["error"]["code"], -32601);
    assert_eq!(reply.status, 404);
}

/// The names between backticks.
fn names(cell: &str) -> BTreeSet<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_table_has_every_method_and_what_its_result_requires() {
    let schema: Value = serde_json::from_str(include_str!("../data/schema.json")).unwrap();
    let definitions = &schema["$defs"];
    let of_clients = definitions["ClientRequest"]["anyOf"].as_array().unwrap();
    let mut methods = BTreeSet::new();
    for reference in of_clients {
        let request = reference["$ref"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap();
        let method = definitions[request]["properties"]["method"]["const"]
            .as_str()
            .unwrap();
        // Not for a handler to write, as the guide says below the table.
        if method == "subscriptions/listen" {
            continue;
        }
        methods.insert(method);
        let row = GUIDE
            .lines()
            .find(|line| line.starts_with(&format!("| `{method}` |")));
        let row = row.unwrap_or_else(|| panic!("no row of {method}"));
        let told = names(row.split('|').nth(2).unwrap());
        let result = request.replace("Request", "Result");
        let required = definitions[&result]["required"].as_array().unwrap();
        let required: BTreeSet<_> = required.iter().map(|name| name.as_str().unwrap()).collect();
        let expected: BTreeSet<_> = required
            .into_iter()
            .filter(|name| *name != "resultType")
            .collect();
        assert_eq!(told, expected, "{method}");
    }
    let rows = GUIDE
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains('/'));
    assert_eq!(rows.count(), methods.len());
}

#[test]
fn the_members_of_its_lists_are_those_that_the_schema_requires() {
    for (definition, least) in [
        (
            "Tool",
            json!({"name": "x", "inputSchema": {"type": "object"}}),
        ),
        ("Prompt", json!({"name": "x"})),
        (
            "PromptMessage",
            json!({"role": "user", "content": {"type": "text", "text": "x"}}),
        ),
        ("Resource", json!({"uri": "x:y", "name": "x"})),
        (
            "ResourceTemplate",
            json!({"uriTemplate": "x:{y}", "name": "x"}),
        ),
        ("TextResourceContents", json!({"uri": "x:y", "text": "x"})),
        (
            "BlobResourceContents",
            json!({"uri": "x:y", "blob": "eA=="}),
        ),
        (
            "CallToolResult",
            json!({"resultType": "complete", "content": []}),
        ),
    ] {
        validate_definition(definition, &least).unwrap();
        for member in least.as_object().unwrap().keys() {
            let mut less = least.clone();
            less.as_object_mut().unwrap().remove(member);
            assert!(
                validate_definition(definition, &less).is_err(),
                "{definition} without {member}"
            );
        }
    }
}
