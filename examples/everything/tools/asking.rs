//! Tools that need something from the client before they can answer.

use mcp_channel::{Reply, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Call, Tool, nothing, object};
use crate::content::said;
use crate::input::{Answers, Elicited, Questions, Roots, Sampled};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_input_required_result_elicitation",
            "Asks the user for a name.",
            nothing(),
            elicitation,
        ),
        Tool::new(
            "test_input_required_result_sampling",
            "Asks the client's model a question.",
            nothing(),
            sampling,
        ),
        Tool::new(
            "test_input_required_result_list_roots",
            "Asks for the client's roots.",
            nothing(),
            list_roots,
        ),
        Tool::new(
            "test_input_required_result_request_state",
            "Asks for a confirmation, with state.",
            nothing(),
            confirmation,
        ),
        Tool::new(
            "test_input_required_result_tampered_state",
            "Asks for a confirmation, and refuses state that was changed.",
            nothing(),
            confirmation,
        ),
        Tool::new(
            "test_input_required_result_multiple_inputs",
            "Asks for three things at once.",
            nothing(),
            multiple_inputs,
        ),
        Tool::new(
            "test_input_required_result_multi_round",
            "Asks for one thing after another.",
            nothing(),
            multi_round,
        ),
        Tool::new(
            "test_input_required_result_capabilities",
            "Asks for what the client can give.",
            nothing(),
            capabilities,
        ),
        Tool::new(
            "test_sampling",
            "Passes a prompt on to the client's model.",
            object(json!({"prompt": {"type": "string"}}), &["prompt"]),
            prompted,
        ),
    ]
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Confirmation {
    ok: bool,
}

#[derive(Deserialize)]
struct Color {
    color: String,
}

/// There is nothing to remember between the rounds, so there is no state.
async fn elicitation(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"elicitation": {}}))?;
    let answers = Answers::of(&call.message)?;
    Ok(match answers.get("user_name")? {
        None => Questions::default()
            .elicit("user_name", "What is your name?", "name", "string")
            .into(),
        Some(Elicited::Accept {
            content: Name { name },
        }) => said(format!("Hello, {name}!")),
        Some(Elicited::Decline | Elicited::Cancel) => said("Hello, whoever you are!"),
    })
}

async fn sampling(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"sampling": {}}))?;
    let answers = Answers::of(&call.message)?;
    Ok(match answers.get::<Sampled>("capital_question")? {
        None => Questions::default()
            .sample("capital_question", "What is the capital of France?", 100)
            .into(),
        Some(sampled) => said(sampled.into_text()),
    })
}

async fn list_roots(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"roots": {}}))?;
    let answers = Answers::of(&call.message)?;
    Ok(match answers.get::<Roots>("client_roots")? {
        None => Questions::default().roots("client_roots").into(),
        Some(answer) => said(names(&answer)),
    })
}

fn names(answer: &Roots) -> String {
    let uris: Vec<&str> = answer.roots.iter().map(|root| root.uri.as_str()).collect();
    uris.join(", ")
}

/// An answer counts only with the state of the question it answers.
async fn confirmation(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"elicitation": {}}))?;
    let answers = Answers::of(&call.message)?;
    let asked: Option<()> = call.state(&answers)?;
    Ok(match (asked, answers.get("confirm")?) {
        (Some(()), Some(answer)) => match answer {
            Elicited::Accept {
                content: Confirmation { ok: true },
            } => said("state-ok, confirmed"),
            Elicited::Accept { .. } | Elicited::Decline | Elicited::Cancel => {
                said("state-ok, not confirmed")
            }
        },
        _ => Questions::default()
            .elicit("confirm", "Please confirm", "ok", "boolean")
            .state(call.seal(())?)
            .into(),
    })
}

async fn multiple_inputs(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"elicitation": {}, "sampling": {}, "roots": {}}))?;
    let answers = Answers::of(&call.message)?;
    let asked: Option<()> = call.state(&answers)?;
    let name = answers.get("user_name")?;
    let greeting = answers.get::<Sampled>("greeting")?;
    let roots = answers.get::<Roots>("client_roots")?;
    Ok(match (asked, name, greeting, roots) {
        (Some(()), Some(name), Some(greeting), Some(roots)) => {
            let name = match name {
                Elicited::Accept {
                    content: Name { name },
                } => name,
                Elicited::Decline | Elicited::Cancel => "somebody".into(),
            };
            said(format!(
                "{}, {name}, from {}",
                greeting.into_text(),
                names(&roots)
            ))
        }
        _ => Questions::default()
            .elicit("user_name", "What is your name?", "name", "string")
            .sample("greeting", "Generate a greeting", 50)
            .roots("client_roots")
            .state(call.seal(())?)
            .into(),
    })
}

/// Where the conversation stands. The client brings only its newest answer, so the state holds the
/// earlier ones.
#[derive(Deserialize, Serialize)]
enum Round {
    AskedName,
    AskedColor { name: String },
}

async fn multi_round(call: Call) -> Result<Reply, RpcError> {
    call.require(json!({"elicitation": {}}))?;
    let answers = Answers::of(&call.message)?;
    let name = match call.state(&answers)? {
        None => None,
        Some(Round::AskedName) => match answers.get("step1")? {
            None => None,
            Some(Elicited::Accept {
                content: Name { name },
            }) => Some(name),
            Some(Elicited::Decline | Elicited::Cancel) => return Ok(said("As you like.")),
        },
        Some(Round::AskedColor { name }) => match answers.get("step2")? {
            None => Some(name),
            Some(Elicited::Accept {
                content: Color { color },
            }) => return Ok(said(format!("{name} likes {color}."))),
            Some(Elicited::Decline | Elicited::Cancel) => {
                return Ok(said(format!("{name} keeps a secret.")));
            }
        },
    };
    let questions = Questions::default();
    Ok(match name {
        None => questions
            .elicit("step1", "Step 1: What is your name?", "name", "string")
            .state(call.seal(Round::AskedName)?)
            .into(),
        Some(name) => questions
            .elicit(
                "step2",
                "Step 2: What is your favorite color?",
                "color",
                "string",
            )
            .state(call.seal(Round::AskedColor { name })?)
            .into(),
    })
}

async fn capabilities(call: Call) -> Result<Reply, RpcError> {
    let answers = Answers::of(&call.message)?;
    if !answers.is_empty() {
        return Ok(said("Thank you."));
    }
    let mut questions = Questions::default();
    if call.require(json!({"elicitation": {}})).is_ok() {
        questions = questions.elicit("elicit_input", "Please enter a value", "value", "string");
    }
    if call.require(json!({"sampling": {}})).is_ok() {
        questions = questions.sample("sample_input", "Sample request", 50);
    }
    Ok(if questions.is_empty() {
        said("The client can give nothing.")
    } else {
        questions.into()
    })
}

async fn prompted(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        prompt: String,
    }
    let Args { prompt } = call.message.arguments()?;
    call.require(json!({"sampling": {}}))?;
    let answers = Answers::of(&call.message)?;
    Ok(match answers.get::<Sampled>("prompt")? {
        None => Questions::default().sample("prompt", &prompt, 100).into(),
        Some(sampled) => said(format!("LLM response: {}", sampled.into_text())),
    })
}

impl Call {
    /// Fails unless the client declared these capabilities.
    pub(super) fn require(&self, capabilities: serde_json::Value) -> Result<(), RpcError> {
        self.message.meta().require_capabilities(capabilities)
    }

    fn seal(&self, state: impl Serialize) -> Result<String, RpcError> {
        self.app.seal.seal(&self.message, state)
    }

    /// The state that came back, if one did. One that is not ours is an error.
    fn state<T: serde::de::DeserializeOwned>(
        &self,
        answers: &Answers,
    ) -> Result<Option<T>, RpcError> {
        let state = answers.state();
        state
            .map(|sealed| self.app.seal.open(&self.message, sealed))
            .transpose()
    }
}
