//! Results that ask the client for more, and what it answers.
//!
//! The protocol keeps no session: such a result ends the request, and the client sends the request
//! again with the answers in it.

use std::collections::BTreeMap;

use mcp_channel::{Message, Reply, RpcError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What is asked of a client, each question under a name of its own.
#[derive(Debug, Default)]
pub struct Questions {
    requests: Map<String, Value>,
    state: Option<String>,
}

impl Questions {
    /// A form with one field for the user to fill in.
    pub fn elicit(self, name: &str, message: &str, field: &str, kind: &str) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {field: {"type": kind}},
            "required": [field],
        });
        self.form(name, message, schema)
    }

    /// A form with a field for each property of the schema.
    pub fn form(self, name: &str, message: &str, schema: Value) -> Self {
        let params = json!({"message": message, "requestedSchema": schema});
        self.ask(name, "elicitation/create", params)
    }

    /// A text for the client's model to write.
    pub fn sample(self, name: &str, prompt: &str, max_tokens: u32) -> Self {
        let content = json!({"type": "text", "text": prompt});
        self.ask(
            name,
            "sampling/createMessage",
            json!({
                "messages": [{"role": "user", "content": content}],
                "maxTokens": max_tokens,
            }),
        )
    }

    /// The client's roots.
    pub fn roots(self, name: &str) -> Self {
        self.ask(name, "roots/list", json!({}))
    }

    /// What the client sends back unread with its answers; see [`Seal`](crate::seal::Seal).
    pub fn state(mut self, sealed: String) -> Self {
        self.state = Some(sealed);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn ask(mut self, name: &str, method: &str, params: Value) -> Self {
        let request = json!({"method": method, "params": params});
        self.requests.insert(name.into(), request);
        self
    }
}

impl From<Questions> for Reply {
    fn from(questions: Questions) -> Self {
        let mut result = json!({
            "resultType": "input_required",
            "inputRequests": questions.requests,
        });
        if let Some(state) = questions.state {
            result["requestState"] = state.into();
        }
        Reply::result(result)
    }
}

/// What the client answered so far, and the state it sent back.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answers {
    /// The answers are read when it is known what was asked; what was not asked is ignored.
    #[serde(default)]
    input_responses: BTreeMap<String, Box<RawValue>>,
    request_state: Option<String>,
}

impl Answers {
    pub fn of(message: &Message) -> Result<Self, RpcError> {
        message.params()
    }

    pub fn state(&self) -> Option<&str> {
        self.request_state.as_deref()
    }

    pub fn is_empty(&self) -> bool {
        self.input_responses.is_empty()
    }

    /// The answer to the question of that name, if it is there.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RpcError> {
        let Some(answer) = self.input_responses.get(name) else {
            return Ok(None);
        };
        let answer = serde_json::from_str(answer.get());
        answer.map(Some).map_err(|why| {
            RpcError::invalid_params(format!("`inputResponses.{name}` is no answer: {why}"))
        })
    }
}

/// The answer to a form.
#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Elicited<T> {
    Accept { content: T },
    Decline,
    Cancel,
}

/// The answer of a model.
#[derive(Deserialize)]
pub struct Sampled {
    content: Blocks,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Blocks {
    Many(Vec<Block>),
    One(Block),
}

#[derive(Deserialize)]
struct Block {
    /// Only texts have one.
    text: Option<String>,
}

impl Sampled {
    pub fn into_text(self) -> String {
        let blocks = match self.content {
            Blocks::Many(blocks) => blocks,
            Blocks::One(block) => vec![block],
        };
        let texts: Vec<String> = blocks.into_iter().filter_map(|block| block.text).collect();
        texts.join("\n")
    }
}

/// The client's roots.
#[derive(Deserialize)]
pub struct Roots {
    pub roots: Vec<Root>,
}

#[derive(Deserialize)]
pub struct Root {
    pub uri: String,
}
