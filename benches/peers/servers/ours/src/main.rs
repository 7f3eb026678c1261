//! This library with its default options, and a handler that reads its parameters into types and answers with a value.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use harness::Context;
use harness::wire::Arguments;
use http::{Request, Response};
use http_body_util::Empty;
use mcp_channel::{Channel, McpChannelLayer, Message, Reply, RequestBody, RpcError, SendError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tower::{Layer, service_fn};

#[derive(Deserialize)]
struct Params {
    name: Tool,
    #[serde(default)]
    arguments: Arguments,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tool {
    Echo,
    Progress,
    Hold,
    Fan,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: [Content<'a>; 1],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Content<'a> {
    Text { text: &'a str },
}

fn result(text: &str) -> Reply {
    Reply::result(ToolResult { content: [Content::Text { text }] })
}

async fn handle(context: Arc<Context>, request: Request<RequestBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut extensions = request.into_parts().0.extensions;
    let (channel, message) = (extensions.remove::<Channel>(), extensions.remove::<Message>());
    drop(extensions);
    let (Some(channel), Some(message)) = (channel, message) else {
        return Ok(RpcError::internal("there is no layer").into());
    };
    let params = match message.params::<Params>() {
        Ok(params) => params,
        Err(error) => return Ok(error.into()),
    };
    // Nothing of the request is kept while the tool runs.
    drop(message);
    Ok(match run(&context, &channel, params).await {
        Ok(reply) => reply.into(),
        Err(error) => RpcError::internal(error.to_string()).into(),
    })
}

async fn run(context: &Context, channel: &Channel, Params { name, arguments }: Params) -> Result<Reply, SendError> {
    match name {
        Tool::Echo => Ok(result(&arguments.text)),
        Tool::Progress => {
            let steps = arguments.steps;
            let message = arguments.text_of_message();
            let pause = Duration::from_millis(arguments.pause_ms);
            let mut pauses = (!pause.is_zero()).then(|| Box::pin(tokio::time::interval_at(Instant::now() + pause, pause)));
            for step in 1..=steps {
                match &message {
                    Some(message) => channel.send_progress((step, steps, message.as_str())).await?,
                    None => channel.send_progress((step, steps)).await?,
                }
                if let Some(pauses) = &mut pauses {
                    pauses.tick().await;
                }
            }
            Ok(result("done"))
        }
        Tool::Hold => {
            let _guard = context.guard();
            channel.send_progress((1, 1)).await?;
            std::future::pending().await
        }
        Tool::Fan => {
            let mut beats = context.beats();
            for step in 1_u64.. {
                channel.send_progress((step, step)).await?;
                beats.changed().await.expect("the context outlives its requests");
            }
            Ok(result("never"))
        }
    }
}

fn main() -> ExitCode {
    harness::main(false, |context| McpChannelLayer::new().layer(service_fn(move |request| handle(context.clone(), request))))
}
