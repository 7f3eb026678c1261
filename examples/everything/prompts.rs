//! `prompts/list` and `prompts/get`.

use mcp_channel::{Message, Reply, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::{embedded, image, text};
use crate::discover::{Cacheable, refuse_cursor};
use crate::input::{Answers, Elicited, Questions};

pub fn list(message: &Message) -> Result<Reply, RpcError> {
    refuse_cursor(message)?;
    Ok(Reply::result(Cacheable::new(json!({
        "prompts": [
            {"name": "test_simple_prompt", "description": "A text."},
            {
                "name": "test_prompt_with_arguments",
                "description": "A text with two arguments in it.",
                "arguments": [
                    {"name": "arg1", "description": "The first.", "required": true},
                    {"name": "arg2", "description": "The second.", "required": true},
                ],
            },
            {
                "name": "test_prompt_with_embedded_resource",
                "description": "A resource and a text.",
                "arguments": [
                    {"name": "resourceUri", "description": "The resource.", "required": true},
                ],
            },
            {"name": "test_prompt_with_image", "description": "An image and a text."},
            {
                "name": "test_input_required_result_prompt",
                "description": "A text that depends on what the user answers.",
            },
        ],
    }))))
}

pub fn get(message: &Message) -> Result<Reply, RpcError> {
    match &*message.name().unwrap_or_default() {
        "test_simple_prompt" => Ok(user([text("This is a simple prompt for testing.")])),
        "test_prompt_with_arguments" => {
            #[derive(Deserialize)]
            struct Args {
                arg1: String,
                arg2: String,
            }
            let Args { arg1, arg2 } = message.arguments()?;
            Ok(user([text(format!(
                "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
            ))]))
        }
        "test_prompt_with_embedded_resource" => {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Args {
                resource_uri: String,
            }
            let Args { resource_uri } = message.arguments()?;
            Ok(user([
                embedded(
                    &resource_uri,
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                text("Please process the embedded resource above."),
            ]))
        }
        "test_prompt_with_image" => Ok(user([image(), text("Please analyze the image above.")])),
        "test_input_required_result_prompt" => asking(message),
        unknown => Err(RpcError::invalid_params(format!(
            "unknown prompt {unknown:?}: prompts/list names those there are"
        ))),
    }
}

fn asking(message: &Message) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Context {
        context: String,
    }
    message
        .meta()
        .require_capabilities(json!({"elicitation": {}}))?;
    Ok(match Answers::of(message)?.get("user_context")? {
        None => Questions::default()
            .elicit(
                "user_context",
                "What context should the prompt use?",
                "context",
                "string",
            )
            .into(),
        Some(Elicited::Accept {
            content: Context { context },
        }) => user([text(format!("Use this context: {context}"))]),
        Some(Elicited::Decline | Elicited::Cancel) => user([text("Use no context.")]),
    })
}

/// The result: each block is a message of the user.
fn user(blocks: impl IntoIterator<Item = Value>) -> Reply {
    let messages = blocks
        .into_iter()
        .map(|content| json!({"role": "user", "content": content}));
    let messages: Vec<Value> = messages.collect();
    Reply::result(json!({"messages": messages}))
}
