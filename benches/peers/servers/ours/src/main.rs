//! This library with its default options, and a handler that reads its arguments into types and replies through the channel.

use std::borrow::Cow;
use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use harness::Context;
use harness::wire::Arguments;
use http::{Request, Response};
use http_body_util::Empty;
use mcp_channel::{Channel, McpChannelLayer, Message, RequestBody, RpcError, SendError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tower::{Layer, service_fn};

/// The text that `echo` is given, where it lies in the request.
#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
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

fn reply(channel: &Channel, text: &str) -> Result<(), SendError> {
    channel.send_result(ToolResult { content: [Content::Text { text }] })
}

async fn handle(context: Arc<Context>, request: Request<RequestBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut extensions = request.into_parts().0.extensions;
    let (channel, message) = (extensions.remove::<Channel>(), extensions.remove::<Message>());
    drop(extensions);
    let (Some(channel), Some(message)) = (channel, message) else {
        return Ok(RpcError::internal("there is no layer").into());
    };
    Ok(match run(&context, &channel, message).await {
        Ok(()) => Response::new(Empty::new()),
        Err(error) => error.into(),
    })
}

async fn run(context: &Context, channel: &Channel, message: Message) -> Result<(), RpcError> {
    if message.name().as_deref() == Some("echo") {
        let Echo { text } = message.arguments()?;
        return reply(channel, &text).map_err(failed);
    }
    let tool = message.name().unwrap_or_default().into_owned();
    let arguments = message.arguments()?;
    // Nothing of the request is kept while the tool runs.
    drop(message);
    stream(context, channel, &tool, arguments).await.map_err(failed)
}

fn failed(error: SendError) -> RpcError {
    RpcError::internal(error.to_string())
}

async fn stream(context: &Context, channel: &Channel, tool: &str, arguments: Arguments) -> Result<(), SendError> {
    match tool {
        "progress" => {
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
            reply(channel, "done")
        }
        "hold" => {
            let _guard = context.guard();
            channel.send_progress((1, 1)).await?;
            std::future::pending().await
        }
        _ => {
            let mut beats = context.beats();
            for step in 1_u64.. {
                channel.send_progress((step, step)).await?;
                beats.changed().await.expect("the context outlives its requests");
            }
            reply(channel, "never")
        }
    }
}

fn main() -> ExitCode {
    harness::main(false, |context| McpChannelLayer::new().layer(service_fn(move |request| handle(context.clone(), request))))
}
