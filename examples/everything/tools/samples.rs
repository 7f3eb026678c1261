//! Tools that show each kind of content and each way to describe arguments.

use std::time::Duration;

use mcp_channel::subscriptions::Change;
use mcp_channel::{LogLevel, Reply, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Call, Tool, nothing, object};
use crate::content::{audio, blocks, embedded, image, said, text};

/// The first of them comes first in the list: it needs no arguments.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_simple_text",
            "Answers with a text.",
            nothing(),
            async |_| Ok(said("This is a simple text response for testing.")),
        ),
        Tool::new(
            "test_image_content",
            "Answers with an image.",
            nothing(),
            async |_| Ok(blocks([image()])),
        ),
        Tool::new(
            "test_audio_content",
            "Answers with a sound.",
            nothing(),
            async |_| Ok(blocks([audio()])),
        ),
        Tool::new(
            "test_embedded_resource",
            "Answers with a resource.",
            nothing(),
            embedded_resource,
        ),
        Tool::new(
            "test_multiple_content_types",
            "Answers with a text, an image and a resource.",
            nothing(),
            mixed,
        ),
        Tool::new(
            "test_error_handling",
            "Fails in a way that the model should see.",
            nothing(),
            error,
        ),
        Tool::new(
            "test_tool_with_progress",
            "Reports progress three times.",
            nothing(),
            progress,
        ),
        Tool::new(
            "test_tool_with_logging",
            "Sends a log record at each stage of its work.",
            nothing(),
            stages,
        ),
        Tool::new(
            "test_missing_capability",
            "Needs a client that can sample.",
            nothing(),
            needs_sampling,
        ),
        Tool::new(
            "test_streaming_elicitation",
            "Answers on a stream.",
            nothing(),
            streaming,
        ),
        Tool::new(
            "test_logging_tool",
            "Sends a log record.",
            nothing(),
            logging,
        ),
        Tool::new(
            "test_trigger_tool_change",
            "Tells the subscribers that the list of tools changed.",
            nothing(),
            async |call| published(&call, &Change::Tools),
        ),
        Tool::new(
            "test_trigger_prompt_change",
            "Tells the subscribers that the list of prompts changed.",
            nothing(),
            async |call| published(&call, &Change::Prompts),
        ),
        Tool::new(
            "json_schema_2020_12_tool",
            "Describes its arguments with much of JSON Schema 2020-12.",
            contact_schema(),
            async |_| Ok(said("ok")),
        ),
        Tool::new(
            "test_x_mcp_header",
            "Has an argument that a header repeats, for those that route by it.",
            object(
                json!({"region": {"type": "string", "x-mcp-header": "Region"}}),
                &["region"],
            ),
            region,
        ),
    ]
}

async fn embedded_resource(_: Call) -> Result<Reply, RpcError> {
    Ok(blocks([embedded(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    )]))
}

async fn mixed(_: Call) -> Result<Reply, RpcError> {
    Ok(blocks([
        text("Multiple content types test:"),
        image(),
        embedded(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ]))
}

/// A failure of the tool, not of the request: a result, for the model to read.
async fn error(_: Call) -> Result<Reply, RpcError> {
    Ok(Reply::result(json!({
        "content": [text("This tool intentionally returns an error for testing")],
        "isError": true,
    })))
}

async fn progress(call: Call) -> Result<Reply, RpcError> {
    for done in [0, 50, 100] {
        let _ = call.channel.send_progress((done, 100)).await;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(said("done"))
}

async fn stages(call: Call) -> Result<Reply, RpcError> {
    let log = async |stage: &str| {
        let _ = call.channel.send_log(LogLevel::Info, stage).await;
    };
    log("Tool execution started").await;
    sleep(Duration::from_millis(50)).await;
    log("Tool processing data").await;
    sleep(Duration::from_millis(50)).await;
    log("Tool execution completed").await;
    Ok(said("done"))
}

async fn needs_sampling(call: Call) -> Result<Reply, RpcError> {
    call.message
        .meta()
        .require_capabilities(json!({"sampling": {}}))?;
    Ok(said("The client can sample."))
}

async fn streaming(call: Call) -> Result<Reply, RpcError> {
    let _ = call.channel.start_stream();
    Ok(said("Streaming complete"))
}

async fn logging(call: Call) -> Result<Reply, RpcError> {
    let _ = call.channel.send_log(LogLevel::Info, "working").await;
    Ok(said("Logging evaluated"))
}

fn published(call: &Call, change: &Change) -> Result<Reply, RpcError> {
    let told = call.app.subscriptions.publish(change);
    Ok(said(format!("told {told} subscribers")))
}

async fn region(call: Call) -> Result<Reply, RpcError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Args {
        region: Option<String>,
    }
    let Args { region } = call.message.arguments()?;
    Ok(said(region.unwrap_or_else(|| "no region".into())))
}

fn contact_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
