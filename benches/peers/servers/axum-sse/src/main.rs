//! What one writes by hand on axum: the body as a `serde_json::Value`, a task that runs the tool, a channel, and
//! `Sse` with a keep-alive over it. None of the protocol's checks.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use harness::Context;
use harness::wire::Arguments;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

async fn endpoint(State(context): State<Arc<Context>>, Json(mut message): Json<Value>) -> Response {
    let id = message["id"].take();
    let mut params = message["params"].take();
    let arguments: Arguments = match serde_json::from_value(params["arguments"].take()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = json!({ "code": -32602, "message": error.to_string() });
            return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
        }
    };
    let tool = params["name"].take();
    if tool == "echo" {
        return Json(result(id, &arguments.text)).into_response();
    }
    let token = params["_meta"]["progressToken"].take();
    let (sender, receiver) = mpsc::channel(32);
    tokio::spawn(async move {
        // The receiver is gone when the client is: then there is nobody left to tell.
        let _ = run(&context, &tool, id, token, arguments, sender).await;
    });
    let events =
        ReceiverStream::new(receiver).map(|message| Ok::<_, Infallible>(Event::default().event("message").data(message.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

async fn run(
    context: &Context,
    tool: &Value,
    id: Value,
    token: Value,
    arguments: Arguments,
    sender: mpsc::Sender<Value>,
) -> Result<(), mpsc::error::SendError<Value>> {
    match tool.as_str() {
        Some("progress") => {
            let message = arguments.text_of_message();
            let pause = Duration::from_millis(arguments.pause_ms);
            let mut pauses = (!pause.is_zero()).then(|| tokio::time::interval_at(Instant::now() + pause, pause));
            for step in 1..=arguments.steps {
                sender.send(progress(&token, step, arguments.steps, message.as_deref())).await?;
                if let Some(pauses) = &mut pauses {
                    pauses.tick().await;
                }
            }
            sender.send(result(id, "done")).await
        }
        Some("hold") => {
            let _guard = context.guard();
            sender.send(progress(&token, 1, 1, None)).await?;
            std::future::pending().await
        }
        Some("fan") => {
            let mut beats = context.beats();
            for step in 1.. {
                sender.send(progress(&token, step, step, None)).await?;
                beats.changed().await.expect("the context outlives its requests");
            }
            Ok(())
        }
        _ => {
            let error = json!({ "code": -32602, "message": "unknown tool" });
            sender.send(json!({ "jsonrpc": "2.0", "id": id, "error": error })).await
        }
    }
}

fn result(id: Value, text: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "result": { "resultType": "complete", "content": [{ "type": "text", "text": text }] },
    })
}

fn progress(token: &Value, progress: u64, total: u64, message: Option<&str>) -> Value {
    let mut frame = json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": progress, "total": total },
    });
    if let Some(message) = message {
        frame["params"]["message"] = message.into();
    }
    frame
}

fn main() -> ExitCode {
    harness::main(false, |context| Router::new().route("/", post(endpoint)).with_state(context))
}
