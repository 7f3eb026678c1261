//! Tools that have the user fill in a form, and say what became of it.

use mcp_channel::{Reply, RpcError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, Tool, nothing, object};
use crate::content::said;
use crate::input::{Answers, Elicited, Questions};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_elicitation",
            "Shows the user a message, and asks for a name and an address.",
            object(json!({"message": {"type": "string"}}), &["message"]),
            contact,
        ),
        Tool::new(
            "test_elicitation_sep1034_defaults",
            "Shows a form with a default in each kind of field.",
            nothing(),
            defaults,
        ),
        Tool::new(
            "test_elicitation_sep1330_enums",
            "Shows a form with each kind of choice.",
            nothing(),
            choices,
        ),
    ]
}

async fn contact(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        message: String,
    }
    let Args { message } = call.message.arguments()?;
    let schema = object(
        json!({
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }),
        &["username", "email"],
    );
    filled_in(&call, "User response", &message, schema)
}

async fn defaults(call: Call) -> Result<Reply, RpcError> {
    let schema = object(
        json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        }),
        &[],
    );
    filled_in(
        &call,
        "Elicitation completed",
        "Is this still right?",
        schema,
    )
}

async fn choices(call: Call) -> Result<Reply, RpcError> {
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")},
        ])
    };
    let untitled = json!(["option1", "option2", "option3"]);
    let schema = object(
        json!({
            "untitledSingle": {"type": "string", "enum": untitled},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            // How titles were written before there was `oneOf`.
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": untitled}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        }),
        &[],
    );
    filled_in(
        &call,
        "Elicitation completed",
        "What do you choose?",
        schema,
    )
}

/// Asks the user to fill in the form, and once that is answered says how.
fn filled_in(call: &Call, words: &str, message: &str, schema: Value) -> Result<Reply, RpcError> {
    call.require(json!({"elicitation": {}}))?;
    let (action, content) = match Answers::of(&call.message)?.get("form")? {
        None => return Ok(Questions::default().form("form", message, schema).into()),
        Some(Elicited::Accept { content }) => ("accept", content),
        Some(Elicited::Decline) => ("decline", Map::new()),
        Some(Elicited::Cancel) => ("cancel", Map::new()),
    };
    let content = Value::Object(content);
    Ok(said(format!("{words}: action={action}, content={content}")))
}
