//! Tools whose work goes on elsewhere: in a task, or on a thread.

use std::time::Duration;

use mcp_channel::{CloseReason, Deferred, Reply, RpcError};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::ending::{AFTER_STREAM, AfterStream};
use super::{Call, Tool, object};
use crate::content::{Structured, structured};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "background",
            "Answers from a task that outlives the handler.",
            object(
                json!({
                    "ms": {"type": "integer", "minimum": 0},
                    "steps": {"type": "integer", "minimum": 0, "default": 0},
                }),
                &["ms"],
            ),
            background,
        ),
        Tool::new(
            "abandon",
            "Promises an answer from elsewhere, and forgets it.",
            object(json!({"after_stream": AFTER_STREAM.clone()}), &[]),
            abandon,
        ),
        Tool::new(
            "burn",
            "Blocks a thread of its own, which reports progress.",
            object(
                json!({"ms": {"type": "integer", "minimum": 0, "maximum": LONGEST_BURN}}),
                &["ms"],
            ),
            burn,
        ),
    ]
}

/// The longest that `burn` keeps a thread busy, in milliseconds.
const LONGEST_BURN: u64 = 60_000;

async fn background(call: Call) -> Result<Deferred, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        ms: u64,
        #[serde(default)]
        steps: u64,
    }
    let Args { ms, steps } = call.message.arguments()?;
    let Call { app, channel, .. } = call;
    app.stats.background_started.increment();
    tokio::spawn(async move {
        let pause = Duration::from_millis(ms);
        let work = async {
            for step in 1..=steps {
                sleep(pause).await;
                let _ = channel.send_progress((step, steps)).await;
            }
            if steps == 0 {
                sleep(pause).await;
            }
        };
        // Nothing cancels a task when the client goes away: it has to look.
        tokio::select! {
            () = work => {
                let _ = channel.send_result(Structured::new(json!({"steps": steps})));
                app.stats.background_completed.increment();
            }
            CloseReason::Disconnected = channel.closed() => {
                app.stats.background_saw_closed.increment();
            }
        }
    });
    Ok(Deferred)
}

async fn abandon(call: Call) -> Result<Deferred, RpcError> {
    let AfterStream { after_stream } = call.message.arguments()?;
    if after_stream {
        call.open_stream().await;
    }
    // The only handle goes with the call, and nobody else will answer.
    drop(call);
    Ok(Deferred)
}

async fn burn(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        ms: u64,
    }
    let Args { ms } = call.message.arguments()?;
    if ms > LONGEST_BURN {
        return Err(RpcError::invalid_params(format!(
            "`arguments.ms`: {ms} is more than {LONGEST_BURN}"
        )));
    }
    let channel = call.channel.clone();
    let burnt = tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        let mut reported = 0;
        let mut sum = 0u64;
        loop {
            let elapsed = started.elapsed().as_millis() as u64;
            if elapsed >= ms {
                return sum;
            }
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(elapsed));
            if elapsed >= reported + 10 {
                reported = elapsed;
                // A thread must not wait for the client, and what does not fit is overtaken by the
                // next report. It also sees here that there is nobody to work for any more.
                if channel
                    .try_send_progress((elapsed, ms))
                    .is_err_and(|why| why.is_closed())
                {
                    return sum;
                }
            }
        }
    });
    match burnt.await {
        Ok(sum) => Ok(structured(json!({"burnt_ms": ms, "sum": sum}))),
        Err(_) => Err(RpcError::internal("the work did not end well")),
    }
}
