//! Tools that end in every way that a handler can.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use mcp_channel::{Deferred, Reply, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::basics::final_status;
use super::{Call, Tool, nothing, object};
use crate::content::{Structured, said, structured};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "hold",
            "Holds the request for a time, with an open stream or without.",
            object(
                json!({
                    "ms": {"type": "integer", "minimum": 0},
                    "stream": {"type": "boolean", "default": false},
                }),
                &["ms"],
            ),
            hold,
        ),
        Tool::new(
            "start_twice",
            "Opens the stream twice; there is one stream.",
            nothing(),
            start_twice,
        ),
        Tool::new(
            "fail",
            "Answers with an error.",
            object(
                json!({
                    "code": {"type": "integer"},
                    "message": {"type": "string"},
                    "data": {},
                    "status": {"type": "integer", "minimum": 200, "maximum": 599},
                    "after_stream": AFTER_STREAM.clone(),
                }),
                &["code", "message"],
            ),
            fail,
        ),
        Tool::new(
            "panic",
            "Panics.",
            object(json!({"after_stream": AFTER_STREAM.clone()}), &[]),
            panic,
        ),
        Tool::new(
            "close",
            "Ends the response without a reply.",
            object(json!({"after_stream": AFTER_STREAM.clone()}), &[]),
            close,
        ),
        Tool::new(
            "reply_twice",
            "Answers twice; the first answer is the answer.",
            nothing(),
            reply_twice,
        ),
        Tool::new(
            "reply_then_work",
            "Answers, and then goes on working.",
            object(json!({"ms": {"type": "integer", "minimum": 0}}), &["ms"]),
            reply_then_work,
        ),
    ]
}

pub(super) static AFTER_STREAM: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| json!({"type": "boolean", "default": false}));

/// The argument of the tools that can end before their stream is open, and after.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AfterStream {
    pub(super) after_stream: bool,
}

async fn hold(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        ms: u64,
        #[serde(default)]
        stream: bool,
    }
    let Args { ms, stream } = call.message.arguments()?;
    let held = call.app.stats.hold();
    if stream {
        let _ = call.channel.start_stream();
    }
    // When the client goes away, this future is dropped here, and `held` with it.
    sleep(Duration::from_millis(ms)).await;
    held.complete();
    Ok(structured(json!({"held_ms": ms})))
}

async fn start_twice(call: Call) -> Result<Reply, RpcError> {
    let _ = call.channel.start_stream();
    let _ = call.channel.start_stream();
    Ok(said("started once"))
}

async fn fail(call: Call) -> Result<Response, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        code: i64,
        message: String,
        data: Option<Box<RawValue>>,
        status: Option<u16>,
        #[serde(default)]
        after_stream: bool,
    }
    let args: Args = call.message.arguments()?;
    let mut error = RpcError::new(args.code, args.message);
    if let Some(data) = args.data {
        error = error.with_data(data);
    }
    if let Some(status) = args.status {
        error = error.with_status(final_status(status)?);
    }
    if args.after_stream {
        call.open_stream().await;
    }
    // `Err(error)` would say the same.
    let _ = call.channel.send_error(error);
    Ok(answered())
}

async fn panic(call: Call) -> Result<Reply, RpcError> {
    let AfterStream { after_stream } = call.message.arguments()?;
    if after_stream {
        call.open_stream().await;
    }
    panic!("the `panic` tool panics, as it was asked to");
}

async fn close(call: Call) -> Result<Response, RpcError> {
    let AfterStream { after_stream } = call.message.arguments()?;
    if after_stream {
        call.open_stream().await;
    }
    let _ = call.channel.close();
    Ok(answered())
}

async fn reply_twice(call: Call) -> Result<Response, RpcError> {
    let _ = call
        .channel
        .send_result(Structured::new(json!({"first": true})));
    let second = call
        .channel
        .send_result(Structured::new(json!({"first": false})));
    debug_assert!(second.is_err_and(|why| why.is_closed()));
    Ok(answered())
}

async fn reply_then_work(call: Call) -> Result<Response, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        ms: u64,
    }
    let Args { ms } = call.message.arguments()?;
    let _ = call
        .channel
        .send_result(Structured::new(json!({"first": true})));
    sleep(Duration::from_millis(ms)).await;
    call.app.stats.worked_after_reply.increment();
    Ok(answered())
}

/// What a handler returns when the channel has had the last word.
fn answered() -> Response {
    Deferred.into_response()
}
