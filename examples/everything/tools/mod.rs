//! The tools: their list, and the way from a call to its function.

mod asking;
mod background;
mod basics;
mod ending;
mod forms;
mod samples;
mod sending;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use mcp_channel::{Channel, Message, Reply, RpcError};
use serde_json::{Value, json};

use crate::app::App;
use crate::discover::{Cacheable, refuse_cursor};
use crate::param_headers;

/// One call of a tool, and all that its function needs.
pub struct Call {
    pub app: App,
    pub channel: Channel,
    pub headers: HeaderMap,
    pub message: Message,
}

impl Call {
    /// Finds the tool and runs it.
    pub async fn run(self) -> Result<Response, RpcError> {
        let name = self.message.name().unwrap_or_default().into_owned();
        let tools = Arc::clone(&self.app.tools);
        let Some(tool) = tools.get(&name) else {
            return Err(RpcError::invalid_params(format!(
                "unknown tool {name:?}: tools/list names those there are"
            )));
        };
        param_headers::check(&tool.input_schema, &self.message, &self.headers)?;
        (tool.run)(self).await
    }

    /// Opens the stream: with a progress frame if the client wants progress.
    async fn open_stream(&self) {
        // An error means that the client is gone, and then there is nobody left to tell.
        let _ = match self.channel.progress_token() {
            Some(_) => self.channel.send_progress(1).await,
            None => self.channel.start_stream(),
        };
    }
}

type Run = Box<dyn Fn(Call) -> Answering + Send + Sync>;
type Answering = Pin<Box<dyn Future<Output = Result<Response, RpcError>> + Send>>;

/// A tool: what clients are told of it, and its function.
struct Tool {
    name: &'static str,
    description: &'static str,
    input_schema: Value,
    run: Run,
}

impl Tool {
    /// The function takes the [`Call`] and returns whatever axum takes for a response: a
    /// [`Reply`], [`Deferred`](mcp_channel::Deferred), a response of its own.
    fn new<F, Fut, R>(
        name: &'static str,
        description: &'static str,
        input_schema: Value,
        run: F,
    ) -> Self
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: IntoResponse,
    {
        Self {
            name,
            description,
            input_schema,
            run: Box::new(move |call| {
                let answer = run(call);
                Box::pin(async { answer.await.map(IntoResponse::into_response) })
            }),
        }
    }
}

/// All tools, in the order in which they are listed.
pub struct Tools {
    tools: Vec<Tool>,
    by_name: HashMap<&'static str, usize>,
}

impl Tools {
    pub fn new() -> Self {
        let tools: Vec<Tool> = [
            samples::tools(),
            basics::tools(),
            sending::tools(),
            ending::tools(),
            background::tools(),
            asking::tools(),
            forms::tools(),
        ]
        .into_iter()
        .flatten()
        .collect();
        let by_name = tools.iter().enumerate().map(|(n, tool)| (tool.name, n));
        Self {
            by_name: by_name.collect(),
            tools,
        }
    }

    fn get(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).map(|n| &self.tools[*n])
    }

    /// `tools/list`.
    pub fn list(&self, message: &Message) -> Result<Reply, RpcError> {
        refuse_cursor(message)?;
        let tools = self.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
            })
        });
        let tools: Vec<Value> = tools.collect();
        Ok(Reply::result(Cacheable::new(json!({"tools": tools}))))
    }
}

/// The schema of an object with these properties.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of a tool that takes nothing.
fn nothing() -> Value {
    json!({"type": "object"})
}
