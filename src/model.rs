//! Model checks of the code that threads share: it runs as it ships, in every possible
//! interleaving. With three threads, the number of switches between them is bounded.
//!
//! Run with `.ci/model`.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use loom::future::block_on;
use loom::thread;
use serde_json::json;
use tokio::time::Instant;

use crate::channel::{Arc, Channel, Decided, FinalReply, Info, Options, Outlet, Shared, Step};
use crate::config::Config;
use crate::error::CloseReason;
use crate::handler::request_body::RequestBody;
use crate::protocol::id::RequestId;
use crate::protocol::request::accept::Accepts;
use crate::protocol::request::message::Message;
use crate::protocol::request::meta::RequestMeta;
use crate::response::driver::Driver;
use crate::response::undecided::Running;
use crate::subscriptions::Subscriptions;

fn request(subscription: bool, buffer_limit: usize) -> (Arc<Shared>, Channel, Outlet) {
    ends(Outlet::new(info(subscription, buffer_limit), true, None))
}

/// A request whose handler is being called.
fn called(subscription: bool, buffer_limit: usize) -> (Arc<Shared>, Channel, Outlet) {
    let now = Some(Instant::now());
    ends(Outlet::new(info(subscription, buffer_limit), true, now))
}

fn ends(outlet: Outlet) -> (Arc<Shared>, Channel, Outlet) {
    let shared = Arc::clone(outlet.shared());
    (shared, Channel::new(outlet.shared()), outlet)
}

fn info(subscription: bool, buffer_limit: usize) -> Info {
    Info {
        id: Some(RequestId::from(1)),
        meta: RequestMeta::default(),
        options: std::sync::Arc::new(Options {
            buffer_limit,
            ..Options::default()
        }),
        copied: http::Extensions::new(),
        subscription,
        form: Default::default(),
    }
}

/// What the body does once its handler has returned: it looks for bytes, or waits to be woken.
async fn next(outlet: &Outlet) -> Option<Vec<u8>> {
    poll_fn(|cx| match outlet.poll_bytes(cx.waker()) {
        Step::Bytes { bytes, rest, .. } => {
            Poll::Ready(Some([bytes, rest.unwrap_or_default()].concat()))
        }
        Step::Done => Poll::Ready(None),
        Step::Wait { .. } => Poll::Pending,
    })
    .await
}

async fn all(outlet: &Outlet) -> String {
    let mut text = String::new();
    while let Some(bytes) = next(outlet).await {
        text.push_str(std::str::from_utf8(&bytes).expect("UTF-8"));
    }
    text
}

/// The reply that is to be the whole response, or None when it is a stream.
async fn single(outlet: &mut Outlet) -> Option<FinalReply> {
    match poll_fn(|cx| outlet.poll_decided(cx.waker(), false)).await {
        Decided::Single(reply) => Some(reply),
        Decided::Stream => None,
    }
}

fn note(n: usize) -> serde_json::Value {
    json!({"method": "n", "params": {"n": n}})
}

#[test]
fn what_a_task_sends_is_never_left_lying() {
    loom::model(|| {
        let (_, channel, mut outlet) = request(false, 4096);
        let task = thread::spawn(move || {
            channel.try_send_notification(note(1)).expect("open");
            channel.send_result(json!({})).expect("open");
        });
        outlet.handler_returned(true);
        block_on(async {
            if single(&mut outlet).await.is_none() {
                let text = all(&outlet).await;
                assert_eq!(text.matches("data: ").count(), 2);
                assert!(text.find(r#""method""#) < text.find(r#""result""#));
            }
        });
        task.join().expect("no panic");
    });
}

#[test]
fn a_send_while_the_handler_is_polled_is_seen() {
    a_send_meanwhile_is_seen(request);
}

#[test]
fn a_send_while_the_handler_is_called_is_seen() {
    a_send_meanwhile_is_seen(called);
}

fn a_send_meanwhile_is_seen(request: fn(bool, usize) -> (Arc<Shared>, Channel, Outlet)) {
    loom::model(move || {
        let (_, channel, mut outlet) = request(false, 4096);
        let task = thread::spawn(move || {
            channel.try_send_notification(note(1)).expect("open");
            channel
        });
        // The handler is being polled, and returns Pending.
        outlet.begin_poll();
        block_on(async {
            assert!(single(&mut outlet).await.is_none());
            assert!(next(&outlet).await.is_some());
        });
        drop(task.join().expect("no panic"));
    });
}

#[test]
fn a_sender_that_waits_for_room_gets_it() {
    loom::model(|| {
        let (_, channel, outlet) = request(false, 1);
        channel.try_send_notification(note(0)).expect("room");
        let task = thread::spawn(move || {
            block_on(channel.send_notification(note(1))).expect("open");
            channel.send_result(json!({})).expect("open");
        });
        outlet.handler_returned(true);
        let text = block_on(all(&outlet));
        assert_eq!(text.matches("data: ").count(), 3, "{text}");
        task.join().expect("no panic");
    });
}

#[test]
fn the_last_handle_is_counted_after_the_handler() {
    loom::model(|| {
        let (_, channel, mut outlet) = request(false, 4096);
        let task = thread::spawn(move || drop(channel));
        outlet.handler_returned(true);
        let reply = block_on(single(&mut outlet)).expect("a reply");
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        task.join().expect("no panic");
    });
}

#[test]
fn one_reply_wins_and_the_other_is_told() {
    loom::model(|| {
        let (_, channel, mut outlet) = request(false, 4096);
        let other = channel.clone();
        let task = thread::spawn(move || other.send_result(json!({"a": 1})).is_ok());
        let first = channel.send_result(json!({"b": 2})).is_ok();
        let second = task.join().expect("no panic");
        assert!(first != second);
        outlet.handler_returned(true);
        assert!(block_on(single(&mut outlet)).is_some());
    });
}

#[test]
fn whoever_waits_for_the_end_learns_of_it() {
    loom::model(|| {
        let (_, channel, outlet) = request(false, 4096);
        let task = thread::spawn(move || block_on(channel.closed()));
        drop(outlet);
        let reason = task.join().expect("no panic");
        assert_eq!(reason, CloseReason::Disconnected);
    });
}

/// A handler that returns a response of its own, which could be a last event.
fn running(outlet: Outlet) -> Running<impl Future<Output = Result<Plain, Infallible>>> {
    let json = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let response = Response::new(RequestBody::from(Bytes::from_static(json)));
    let driver = Driver::new(|| std::future::ready(Ok(response)), outlet);
    let config = Config {
        keep_alive: None,
        stream_after: None,
        ..Config::default()
    };
    Running::new(driver, Accepts::Both, std::sync::Arc::new(config))
}

type Plain = Response<RequestBody>;

/// The response, read to its end, and whether it is a stream.
async fn answer(
    mut running: Running<impl Future<Output = Result<Plain, Infallible>>>,
) -> (bool, String) {
    let Ok(decision) = poll_fn(|cx| running.poll(cx)).await;
    let (head, body) = running.decide(decision).into_parts();
    let mut body = pin!(body);
    let mut text = String::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let bytes = frame.expect("no error").into_data().expect("data");
        text.push_str(std::str::from_utf8(&bytes).expect("UTF-8"));
    }
    (head.headers.contains_key("x-accel-buffering"), text)
}

#[test]
fn a_reply_of_a_task_and_a_response_that_comes_back_make_one_last_event() {
    loom::model(|| {
        let (_, channel, outlet) = request(false, 4096);
        channel.start_stream().expect("open");
        let task = thread::spawn(move || drop(channel.send_result(json!({}))));
        let (stream, text) = block_on(answer(running(outlet)));
        assert!(stream);
        assert_eq!(text.matches(r#""result""#).count(), 1, "{text}");
        task.join().expect("no panic");
    });
}

#[test]
fn what_a_task_sends_while_a_response_comes_back_is_delivered_or_refused() {
    loom::model(|| {
        let (_, channel, outlet) = request(false, 4096);
        let task = thread::spawn(move || channel.try_send_notification(note(1)).is_ok());
        let (stream, text) = block_on(answer(running(outlet)));
        let sent = task.join().expect("no panic");
        assert_eq!(sent, stream, "{text}");
        assert_eq!(sent, text.contains(r#""method""#), "{text}");
    });
}

const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;

fn listen() -> (Subscriptions, Message) {
    let message = Message::parse(LISTEN).expect("a request");
    (Subscriptions::new(), message)
}

#[test]
fn what_is_published_while_a_listener_is_accepted_waits_for_the_acknowledgement() {
    loom::model(|| {
        let (subscriptions, message) = listen();
        let (_, channel, outlet) = request(true, 4096);
        let publisher = subscriptions.clone();
        let task = thread::spawn(move || publisher.tools_list_changed());
        let _ = subscriptions.accept(channel, &message).expect("accepted");
        outlet.handler_returned(true);
        let told = task.join().expect("no panic");
        subscriptions.close_all();
        let text = block_on(all(&outlet));
        assert_eq!(text.matches("list_changed").count(), told, "{text}");
        assert!(text.contains("acknowledged"), "{text}");
        assert!(
            text.find("acknowledged") < text.find("list_changed").or(Some(usize::MAX)),
            "{text}"
        );
        assert!(text.ends_with("}\n\n") && text.contains(r#""result""#));
        assert!(subscriptions.is_empty());
    });
}

#[test]
fn a_reader_sees_nothing_before_the_acknowledgement() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (subscriptions, message) = listen();
        let (_, channel, outlet) = request(true, 4096);
        let publisher = subscriptions.clone();
        let publish = thread::spawn(move || publisher.tools_list_changed());
        let hub = subscriptions.clone();
        let accept = thread::spawn(move || hub.accept(channel, &message).is_ok());
        // Reads all the time, like a body whose handler left the channel to a task.
        let first = block_on(next(&outlet)).expect("an open stream");
        let first = String::from_utf8_lossy(&first);
        assert!(first.contains("acknowledged"), "{first}");
        assert!(accept.join().expect("no panic"));
        outlet.handler_returned(true);
        let told = publish.join().expect("no panic");
        subscriptions.close_all();
        let rest = block_on(all(&outlet));
        assert_eq!(rest.matches("list_changed").count(), told, "{rest}");
    });
}

#[test]
fn what_is_published_once_a_listener_is_accepted_is_never_missed() {
    loom::model(|| {
        let (subscriptions, message) = listen();
        let (_, channel, outlet) = request(true, 4096);
        let _ = subscriptions.accept(channel, &message).expect("accepted");
        outlet.handler_returned(true);
        let publisher = subscriptions.clone();
        let task = thread::spawn(move || assert_eq!(publisher.tools_list_changed(), 1));
        let mut text = String::new();
        block_on(async {
            while !text.contains("list_changed") || !text.ends_with("\n\n") {
                let bytes = next(&outlet).await.expect("an open stream");
                text.push_str(std::str::from_utf8(&bytes).expect("UTF-8"));
            }
        });
        task.join().expect("no panic");
        assert_eq!(text.matches("data: ").count(), 2, "{text}");
    });
}

#[test]
fn a_client_that_leaves_while_it_is_accepted_is_forgotten() {
    loom::model(|| {
        let (subscriptions, message) = listen();
        let (_, channel, outlet) = request(true, 4096);
        let task = thread::spawn(move || drop(outlet));
        // Whether it is refused as closed depends on who was first.
        let _ = subscriptions.accept(channel, &message);
        subscriptions.tools_list_changed();
        task.join().expect("no panic");
        assert!(subscriptions.is_empty());
    });
}

#[test]
fn an_end_while_a_listener_is_accepted_is_told_to_it() {
    loom::model(|| {
        let (subscriptions, message) = listen();
        let (_, channel, mut outlet) = request(true, 4096);
        let closer = subscriptions.clone();
        let task = thread::spawn(move || closer.shut_down());
        let accepted = subscriptions.accept(channel, &message);
        task.join().expect("no panic");
        outlet.handler_returned(accepted.is_ok());
        if accepted.is_ok() {
            // Either the whole life of a subscription, or an error as the only message.
            block_on(async {
                if let Some(reply) = single(&mut outlet).await {
                    let reply = reply.json.into_bytes();
                    let reply = String::from_utf8_lossy(&reply).into_owned();
                    assert!(reply.contains("shutting down"), "{reply}");
                } else {
                    let text = all(&outlet).await;
                    assert!(text.find("acknowledged") < text.find(r#""result""#));
                }
            });
        }
        assert!(subscriptions.is_empty());
    });
}

#[test]
fn a_publish_an_end_and_a_leave_at_once_leave_nobody_behind() {
    let mut model = loom::model::Builder::new();
    // Three threads with more switches than this take hours.
    model.preemption_bound = Some(2);
    model.check(|| {
        let (subscriptions, message) = listen();
        let (_, channel, outlet) = request(true, 4096);
        let _ = subscriptions.accept(channel, &message).expect("accepted");
        outlet.handler_returned(true);
        let publisher = subscriptions.clone();
        let publish = thread::spawn(move || publisher.tools_list_changed());
        let closer = subscriptions.clone();
        let close = thread::spawn(move || closer.close_all());
        drop(outlet);
        publish.join().expect("no panic");
        close.join().expect("no panic");
        assert!(subscriptions.is_empty());
    });
}
