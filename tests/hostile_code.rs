//! Code around the layer that lies, panics, or comes back to it at the worst moment.

mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use mcp_channel::subscriptions::{ResourceMatch, Subscriptions};
use mcp_channel::{
    Channel, Deferred, LogLevel, McpChannelLayer, Message, Reply, RequestBody, Shutdown, Status,
};
use serde::{Serialize, Serializer};
use serde_json::json;
use support::by_hand::{channel, deferring, next_data, poll_data, sent, untimed};
use support::request::{Call, Reply as Answer, messages_of, served, served_by};
use tokio_test::task::spawn;
use tower::{BoxError, Layer, ServiceExt, service_fn};

/// Runs `test` on a thread of its own, which fails when it does not end.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().unwrap(),
    }
}

// Bodies of requests

/// A body that says what it likes of its size.
struct Liar {
    data: Vec<Bytes>,
    lower: u64,
}

impl Body for Liar {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.data.pop() {
            None => Poll::Ready(None),
            Some(data) if data == "later" => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if self.data.len() < 2 {
            hint.set_lower(self.lower);
        }
        hint
    }
}

#[tokio::test]
async fn a_body_that_lies_about_its_size_is_too_large() {
    let call = Call::tool("x");
    // There is always a limit.
    for limit in [1024, u64::MAX] {
        let service = served_by(untimed().body_limit(limit), |_, _| async {
            Reply::result(json!({}))
        });
        let data = vec!["{}".into(), "later".into(), call.message.to_string().into()];
        let body = Liar {
            data,
            lower: u64::MAX,
        };
        let response = service.oneshot(call.with_body(body)).await.unwrap();
        assert_eq!(response.status(), 413, "{limit}");
    }
}

#[tokio::test]
async fn empty_pieces_of_a_body_are_nothing() {
    let call = Call::tool("x");
    let service = served(|_, _| async { Reply::result(json!({})) });
    let text = call.message.to_string();
    let (begin, end) = text.split_at(20);
    let mut data = vec![Bytes::new(); 1000];
    data.extend([end.to_owned().into(), Bytes::new(), begin.to_owned().into()]);
    data.extend([Bytes::new(), Bytes::new()]);
    let response = service
        .oneshot(call.with_body(Liar { data, lower: 0 }))
        .await
        .unwrap();
    assert_eq!(Answer::read(response).await.status, 200);
}

#[tokio::test]
async fn limits_of_nothing_and_of_everything_work() {
    for (body, buffer) in [(u64::MAX, usize::MAX), (u64::MAX, 0)] {
        let layer = McpChannelLayer::new()
            .body_limit(body)
            .buffer_limit(buffer)
            .keep_alive(Duration::from_nanos(1))
            .stream_after(Duration::from_nanos(1));
        let service = served_by(layer, |channel: Channel, _| async move {
            for n in 0..1000 {
                channel.send_progress(n).await.unwrap();
            }
            channel.flush().await.unwrap();
            Reply::result(json!({}))
        });
        let reply = Call::tool("x").token(1).send(service).await;
        assert_eq!(reply.events().len(), 1001);
    }
    let service = served_by(McpChannelLayer::new().body_limit(0), |_, _| async {
        Reply::result(json!({}))
    });
    assert_eq!(Call::tool("x").send(service).await.status, 413);
}

// Values that come back to the channel

/// Sends a notification on the channel whenever it is serialized.
struct Sends<'a>(&'a Channel);

impl Serialize for Sends<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let note = json!({"method": "notifications/inner"});
        self.0.try_send_notification(note).unwrap();
        serializer.serialize_str("outer")
    }
}

#[test]
fn a_value_may_send_while_it_is_serialized() {
    in_time(|| {
        let call = Call::tool("x").meta("logLevel", "debug");
        let (channel, mut outlet) = support::by_hand::channel(&call);
        channel
            .try_send_log(LogLevel::Info, Sends(&channel))
            .unwrap();
        channel
            .send_result(json!({"content": []}).as_object().map(|_| Result(&channel)))
            .unwrap();
        let methods: Vec<_> = sent(&mut outlet)
            .iter()
            .map(|m| m["method"].as_str().unwrap_or("reply").to_owned())
            .collect();
        assert_eq!(
            methods,
            [
                "notifications/inner",
                "notifications/message",
                "notifications/inner",
                "reply"
            ]
        );
    });

    #[derive(Serialize)]
    struct Wrapped<'a> {
        text: Sends<'a>,
    }
    struct Result<'a>(&'a Channel);
    impl Serialize for Result<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
            Wrapped {
                text: Sends(self.0),
            }
            .serialize(serializer)
        }
    }
}

#[test]
fn a_value_may_reply_while_it_is_serialized_and_the_first_reply_is_the_reply() {
    struct Replies(Channel);
    impl Serialize for Replies {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.send_result(json!({"first": true})).unwrap();
            serializer.collect_map([("second", true)])
        }
    }
    in_time(|| {
        let (channel, mut outlet) = channel(&Call::tool("x"));
        let late = channel.send_result(Replies(channel.clone()));
        assert!(late.unwrap_err().is_closed());
        let (_, reply) = support::by_hand::reply(&mut outlet).unwrap();
        assert_eq!(reply["result"]["first"], true);
    });
}

struct Panics;

impl Serialize for Panics {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("on purpose")
    }
}

#[test]
fn a_value_that_panics_while_it_is_serialized_leaves_the_channel_whole() {
    let call = Call::tool("x").meta("logLevel", "debug").token(1);
    let (channel, mut outlet) = channel(&call);
    let attempts: [&dyn Fn(); 4] = [
        &|| drop(channel.try_send_log(LogLevel::Info, Panics)),
        &|| drop(channel.send_log(LogLevel::Info, Panics)),
        &|| drop(channel.try_send_notification(Panics)),
        &|| drop(channel.send_result(Panics)),
    ];
    for attempt in attempts {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).is_err());
        assert_eq!(channel.status(), Status::Open);
    }
    channel.try_send_progress(1).unwrap();
    channel.send_result(json!({})).unwrap();
    assert_eq!(sent(&mut outlet).len(), 2);
}

// Wakers that come back to the channel

/// Sends when it is woken.
struct Sender(Mutex<Option<Channel>>, AtomicUsize);

impl Wake for Sender {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        if let Some(channel) = &*self.0.lock().unwrap() {
            let _ = channel.try_send_progress(self.1.load(Ordering::Relaxed) as u64);
            let _ = channel.status();
        }
    }
}

#[test]
fn a_waker_may_send_when_it_is_woken() {
    in_time(|| {
        let (service, mut given) = deferring(untimed().buffer_limit(0));
        let call = Call::tool("x").token(1);
        let mut answer = Box::pin(service.oneshot(call.request()));
        let sender = Arc::new(Sender(Mutex::new(None), AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&sender));
        let mut cx = Context::from_waker(&waker);
        assert!(answer.as_mut().poll(&mut cx).is_pending());
        let channel = given.try_recv().unwrap();
        *sender.0.lock().unwrap() = Some(channel.clone());
        channel.start_stream().unwrap();
        let Poll::Ready(Ok(response)) = answer.as_mut().poll(&mut cx) else {
            panic!("no head")
        };
        let mut body = Box::pin(response.into_body());
        let mut closed = Box::pin(channel.closed());
        let mut waits = Box::pin(channel.send_progress(1000));
        let mut flush = Box::pin(channel.flush());
        for _ in 0..8 {
            let _ = body.as_mut().poll_frame(&mut cx);
            assert!(closed.as_mut().poll(&mut cx).is_pending());
            let _ = waits.as_mut().poll(&mut cx);
            let _ = flush.as_mut().poll(&mut cx);
        }
        drop(body);
        assert!(closed.as_mut().poll(&mut cx).is_ready());
        assert_eq!(channel.status(), Status::Closed);
        assert!(sender.1.load(Ordering::Relaxed) > 0);
    });
}

/// Sends when it is dropped.
struct Guard(Channel);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.try_send_progress(7);
        let _ = self.0.send_result(json!({}));
        let _ = self.0.close();
    }
}

#[test]
fn a_guard_may_send_when_the_handler_is_dropped() {
    in_time(|| {
        let service = served_by(untimed(), |channel: Channel, _| async move {
            let guard = Guard(channel.clone());
            channel.send_progress(1).await.unwrap();
            std::future::pending::<()>().await;
            drop(guard);
            Response::default()
        });
        let mut answer = spawn(service.oneshot(Call::tool("x").token(1).request()));
        let Poll::Ready(Ok(response)) = answer.poll() else {
            panic!("no head")
        };
        let mut body = spawn(response.into_body());
        assert!(poll_data(&mut body).is_ready());
        drop(body);
    });
}

#[tokio::test]
async fn a_guard_that_replies_as_the_handler_returns_is_the_first_reply() {
    let service = served(|channel: Channel, _| async move {
        let _guard = Guard(channel.clone());
        Reply::result(json!({"second": true}))
    });
    let reply = Call::tool("x").token(1).send(service).await;
    let [progress, result] = reply.events() else {
        panic!("{reply:?}")
    };
    assert_eq!(progress["params"]["progress"], 7);
    assert!(result["result"].get("second").is_none());
}

// Bodies of responses

/// Data that panics when it is read.
struct Bad;

impl Buf for Bad {
    fn remaining(&self) -> usize {
        1
    }
    fn chunk(&self) -> &[u8] {
        panic!("on purpose")
    }
    fn advance(&mut self, _: usize) {}
}

struct BadBody;

impl Body for BadBody {
    type Data = Bad;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bad>, BoxError>>> {
        Poll::Ready(Some(Ok(Frame::data(Bad))))
    }
}

impl Drop for BadBody {
    fn drop(&mut self) {
        panic!("on purpose, too")
    }
}

#[tokio::test]
async fn a_body_whose_data_and_drop_panic_breaks_off() {
    let service = McpChannelLayer::new().layer(service_fn(|_: Request<RequestBody>| async {
        Ok::<_, Infallible>(Response::new(BadBody))
    }));
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    let mut body = spawn(response.into_body());
    let Poll::Ready(Some(Err(_))) = body.enter(|cx, body| body.poll_frame(cx)) else {
        panic!("no error")
    };
    let end = body.enter(|cx, body| body.poll_frame(cx));
    assert!(matches!(end, Poll::Ready(None)));
}

#[tokio::test]
async fn a_last_event_whose_data_and_drop_panic_is_an_internal_error() {
    let service =
        McpChannelLayer::new().layer(service_fn(|mut request: Request<RequestBody>| async move {
            let channel: Channel = request.extensions_mut().remove().unwrap();
            channel.start_stream().unwrap();
            Ok::<_, Infallible>(Response::new(BadBody))
        }));
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.last()["error"]["code"], -32603);
}

/// An error that cannot be shown.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("on purpose")
    }
}

impl std::error::Error for Unspeakable {}

// Layers in layers

#[tokio::test]
async fn a_layer_in_a_layer_is_served_by_the_inner_one() {
    let inner =
        McpChannelLayer::new().layer(service_fn(|mut request: Request<RequestBody>| async move {
            let channel: Channel = request.extensions_mut().remove().unwrap();
            let message: Message = request.extensions_mut().remove().unwrap();
            match &*message.name().unwrap() {
                "stream" => {
                    channel.send_progress(1).await.unwrap();
                    channel.send_result(json!({})).unwrap();
                    assert!(channel.try_send_progress(2).unwrap_err().is_closed());
                }
                "deferred" => {
                    tokio::spawn(async move { channel.send_result(json!({})) });
                    return Ok::<Response<Full<Bytes>>, Infallible>(Deferred.into());
                }
                _ => return Ok(Reply::result(json!({})).into()),
            }
            Ok(Response::default())
        }));
    let service = McpChannelLayer::new().layer(inner);
    for (name, messages) in [("stream", 2), ("deferred", 1), ("reply", 1)] {
        let reply = Call::tool(name).token(1).send(service.clone()).await;
        assert_eq!(reply.messages.len(), messages, "{name}");
        assert!(reply.last()["result"].is_object());
    }
}

// Subscriptions

#[test]
fn the_outlet_gives_whole_events_of_subscriptions_too() {
    let subscriptions = Subscriptions::new();
    let message = Message::parse(Call::listen().message.to_string()).unwrap();
    let (channel, mut outlet) = Channel::from_request(&message, http::Extensions::new());
    let _ = subscriptions.accept(channel, &message).unwrap();
    assert_eq!(messages_of(&outlet.try_next().unwrap()).len(), 1);
    subscriptions.tools_list_changed();
    let event = outlet.try_next().unwrap();
    assert_eq!(messages_of(&event).len(), 1, "{event:?}");
    assert!(outlet.try_next().is_none());
}

#[test]
fn a_matcher_that_panics_is_the_publishers_and_harms_no_subscriber() {
    in_time(|| {
        let subscriptions = Subscriptions::builder()
            .resource_match(ResourceMatch::custom(|_, updated| {
                assert!(updated != "bad://", "on purpose");
                true
            }))
            .build();
        let call = Call::new("subscriptions/listen")
            .param("notifications", json!({"resourceSubscriptions": ["a://"]}));
        let message = Message::parse(call.message.to_string()).unwrap();
        let (channel, mut outlet) = Channel::from_request(&message, http::Extensions::new());
        let _ = subscriptions.accept(channel, &message).unwrap();
        outlet.try_next().unwrap();
        let publish = std::panic::AssertUnwindSafe(|| subscriptions.resource_updated("bad://"));
        assert!(std::panic::catch_unwind(publish).is_err());
        assert_eq!(subscriptions.resource_updated("a://"), 1);
        assert!(outlet.try_next().is_some());
        drop(outlet);
        assert!(subscriptions.is_empty());
    });
}

/// A matcher that publishes, looks and closes while it is asked.
#[test]
fn a_matcher_may_come_back_to_its_subscriptions() {
    in_time(|| {
        let own: Arc<Mutex<Option<Subscriptions>>> = Arc::default();
        let known = Arc::clone(&own);
        let subscriptions = Subscriptions::builder()
            .resource_match(ResourceMatch::custom(move |_, _| {
                let own = known.lock().unwrap().clone();
                let own = own.unwrap();
                own.tools_list_changed();
                own.close_all();
                own.is_empty()
            }))
            .build();
        *own.lock().unwrap() = Some(subscriptions.clone());
        let call = Call::new("subscriptions/listen").param(
            "notifications",
            json!({"toolsListChanged": true, "resourceSubscriptions": ["a://"]}),
        );
        let message = Message::parse(call.message.to_string()).unwrap();
        let (channel, mut outlet) = Channel::from_request(&message, http::Extensions::new());
        let _ = subscriptions.accept(channel, &message).unwrap();
        assert_eq!(subscriptions.resource_updated("a://"), 0);
        assert_eq!(sent(&mut outlet).len(), 3);
        *own.lock().unwrap() = None;
    });
}

// What is traced

#[test]
fn a_subscriber_of_traces_may_come_back_to_the_layer() {
    use tracing::subscriber::{Interest, Subscriber};
    use tracing::{Event, Metadata, span};

    struct Ends(Shutdown);
    impl Subscriber for Ends {
        fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
            Interest::always()
        }
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, _: &Event<'_>) {
            self.0.begin();
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    in_time(|| {
        let shutdown = Shutdown::new();
        let subscriber = Ends(shutdown.clone());
        tracing::subscriber::with_default(subscriber, || {
            let (service, mut given) = deferring(untimed().shutdown(&shutdown));
            let mut answer = spawn(service.oneshot(Call::listen().request()));
            assert!(answer.poll().is_pending());
            // The last handle goes, which is traced.
            drop(given.try_recv().unwrap());
            let Poll::Ready(Ok(response)) = answer.poll() else {
                panic!("no head")
            };
            let mut body = spawn(response.into_body());
            let reply: serde_json::Value =
                serde_json::from_slice(&next_data(&mut body).unwrap()).unwrap();
            assert_eq!(reply["error"]["code"], -32603);
        });
        assert!(shutdown.has_begun());
    });
}

// Values of the application

#[tokio::test]
async fn a_value_whose_clone_panics_is_an_internal_error() {
    struct Bomb;
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            panic!("on purpose")
        }
    }
    let service = served_by(McpChannelLayer::new().copy_value::<Bomb>(), |_, _| async {
        Reply::result(json!({}))
    });
    let mut request = Call::tool("x").request();
    request.extensions_mut().insert(Bomb);
    let reply = Answer::read(service.oneshot(request).await.unwrap()).await;
    assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(reply.json()["error"]["code"], -32603);
    assert_eq!(reply.json()["id"], 1);
}

#[tokio::test]
async fn an_error_that_cannot_be_shown_is_the_last_event() {
    let service =
        McpChannelLayer::new().layer(service_fn(|mut request: Request<RequestBody>| async move {
            let channel: Channel = request.extensions_mut().remove().unwrap();
            channel.start_stream().unwrap();
            Err::<Response<Full<Bytes>>, _>(Unspeakable)
        }));
    // Only a subscriber that formats meets the error.
    let _default = tracing::subscriber::set_default(Formats);
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.last()["error"]["code"], -32603);

    struct Formats;
    impl tracing::Subscriber for Formats {
        fn register_callsite(
            &self,
            _: &'static tracing::Metadata<'static>,
        ) -> tracing::subscriber::Interest {
            tracing::subscriber::Interest::sometimes()
        }
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            struct Show;
            impl tracing::field::Visit for Show {
                fn record_debug(&mut self, _: &tracing::field::Field, v: &dyn std::fmt::Debug) {
                    let _ = format!("{v:?}");
                }
            }
            event.record(&mut Show);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
}
