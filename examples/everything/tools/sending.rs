//! Tools that send: progress, log records, notifications, a few and many.

use std::time::Duration;

use mcp_channel::{LogLevel, Progress, ProgressNumber, Reply, RpcError, SendError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};
use tokio::time::{Instant, sleep};

use super::{Call, Tool, object};
use crate::content::{said, structured};

/// The most frames that one call sends.
const MOST_FRAMES: u64 = 1_000_000;
/// The most bytes that one frame is padded with.
const MOST_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "progress",
            "Reports progress step by step.",
            object(
                json!({
                    "steps": {"type": "integer", "minimum": 0},
                    "delay_ms": {"type": "integer", "minimum": 0, "default": 0},
                    "total": {"type": "boolean", "default": true},
                    "message": {"type": "string"},
                }),
                &["steps"],
            ),
            progress,
        ),
        Tool::new(
            "progress_values",
            "Reports these numbers as progress, as they are.",
            object(
                json!({"values": {"type": "array", "items": {"type": "number"}}}),
                &["values"],
            ),
            progress_values,
        ),
        Tool::new(
            "log",
            "Sends log records.",
            object(
                json!({
                    "records": {
                        "type": "array",
                        "items": object(
                            json!({
                                "level": {"enum": LogLevel::ALL},
                                "data": {},
                                "logger": {"type": "string"},
                            }),
                            &["level", "data"],
                        ),
                    },
                }),
                &["records"],
            ),
            log,
        ),
        Tool::new(
            "notify",
            "Sends a notification, with padding if asked for.",
            object(
                json!({
                    "notification": {},
                    "pad": {"type": "integer", "minimum": 0, "maximum": MOST_BYTES, "default": 0},
                }),
                &["notification"],
            ),
            notify,
        ),
        Tool::new(
            "flood",
            "Sends notifications of a size as fast as the client takes them.",
            object(
                json!({
                    "frames": {"type": "integer", "minimum": 0, "maximum": MOST_FRAMES},
                    "bytes": {"type": "integer", "minimum": 0, "maximum": MOST_BYTES},
                }),
                &["frames", "bytes"],
            ),
            flood,
        ),
        Tool::new(
            "compute",
            "Computes on the async thread without a pause, and reports progress after each step.",
            object(
                json!({
                    "steps": {"type": "integer", "minimum": 0},
                    "ms": {"type": "integer", "minimum": 0, "maximum": 1000},
                }),
                &["steps", "ms"],
            ),
            compute,
        ),
        Tool::new(
            "slow",
            "Takes its time, and tells of each step.",
            object(
                json!({
                    "steps": {"type": "integer", "minimum": 0, "default": 3},
                    "delayMs": {"type": "integer", "minimum": 0, "default": 150},
                }),
                &[],
            ),
            slow,
        ),
    ]
}

/// What became of a send, as a word.
fn outcome(sent: &Result<(), SendError>) -> &'static str {
    match sent {
        Ok(()) => "ok",
        Err(why) if why.is_closed() => "closed",
        Err(why) if why.is_full() => "full",
        Err(why) if why.is_no_progress_token() => "no_progress_token",
        Err(why) if why.is_not_streamable() => "not_streamable",
        Err(why) if why.is_not_acknowledged() => "not_acknowledged",
        Err(why) if why.is_invalid_message() => "invalid_message",
        Err(_) => "other",
    }
}

/// How many were sent, and what became of the others.
#[derive(Default, Serialize)]
struct Tally {
    sent: u64,
    outcomes: Vec<&'static str>,
}

impl Tally {
    fn count(&mut self, sent: &Result<(), SendError>) {
        match sent {
            Ok(()) => self.sent += 1,
            Err(_) => self.outcomes.push(outcome(sent)),
        }
    }
}

fn at_most(name: &str, value: u64, most: u64) -> Result<(), RpcError> {
    if value <= most {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!(
        "`arguments.{name}`: {value} is more than {most}"
    )))
}

fn yes() -> bool {
    true
}

async fn progress(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        steps: u64,
        #[serde(default)]
        delay_ms: u64,
        #[serde(default = "yes")]
        total: bool,
        message: Option<String>,
    }
    let args: Args = call.message.arguments()?;
    at_most("steps", args.steps, MOST_FRAMES)?;
    let delay = Duration::from_millis(args.delay_ms);
    let mut tally = Tally::default();
    for step in 1..=args.steps {
        let mut progress = Progress::from(step);
        if args.total {
            progress = progress.total(args.steps);
        }
        if let Some(message) = &args.message {
            progress = progress.message(message);
        }
        tally.count(&call.channel.send_progress(progress).await);
        if !delay.is_zero() {
            sleep(delay).await;
        }
    }
    Ok(structured(tally))
}

async fn progress_values(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        values: Vec<Number>,
    }
    let Args { values } = call.message.arguments()?;
    let mut tally = Tally::default();
    for value in &values {
        tally.count(&call.channel.send_progress(number(value)).await);
    }
    Ok(structured(tally))
}

/// Integers stay integers.
fn number(value: &Number) -> ProgressNumber {
    if let Some(integer) = value.as_i64() {
        integer.into()
    } else if let Some(integer) = value.as_u64() {
        integer.into()
    } else {
        value.as_f64().unwrap_or(f64::NAN).into()
    }
}

async fn log(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        records: Vec<Record>,
    }
    #[derive(Deserialize)]
    struct Record {
        level: LogLevel,
        data: Box<RawValue>,
        logger: Option<String>,
    }
    let Args { records } = call.message.arguments()?;
    let channel = &call.channel;
    let mut outcomes = Vec::new();
    for Record {
        level,
        data,
        logger,
    } in &records
    {
        let sent = match logger {
            Some(logger) => channel.send_log_from(logger, *level, data).await,
            None => channel.send_log(*level, data).await,
        };
        outcomes.push(outcome(&sent));
    }
    Ok(structured(json!({"outcomes": outcomes})))
}

async fn notify(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        notification: Box<RawValue>,
        #[serde(default)]
        pad: usize,
    }
    let Args { notification, pad } = call.message.arguments()?;
    at_most("pad", pad as u64, MOST_BYTES as u64)?;
    let sent = if pad == 0 {
        call.channel.send_notification(&notification).await
    } else {
        let padded = padded(&notification, pad)?;
        call.channel.send_notification(padded).await
    };
    Ok(structured(json!({"outcome": outcome(&sent)})))
}

/// The notification with `params.pad`, a string of that many bytes.
fn padded(notification: &RawValue, pad: usize) -> Result<Value, RpcError> {
    let no_place = |_| RpcError::invalid_params("`arguments.pad` needs an object with `params`");
    let mut notification: Map<String, Value> =
        serde_json::from_str(notification.get()).map_err(no_place)?;
    let params = notification.entry("params").or_insert_with(|| json!({}));
    let mut padded: Map<String, Value> = serde_json::from_value(params.take()).map_err(no_place)?;
    padded.insert("pad".into(), "x".repeat(pad).into());
    *params = padded.into();
    Ok(notification.into())
}

async fn flood(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        frames: u64,
        bytes: usize,
    }
    #[derive(Serialize)]
    struct Flood<'a> {
        method: &'static str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    struct Params<'a> {
        n: u64,
        pad: &'a str,
    }
    let Args { frames, bytes } = call.message.arguments()?;
    at_most("frames", frames, MOST_FRAMES)?;
    at_most("bytes", bytes as u64, MOST_BYTES as u64)?;
    let pad = "x".repeat(bytes);
    let mut sent = 0;
    for n in 1..=frames {
        let notification = Flood {
            method: "notifications/flood",
            params: Params { n, pad: &pad },
        };
        if call.channel.send_notification(notification).await.is_err() {
            break;
        }
        sent = n;
    }
    Ok(structured(json!({"sent": sent})))
}

async fn compute(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        steps: u64,
        ms: u64,
    }
    let Args { steps, ms } = call.message.arguments()?;
    at_most("ms", ms, 1000)?;
    let mut sum = 0u64;
    for step in 1..=steps {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(ms) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(step));
        }
        // Gives way to the server, so that the client sees each step when it is done.
        if let Err(why) = call.channel.send_progress((step, steps)).await
            && why.is_closed()
        {
            break;
        }
    }
    Ok(structured(json!({"sum": sum})))
}

async fn slow(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Args {
        steps: u64,
        delay_ms: u64,
    }
    impl Default for Args {
        fn default() -> Self {
            Self {
                steps: 3,
                delay_ms: 150,
            }
        }
    }
    let Args { steps, delay_ms } = call.message.arguments()?;
    at_most("steps", steps, MOST_FRAMES)?;
    for step in 1..=steps {
        // Whether the client wants either is its choice, and no reason to stop working.
        let _ = call.channel.send_progress((step, steps)).await;
        let _ = call
            .channel
            .send_log(LogLevel::Info, format!("step {step} of {steps}"))
            .await;
        sleep(Duration::from_millis(delay_ms)).await;
    }
    Ok(said("slow done"))
}
