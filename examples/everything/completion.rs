//! `completion/complete`.

use mcp_channel::{Message, Reply, RpcError};
use serde::Deserialize;
use serde_json::json;

/// What the arguments of prompts may be completed to.
const WORDS: [&str; 4] = ["paris", "park", "party", "testing"];

pub fn complete(message: &Message) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        r#ref: Ref,
        argument: Argument,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type")]
    enum Ref {
        #[serde(rename = "ref/prompt")]
        Prompt { name: String },
        #[serde(rename = "ref/resource")]
        Resource { uri: String },
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    let Params { r#ref, argument } = message.params()?;
    let known = match &r#ref {
        Ref::Prompt { name } => {
            name == "test_prompt_with_arguments" && ["arg1", "arg2"].contains(&&*argument.name)
        }
        Ref::Resource { uri } => uri == "test://template/{id}/data" && argument.name == "id",
    };
    if !known {
        return Err(RpcError::invalid_params(format!(
            "`ref` has no argument {:?} to complete",
            argument.name
        )));
    }
    let values = WORDS
        .iter()
        .filter(|word| word.starts_with(&argument.value));
    let values: Vec<_> = values.collect();
    Ok(Reply::result(json!({
        "completion": {"values": values, "total": values.len(), "hasMore": false},
    })))
}
