//! What the bytes cost when nothing is parsed and nothing is checked: the body is read and thrown away, the answer is a
//! constant, a stream is frames that were encoded beforehand, one at each poll. The path says which.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use harness::wire::{self, Call};
use harness::{Context, Guard, RequestBody};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Interval};
use tower::service_fn;

/// A longer stream, which nobody reads to its end, repeats one frame.
const LONGEST: u64 = 10_000;

/// Replies and streams, encoded when they are first asked for and never freed.
#[derive(Default)]
struct Encoded {
    replies: Mutex<HashMap<usize, Bytes>>,
    streams: Mutex<HashMap<(u64, usize), &'static [Bytes]>>,
}

impl Encoded {
    fn reply(&self, text: usize) -> Bytes {
        let mut replies = self.replies.lock().expect("no holder panics");
        replies.entry(text).or_insert_with(|| constant(wire::result(&"e".repeat(text)))).clone()
    }

    fn stream(&self, steps: u64, message: usize) -> &'static [Bytes] {
        let mut streams = self.streams.lock().expect("no holder panics");
        streams.entry((steps, message)).or_insert_with(|| {
            let distinct = if steps > LONGEST { 1 } else { steps };
            let frames: Vec<Bytes> = (1..=distinct).map(|step| constant(wire::progress_frame(step, steps, message))).collect();
            frames.leak()
        })
    }
}

/// Bytes that are cloned without a count.
fn constant(text: String) -> Bytes {
    Bytes::from_static(text.leak().as_bytes())
}

/// A stream's end is the same for all of them.
fn last() -> Bytes {
    static LAST: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();
    LAST.get_or_init(|| constant(format!("event: message\ndata: {}\n\n", wire::result("done")))).clone()
}

enum Answer {
    Reply(Option<Bytes>),
    Frames { frames: &'static [Bytes], sent: u64, steps: u64, pause: Option<Box<Interval>>, ended: bool },
    Hold { frame: Option<Bytes>, _guard: Guard },
    Fan { frame: Bytes, beat: Option<Pin<Box<dyn Future<Output = ()> + Send>>>, context: Arc<Context> },
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Answer::Reply(reply) => reply.take(),
            Answer::Frames { frames, sent, steps, pause, ended } => {
                if *sent > 0
                    && !*ended
                    && let Some(pause) = pause
                {
                    ready!(pause.poll_tick(cx));
                }
                if *sent < *steps {
                    let frame = frames[*sent as usize % frames.len()].clone();
                    *sent += 1;
                    Some(frame)
                } else if *ended {
                    None
                } else {
                    *ended = true;
                    Some(last())
                }
            }
            Answer::Hold { frame, .. } => match frame.take() {
                Some(frame) => Some(frame),
                None => return Poll::Pending,
            },
            Answer::Fan { frame, beat, context } => {
                if let Some(beat) = beat {
                    ready!(beat.as_mut().poll(cx));
                }
                let mut beats = context.beats();
                *beat = Some(Box::pin(async move {
                    beats.changed().await.expect("the context outlives its requests");
                }));
                Some(frame.clone())
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Answer::Reply(None) | Answer::Frames { ended: true, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Reply(reply) => SizeHint::with_exact(reply.as_ref().map_or(0, |reply| reply.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}

async fn answer(encoded: Arc<Encoded>, context: Arc<Context>, request: Request<RequestBody>) -> Result<Response<Answer>, hyper::Error> {
    let call = Call::from_bare_path(request.uri().path());
    request.into_body().collect().await?;
    let Some(call) = call else {
        let mut response = Response::new(Answer::Reply(Some(Bytes::from_static(b"the bare server needs the call in the path"))));
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let (answer, media_type) = match call {
        Call::Echo { text } => (Answer::Reply(Some(encoded.reply(text))), "application/json"),
        Call::Progress { steps, message, pause_ms } => {
            let pause = (pause_ms > 0).then(|| {
                let pause = Duration::from_millis(pause_ms);
                Box::new(tokio::time::interval_at(Instant::now() + pause, pause))
            });
            let frames = encoded.stream(steps, message);
            (Answer::Frames { frames, sent: 0, steps, pause, ended: false }, "text/event-stream")
        }
        Call::Hold => {
            let frame = Some(encoded.stream(1, 0)[0].clone());
            (Answer::Hold { frame, _guard: context.guard() }, "text/event-stream")
        }
        Call::Fan => {
            let frame = encoded.stream(1, 0)[0].clone();
            (Answer::Fan { frame, beat: None, context }, "text/event-stream")
        }
    };
    let mut response = Response::new(answer);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if media_type == "text/event-stream" {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    Ok(response)
}

fn main() -> ExitCode {
    harness::main(true, |context| {
        let encoded = Arc::new(Encoded::default());
        service_fn(move |request| answer(encoded.clone(), context.clone(), request))
    })
}
