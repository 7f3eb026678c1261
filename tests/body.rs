//! The body of a response: `http_body`'s contract, who wakes it, and what its drop does.

mod support;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use mcp_channel::notification::SubscriptionsAcknowledged;
use mcp_channel::{
    Channel, CloseReason, McpChannelLayer, RequestBody, ResponseBody, RpcError, Status,
};
use serde_json::json;
use support::by_hand::{
    COMMENT, Order, assert_opens, deferring, next_data, poll_data, puppet, untimed, work,
};
use support::request::{Call, Served, messages_of};
use tokio_test::task::{Spawn, spawn};
use tokio_test::{assert_pending, assert_ready};
use tower::util::Oneshot;
use tower::{BoxError, Layer, ServiceExt, service_fn};

type Answer = Spawn<Oneshot<Served, Request<Full<Bytes>>>>;

fn asked(service: Served, call: &Call) -> Answer {
    spawn(service.oneshot(call.request()))
}

fn tool() -> Call {
    Call::tool("x").token(1).meta("logLevel", "debug")
}

fn order(order: impl FnOnce(&Channel) + Send + 'static) -> Order {
    Box::new(order)
}

/// A progress notification from the handler.
fn progress(n: u32) -> Order {
    order(move |channel| channel.try_send_progress(n).unwrap())
}

/// That the body is at its end and stays there.
fn assert_at_end<B>(body: &mut Spawn<B>)
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    for _ in 0..3 {
        assert!(assert_ready!(poll_data(body)).is_none());
        let (end, hint) = body.enter(|_, body| (body.is_end_stream(), body.size_hint()));
        assert!(end);
        assert_eq!(hint.exact(), Some(0));
    }
}

/// What the body says of itself.
fn said<B: Body>(body: &mut Spawn<B>) -> (bool, u64, Option<u64>) {
    body.enter(|_, body| {
        let hint = body.size_hint();
        (body.is_end_stream(), hint.lower(), hint.upper())
    })
}

// The contract

#[test]
fn a_json_reply_has_its_exact_size_and_then_its_end() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(order(|channel| {
        channel.send_result(json!({"content": []})).unwrap()
    }))
    .ok()
    .unwrap();
    drop(tell);
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let (end, lower, upper) = said(&mut body);
    assert_eq!((end, upper), (false, Some(lower)));
    let data = assert_ready!(poll_data(&mut body)).unwrap();
    assert_eq!(data.len() as u64, lower);
    assert_at_end(&mut body);
}

#[test]
fn a_rejection_has_its_exact_size_and_then_its_end() {
    let (service, _tell) = puppet(untimed());
    let mut answer = asked(service, &tool().header("mcp-name", "y"));
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let (end, lower, upper) = said(&mut body);
    assert_eq!((end, upper), (false, Some(lower)));
    assert_eq!(
        assert_ready!(poll_data(&mut body)).unwrap().len() as u64,
        lower
    );
    assert_at_end(&mut body);
}

#[test]
fn an_accepted_notification_has_an_empty_body() {
    let (service, tell) = puppet(untimed());
    drop(tell);
    let mut answer = asked(service, &Call::notification("notifications/x"));
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert_eq!(said(&mut body), (true, 0, Some(0)));
    assert_at_end(&mut body);
}

#[test]
fn the_default_body_is_empty() {
    type F = std::future::Ready<Result<Response<Full<Bytes>>, Infallible>>;
    let mut body = spawn(ResponseBody::<F, Full<Bytes>>::default());
    assert_eq!(said(&mut body), (true, 0, Some(0)));
    assert_at_end(&mut body);

    // Neither of its types needs to have a default.
    struct NoDefault;
    let _ = ResponseBody::<NoDefault, NoDefault>::default();
}

#[test]
fn a_stream_never_says_its_size_nor_its_end_early() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(progress(1)).ok().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    const OPEN: (bool, u64, Option<u64>) = (false, 0, None);
    assert_eq!(said(&mut body), OPEN);
    assert!(next_data(&mut body).is_some());
    assert_eq!(said(&mut body), OPEN);
    tell.send(order(|channel| {
        channel.send_result(json!({"content": []})).unwrap()
    }))
    .ok()
    .unwrap();
    assert!(next_data(&mut body).is_some());
    // The reply is out, but the handler runs on.
    assert_eq!(said(&mut body), OPEN);
    assert_pending!(poll_data(&mut body));
    drop(tell);
    assert!(body.is_woken());
    assert_eq!(said(&mut body), OPEN);
    assert_at_end(&mut body);
}

/// A body that gives these frames, and knows how many there are.
#[derive(Default)]
struct Frames {
    frames: std::collections::VecDeque<Result<Frame<bytes::buf::Chain<Bytes, Bytes>>, BoxError>>,
    hint: SizeHint,
}

impl Frames {
    fn new(
        frames: impl IntoIterator<Item = Result<Frame<bytes::buf::Chain<Bytes, Bytes>>, BoxError>>,
    ) -> Self {
        Self {
            frames: frames.into_iter().collect(),
            hint: SizeHint::with_exact(3),
        }
    }
}

impl Body for Frames {
    type Data = bytes::buf::Chain<Bytes, Bytes>;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        Poll::Ready(self.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Data that is not in one piece.
fn chained(first: &'static str, second: &'static str) -> Frame<bytes::buf::Chain<Bytes, Bytes>> {
    Frame::data(Bytes::from(first).chain(Bytes::from(second)))
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(http::header::ETAG, "t".parse().unwrap())])
}

/// The body of a response whose handler returned this one, after it opened a stream if `stream`.
async fn body_of<B>(stream: bool, body: B) -> Spawn<impl Body<Data = Bytes, Error = BoxError>>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let body = Arc::new(Mutex::new(Some(body)));
    let service = untimed().layer(service_fn(|request: Request<RequestBody>| {
        let channel: &Channel = request.extensions().get().unwrap();
        if stream {
            channel.start_stream().unwrap();
        }
        let body = body.lock().unwrap().take().unwrap();
        async { Ok::<_, Infallible>(Response::new(body)) }
    }));
    let response = service.oneshot(tool().request()).await.unwrap();
    spawn(response.into_body())
}

type Received<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

/// Polls the body once, for the next frame of any kind.
fn poll_frame<B: Body>(body: &mut Spawn<B>) -> Poll<Option<Received<B>>> {
    body.enter(|cx, body| body.poll_frame(cx))
}

#[tokio::test]
async fn an_untouched_body_passes_with_its_trailers_its_errors_and_what_it_says() {
    let frames = [
        Ok(chained("ab", "c")),
        Err("broken".into()),
        Ok(Frame::trailers(trailers())),
    ];
    let mut body = body_of(false, Frames::new(frames)).await;
    assert_eq!(said(&mut body), (false, 3, Some(3)));
    let data = assert_ready!(poll_frame(&mut body)).unwrap().unwrap();
    assert_eq!(data.into_data().unwrap(), "abc");
    let error = assert_ready!(poll_frame(&mut body)).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "broken");
    assert!(!said(&mut body).0);
    let last = assert_ready!(poll_frame(&mut body)).unwrap().unwrap();
    assert_eq!(last.into_trailers().unwrap(), trailers());
    assert!(said(&mut body).0);
    assert!(assert_ready!(poll_frame(&mut body)).is_none());
}

#[tokio::test]
async fn the_body_of_a_last_event_may_come_in_pieces_and_with_trailers() {
    let frames = [
        Ok(chained(r#"{"jsonrpc":"2.0","#, r#""id":"#)),
        Ok(chained("1,", r#""result":{"resultType":"complete"}}"#)),
        Ok(Frame::trailers(trailers())),
    ];
    let mut body = body_of(true, Frames::new(frames)).await;
    let messages = messages_of(&next_data(&mut body).unwrap());
    assert_eq!(messages[0]["result"], json!({"resultType": "complete"}));
    assert_pending!(poll_frame(&mut body));
    assert!(body.is_woken());
    assert_at_end(&mut body);
}

#[tokio::test]
async fn a_channel_is_closed_while_the_body_of_a_last_event_is_read() {
    let (give, mut given) = tokio::sync::mpsc::unbounded_channel();
    let (tell, told) = tokio::sync::oneshot::channel();
    let told = Arc::new(Mutex::new(Some(told)));
    let service = untimed().layer(service_fn(|request: Request<RequestBody>| {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.start_stream().unwrap();
        give.send(channel.clone()).unwrap();
        let told = told.lock().unwrap().take().unwrap();
        let body = futures_util::stream::once(async {
            let bytes: Bytes = told.await.unwrap();
            Ok::<_, Infallible>(Frame::data(bytes))
        });
        let body = http_body_util::StreamBody::new(Box::pin(body));
        async { Ok::<_, Infallible>(Response::new(body)) }
    }));
    let mut answer = spawn(service.oneshot(tool().request()));
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let channel = given.try_recv().unwrap();
    assert!(channel.try_send_progress(1).unwrap_err().is_closed());
    assert_eq!(
        assert_ready!(spawn(channel.closed()).poll()),
        CloseReason::Replied
    );
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    tell.send(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#.into())
        .unwrap();
    assert!(body.is_woken());
    assert_eq!(messages_of(&next_data(&mut body).unwrap()).len(), 1);
    assert!(next_data(&mut body).is_none());
}

#[tokio::test]
async fn the_body_of_a_last_event_that_fails_is_an_internal_error() {
    let frames = [
        Ok(chained(r#"{"jsonrpc":"2.0","#, "")),
        Err("broken".into()),
    ];
    let mut body = body_of(true, Frames::new(frames)).await;
    let messages = messages_of(&next_data(&mut body).unwrap());
    assert_eq!(
        (messages.len(), &messages[0]["error"]["code"]),
        (1, &json!(-32603))
    );
    assert!(next_data(&mut body).is_none());
}

/// A body that panics: when it is polled, or when it is dropped.
struct Panics(&'static str);

impl Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert_ne!(self.0, "poll");
        Poll::Ready(None)
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_ne!(self.0, "drop");
        }
    }
}

#[tokio::test]
async fn an_untouched_body_that_panics_breaks_off() {
    let mut body = body_of(false, Panics("poll")).await;
    let error = assert_ready!(poll_frame(&mut body)).unwrap().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_at_end(&mut body);
}

#[tokio::test]
async fn a_body_that_panics_is_a_last_event_without_details() {
    for when in ["poll", "drop"] {
        let mut body = body_of(true, Panics(when)).await;
        let messages = messages_of(&next_data(&mut body).unwrap());
        assert_eq!(
            (messages.len(), &messages[0]["error"]["code"]),
            (1, &json!(-32603)),
            "{when}"
        );
        assert!(next_data(&mut body).is_none());
    }
}

#[tokio::test]
async fn a_body_that_nobody_reads_may_panic_when_it_is_dropped() {
    for call in [tool(), Call::notification("notifications/x")] {
        let service = untimed().layer(service_fn(|request: Request<RequestBody>| {
            let channel: &Channel = request.extensions().get().unwrap();
            let _ = channel.send_result(json!({"content": []}));
            async { Ok::<_, Infallible>(Response::new(Panics("drop"))) }
        }));
        let response = service.oneshot(call.request()).await.unwrap();
        let status = if call.message.get("id").is_some() {
            200
        } else {
            202
        };
        assert_eq!(response.status(), status);
    }
}

// Wakes

#[test]
fn the_handler_moves_from_the_response_to_its_body() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    tell.send(order(|channel| channel.start_stream().unwrap()))
        .ok()
        .unwrap();
    assert!(answer.is_woken());
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert_opens(&mut body);
    // The body is another task. It polls the handler, so that what the handler waits for wakes it.
    assert_pending!(poll_data(&mut body));
    assert!(!body.is_woken());
    tell.send(progress(1)).ok().unwrap();
    assert!(body.is_woken());
    assert!(next_data(&mut body).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_send_within_the_handlers_poll_wakes_nobody() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    tell.send(progress(1)).ok().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert!(!answer.is_woken());
    assert!(next_data(&mut body).is_some());
    assert!(next_pending(&mut body));
    for n in 2..5 {
        tell.send(progress(n)).ok().unwrap();
        assert!(body.is_woken());
        assert!(assert_ready!(poll_data(&mut body)).is_some());
        assert!(!body.is_woken(), "{n}");
        assert_pending!(poll_data(&mut body));
        assert!(!body.is_woken(), "{n}");
    }
}

#[test]
fn whatever_a_task_does_wakes_the_response() {
    type Act = fn(Channel) -> Option<Channel>;
    let acts: [(&str, Act); 7] = [
        ("progress", |channel| {
            channel.try_send_progress(1).unwrap();
            Some(channel)
        }),
        ("start_stream", |channel| {
            channel.start_stream().unwrap();
            Some(channel)
        }),
        ("result", |channel| {
            channel.send_result(json!({"content": []})).unwrap();
            Some(channel)
        }),
        ("error", |channel| {
            channel.send_error(RpcError::internal("")).unwrap();
            Some(channel)
        }),
        ("close", |channel| {
            channel.close().unwrap();
            Some(channel)
        }),
        ("set_closed", |mut channel| {
            channel.set_closed();
            Some(channel)
        }),
        ("drop", |channel| {
            drop(channel);
            None
        }),
    ];
    for (name, act) in acts {
        // Before the head.
        let (service, mut given) = deferring(untimed());
        let mut answer = asked(service, &tool());
        assert_pending!(answer.poll());
        assert!(!answer.is_woken());
        let kept = act(given.try_recv().unwrap());
        assert!(answer.is_woken(), "{name}");
        assert_ready!(answer.poll()).unwrap();
        drop(kept);

        // On an open stream.
        let (service, mut given) = deferring(untimed());
        let mut answer = asked(service, &tool());
        assert_pending!(answer.poll());
        let channel = given.try_recv().unwrap();
        channel.start_stream().unwrap();
        let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
        assert_opens(&mut body);
        assert_pending!(poll_data(&mut body));
        assert!(!body.is_woken());
        let kept = act(channel);
        if name == "start_stream" {
            // Nothing to write.
            continue;
        }
        assert!(body.is_woken(), "{name}");
        let data = assert_ready!(poll_data(&mut body));
        assert_eq!(data.is_some(), name != "close", "{name}");
        drop(kept);
    }
}

#[test]
fn the_latest_task_is_woken() {
    let (service, mut given) = deferring(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    let channel = given.try_recv().unwrap();
    channel.start_stream().unwrap();
    let mut body = Box::pin(assert_ready!(answer.poll()).unwrap().into_body());
    assert_opens(&mut spawn(body.as_mut()));
    let mut tasks = [spawn(()), spawn(())];
    for task in &mut tasks {
        assert_pending!(task.enter(|cx, _| body.as_mut().poll_frame(cx)));
    }
    channel.try_send_progress(1).unwrap();
    assert!(!tasks[0].is_woken() && tasks[1].is_woken());
}

/// Counts its wakes.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_burst_of_a_task_wakes_the_response_once() {
    let (service, mut given) = deferring(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    let channel = given.try_recv().unwrap();
    channel.start_stream().unwrap();
    let mut body = Box::pin(assert_ready!(answer.poll()).unwrap().into_body());
    assert_opens(&mut spawn(body.as_mut()));
    let counted = Arc::new(Counted::default());
    let waker = Waker::from(Arc::clone(&counted));
    assert_pending!(body.as_mut().poll_frame(&mut Context::from_waker(&waker)));
    for n in 0..10 {
        channel.try_send_progress(n).unwrap();
    }
    assert_eq!(counted.0.load(Ordering::Relaxed), 1);
}

// What makes the server write

/// Whether the body is pending, and not by its own choice.
fn next_pending<B>(body: &mut Spawn<B>) -> bool
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    loop {
        if poll_data(body).is_ready() {
            return false;
        }
        if !body.is_woken() {
            return true;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_first_bytes_the_body_is_pending_once() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(progress(1)).ok().unwrap();
    tell.send(progress(2)).ok().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert!(assert_ready!(poll_data(&mut body)).is_some());
    tell.send(progress(3)).ok().unwrap();
    assert_pending!(poll_data(&mut body));
    assert!(body.is_woken());
    assert!(assert_ready!(poll_data(&mut body)).is_some());
    // Not after the next ones.
    tell.send(progress(4)).ok().unwrap();
    assert!(assert_ready!(poll_data(&mut body)).is_some());
    assert_pending!(poll_data(&mut body));
    assert!(!body.is_woken());
}

#[test]
fn a_stream_with_nothing_on_it_opens_with_a_comment() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(order(|channel| channel.start_stream().unwrap()))
        .ok()
        .unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    // Opening it again adds nothing.
    tell.send(order(|channel| channel.start_stream().unwrap()))
        .ok()
        .unwrap();
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    assert!(!body.is_woken(), "there is one comment");
    // The frame that comes next is not flushed, as the first is no more.
    tell.send(progress(1)).ok().unwrap();
    assert_eq!(messages_of(&next_data(&mut body).unwrap()).len(), 1);
    assert_pending!(poll_data(&mut body));
    assert!(!body.is_woken());
}

#[test]
fn the_opening_comment_goes_out_before_the_handler_is_polled_again() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(order(|channel| channel.start_stream().unwrap()))
        .ok()
        .unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let polled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polled);
    tell.send(order(move |channel| {
        count.fetch_add(1, Ordering::Relaxed);
        channel.send_result(json!({"content": []})).unwrap();
    }))
    .ok()
    .unwrap();
    // It may compute for long, and a server writes the head only when the body has none to give.
    assert_opens(&mut body);
    assert_eq!(polled.load(Ordering::Relaxed), 0);
    assert_eq!(messages_of(&next_data(&mut body).unwrap()).len(), 1);
    assert_eq!(polled.load(Ordering::Relaxed), 1);
}

#[test]
fn a_stream_with_a_frame_on_it_opens_with_that_frame() {
    let fill: [fn(&Channel); 4] = [
        |channel| channel.try_send_progress(1).unwrap(),
        |channel| {
            channel.start_stream().unwrap();
            channel.try_send_progress(1).unwrap();
        },
        |channel| {
            channel.start_stream().unwrap();
            channel.send_result(json!({"content": []})).unwrap();
        },
        |channel| {
            channel.start_stream().unwrap();
            channel.send_error(RpcError::internal("")).unwrap();
        },
    ];
    for fill in fill {
        let (service, tell) = puppet(untimed());
        let mut answer = asked(service, &tool());
        tell.send(order(fill)).ok().unwrap();
        let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
        let first = assert_ready!(poll_data(&mut body)).unwrap();
        assert!(first.starts_with(b"event: message\n"), "{first:?}");
        drop(tell);
        while let Some(data) = next_data(&mut body) {
            assert_ne!(data, COMMENT);
        }
    }
}

#[test]
fn a_frame_of_a_task_that_came_before_the_body_was_polled_is_its_first() {
    let (service, mut given) = deferring(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    let channel = given.try_recv().unwrap();
    channel.start_stream().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    channel.try_send_progress(1).unwrap();
    assert_eq!(messages_of(&next_data(&mut body).unwrap()).len(), 1);
    assert!(next_pending(&mut body));
}

/// Whether the handler returned, or goes on, or left the channel to a task: nothing is to come on a
/// stream that was closed.
#[test]
fn a_stream_that_is_closed_as_it_opens_has_no_comment() {
    for returns in [true, false] {
        let (service, tell) = puppet(untimed());
        let mut answer = asked(service, &tool());
        tell.send(order(|channel| {
            channel.start_stream().unwrap();
            channel.close().unwrap();
        }))
        .ok()
        .unwrap();
        let mut tell = Some(tell);
        if returns {
            tell = None;
        }
        let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
        if !returns {
            assert_pending!(poll_data(&mut body));
            assert!(!body.is_woken());
            drop(tell);
        }
        assert_at_end(&mut body);
    }

    let (service, mut given) = deferring(untimed());
    let mut answer = asked(service, &tool());
    assert_pending!(answer.poll());
    let channel = given.try_recv().unwrap();
    channel.start_stream().unwrap();
    channel.close().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert_at_end(&mut body);
}

/// Its completion result is the last event, and the first.
#[test]
fn a_subscription_that_is_closed_as_it_opens_has_no_comment() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &Call::listen());
    tell.send(order(|channel| {
        channel.start_stream().unwrap();
        channel
            .try_send_notification(SubscriptionsAcknowledged {
                notifications: json!({}),
            })
            .unwrap();
        channel.close().unwrap();
    }))
    .ok()
    .unwrap();
    drop(tell);
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let messages = messages_of(&next_data(&mut body).unwrap());
    assert_eq!(
        messages[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert!(messages[1]["result"].is_object());
    assert_eq!(messages.len(), 2);
    assert_pending!(poll_data(&mut body));
    assert!(body.is_woken());
    assert_at_end(&mut body);
}

#[test]
fn a_subscription_that_starts_before_its_acknowledgement_opens_with_a_comment() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &Call::listen());
    tell.send(order(|channel| channel.start_stream().unwrap()))
        .ok()
        .unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    // The acknowledgement still is the first message.
    tell.send(order(|channel| {
        let early = channel.try_send_progress(1).unwrap_err();
        assert!(early.is_not_acknowledged());
        channel
            .try_send_notification(SubscriptionsAcknowledged {
                notifications: json!({}),
            })
            .unwrap();
    }))
    .ok()
    .unwrap();
    assert!(body.is_woken());
    let messages = messages_of(&next_data(&mut body).unwrap());
    assert_eq!(
        messages[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
}

#[tokio::test]
async fn a_last_event_that_is_there_at_once_has_no_comment_before_it() {
    let json = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    let mut body = body_of(true, Full::new(Bytes::from(json))).await;
    assert_eq!(messages_of(&next_data(&mut body).unwrap()).len(), 1);
    assert_pending!(poll_data(&mut body));
    assert_at_end(&mut body);
}

#[test]
fn what_was_sent_goes_out_before_the_handler_is_polled_again() {
    let (service, tell) = puppet(untimed());
    let mut answer = asked(service, &tool());
    tell.send(progress(1)).ok().unwrap();
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    tell.send(order(|_| panic!("the handler was polled too early")))
        .ok()
        .unwrap();
    let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
    assert_eq!(messages[0]["params"]["progress"], 1);
}

/// The answer to a handler that is this future of its channel.
fn answered<F>(layer: McpChannelLayer, handler: fn(Channel) -> F) -> Answer
where
    F: Future<Output = ()> + Send + 'static,
{
    let service = support::request::served_by(layer, move |channel, _| async move {
        handler(channel).await;
        mcp_channel::Reply::result(json!({"content": []}))
    });
    asked(service, &tool())
}

#[tokio::test(start_paused = true)]
async fn flush_has_the_server_write_what_was_sent() {
    let mut answer = answered(untimed(), |channel| async move {
        channel.send_progress(1).await.unwrap();
        channel.flush().await.unwrap();
        channel.send_progress(2).await.unwrap();
        channel.flush().await.unwrap();
        channel.send_progress(3).await.unwrap();
    });
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    for n in 1..=2 {
        let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
        assert_eq!(messages[0]["params"]["progress"], n);
        assert_pending!(poll_data(&mut body));
        assert!(body.is_woken());
    }
    let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
    assert_eq!(messages.len(), 2);
    assert!(assert_ready!(poll_data(&mut body)).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_only_computes_is_seen_working() {
    const STEP: std::time::Duration = std::time::Duration::from_micros(400);
    let mut answer = answered(untimed(), |channel| async move {
        for n in 1..=8 {
            work(STEP);
            channel.send_progress(n).await.unwrap();
        }
    });
    // The clock is looked at on the 1st, 2nd and 4th send of a poll: the 4th gives way.
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    for amounts in [[1, 2, 3, 4], [5, 6, 7, 8]] {
        let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
        let got: Vec<_> = messages
            .iter()
            .map(|m| m["params"]["progress"].as_u64().unwrap())
            .collect();
        assert_eq!(got, amounts);
        assert_pending!(poll_data(&mut body));
        assert!(body.is_woken(), "the server is to write these");
    }
    let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
    assert!(messages[0]["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_send_that_gives_way_is_polled_again_within_a_group() {
    let mut answer = answered(untimed(), |channel| async move {
        // Each is polled only when its own waker was woken.
        let channel = &channel;
        let sends = futures_util::stream::FuturesUnordered::new();
        for n in 0..3 {
            sends.push(async move {
                work(std::time::Duration::from_millis(2));
                let method = "notifications/own";
                let own = json!({"method": method, "params": {"n": n}});
                channel.send_notification(own).await.unwrap();
            });
        }
        futures_util::StreamExt::collect::<Vec<()>>(sends).await;
    });
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let mut stream = Vec::new();
    while let Some(data) = next_data(&mut body) {
        stream.extend_from_slice(&data);
    }
    assert_eq!(messages_of(&stream).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_burst_does_not_give_way() {
    let mut answer = answered(untimed(), |channel| async move {
        for n in 1..=20 {
            channel.send_progress(n).await.unwrap();
        }
    });
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    let messages = messages_of(&assert_ready!(poll_data(&mut body)).unwrap());
    assert_eq!(messages.len(), 21);
}

// Drops

/// Says in its drop what the channel is by then.
struct Witness {
    channel: Channel,
    saw: Arc<Mutex<Vec<Status>>>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.saw.lock().unwrap().push(self.channel.status());
    }
}

/// How far a response comes before it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    Head,
    Streaming,
    MidStream,
    Flushing,
    AfterReply,
}

#[test]
fn dropping_the_response_closes_the_channel_and_then_drops_the_handler() {
    for point in [
        Point::Head,
        Point::Streaming,
        Point::MidStream,
        Point::Flushing,
        Point::AfterReply,
    ] {
        let (service, tell) = puppet(untimed());
        let mut answer = asked(service, &tool());
        assert_pending!(answer.poll());
        let saw = Arc::default();
        let task = Arc::new(Mutex::new(None));
        let give = Arc::clone(&task);
        let witness = Arc::clone(&saw);
        let (keep, kept) = std::sync::mpsc::channel();
        tell.send(order(move |channel| {
            *give.lock().unwrap() = Some(channel.clone());
            keep.send(Witness {
                channel: channel.clone(),
                saw: witness,
            })
            .unwrap();
        }))
        .ok()
        .unwrap();
        assert_pending!(answer.poll());
        // It lives in an order that the handler never comes to, and so in the handler's future.
        let witness = kept.recv().unwrap();
        let channel: Channel = task.lock().unwrap().take().unwrap();
        let mut closed = spawn(channel.closed());
        assert_pending!(closed.poll());

        if point == Point::Head {
            tell.send(order(move |_| drop(witness))).ok().unwrap();
            drop(answer);
        } else {
            tell.send(order(|channel| channel.start_stream().unwrap()))
                .ok()
                .unwrap();
            let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
            match point {
                Point::Head | Point::Streaming => {}
                Point::MidStream => {
                    assert_opens(&mut body);
                    tell.send(progress(1)).ok().unwrap();
                    assert!(next_data(&mut body).is_some());
                    assert!(next_pending(&mut body));
                }
                Point::Flushing => {
                    tell.send(progress(1)).ok().unwrap();
                    assert!(assert_ready!(poll_data(&mut body)).is_some());
                }
                Point::AfterReply => {
                    assert_opens(&mut body);
                    let reply = |channel: &Channel| channel.send_result(json!({})).unwrap();
                    tell.send(order(reply)).ok().unwrap();
                    assert!(next_data(&mut body).is_some());
                    assert!(next_pending(&mut body));
                }
            }
            tell.send(order(move |_| drop(witness))).ok().unwrap();
            drop(body);
        }
        assert!(closed.is_woken(), "{point:?}");
        let reason = if point == Point::AfterReply {
            CloseReason::Replied
        } else {
            CloseReason::Disconnected
        };
        assert_eq!(assert_ready!(closed.poll()), reason, "{point:?}");
        assert_eq!(*saw.lock().unwrap(), [Status::Closed], "{point:?}");
        assert!(tell.is_closed(), "the handler was dropped at {point:?}");
    }
}

#[test]
fn dropping_the_response_closes_a_deferred_channel() {
    for stream in [false, true] {
        let (service, mut given) = deferring(untimed());
        let mut answer = asked(service, &tool());
        assert_pending!(answer.poll());
        let channel = given.try_recv().unwrap();
        if stream {
            channel.start_stream().unwrap();
            drop(assert_ready!(answer.poll()).unwrap());
        } else {
            drop(answer);
        }
        let mut closed = spawn(channel.closed());
        assert_eq!(assert_ready!(closed.poll()), CloseReason::Disconnected);
        assert!(channel.send_result(json!({})).unwrap_err().is_closed());
    }
}

#[test]
fn dropping_the_response_while_the_body_is_read_drops_that_body() {
    let held = Arc::new(());
    let clone = Arc::clone(&held);
    let body = http_body_util::StreamBody::new(futures_util::stream::poll_fn(move |_| {
        let _ = &clone;
        Poll::<Option<Result<Frame<Bytes>, Infallible>>>::Pending
    }));
    let service = untimed().layer(service_fn(|_: Request<RequestBody>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    let mut answer = spawn(service.oneshot(tool().with_body(body)));
    assert_pending!(answer.poll());
    assert_eq!(Arc::strong_count(&held), 2);
    drop(answer);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn dropping_the_response_while_a_last_event_is_read_drops_that_body() {
    let held = Arc::new(());
    let clone = Arc::clone(&held);
    let service = untimed().layer(service_fn(move |request: Request<RequestBody>| {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.start_stream().unwrap();
        let held = Arc::clone(&clone);
        let body = http_body_util::StreamBody::new(futures_util::stream::poll_fn(move |_| {
            let _ = &held;
            Poll::<Option<Result<Frame<Bytes>, Infallible>>>::Pending
        }));
        async { Ok::<_, Infallible>(Response::new(body)) }
    }));
    let mut answer = spawn(service.oneshot(tool().request()));
    let mut body = spawn(assert_ready!(answer.poll()).unwrap().into_body());
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    drop(answer);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(body);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_handler_that_panics_in_its_drop_harms_nobody() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let service = untimed().layer(service_fn(|_: Request<RequestBody>| {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>().await
        }
    }));
    let mut answer = spawn(service.oneshot(tool().request()));
    assert_pending!(answer.poll());
    drop(answer);
}

#[test]
fn a_handler_that_panics_in_its_drop_after_it_returned_harms_nobody() {
    struct Late(Channel);
    impl Future for Late {
        type Output = Result<Response<Full<Bytes>>, Infallible>;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            self.0.send_result(json!({"content": []})).unwrap();
            Poll::Ready(Ok(Response::default()))
        }
    }
    impl Drop for Late {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let service = untimed().layer(service_fn(|request: Request<RequestBody>| {
        Late(request.extensions().get().cloned().unwrap())
    }));
    let mut answer = spawn(service.oneshot(tool().request()));
    assert_eq!(assert_ready!(answer.poll()).unwrap().status(), 200);
}

#[test]
fn a_response_that_is_polled_after_its_end_says_so() {
    let (service, tell) = puppet(untimed());
    drop(tell);
    let request = tool().request();
    let mut service = service;
    let future = tower::Service::call(&mut service, request);
    let mut future = spawn(future);
    assert!(assert_ready!(future.poll()).is_ok());
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| future.poll().is_ready()));
    let panic = again.unwrap_err();
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    assert!(message.unwrap().contains("after completion"));
}

#[tokio::test]
async fn the_body_is_collected_whole_by_others() {
    let (service, tell) = puppet(untimed());
    for n in 1..=3 {
        tell.send(progress(n)).ok().unwrap();
    }
    tell.send(order(|channel| {
        channel.send_result(json!({"content": []})).unwrap()
    }))
    .ok()
    .unwrap();
    drop(tell);
    let response = service.oneshot(tool().request()).await.unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert!(collected.trailers().is_none());
    assert_eq!(messages_of(&collected.to_bytes()).len(), 4);
}
