//! Every interleaving of the places where threads meet, on the code that ships.
//!
//! Run with `RUSTFLAGS="--cfg mcp_loom" cargo test --release --lib model`.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use http::StatusCode;
use loom::future::block_on;
use loom::thread;
use serde_json::json;

use crate::channel::{Arc, Channel, Decided, FinalReply, Info, Outlet, Shared, Step, Values};
use crate::error::CloseReason;
use crate::protocol::id::RequestId;
use crate::protocol::meta::RequestMeta;

fn request(subscription: bool, buffer_limit: usize) -> (Arc<Shared>, Channel, Outlet) {
    let info = Info {
        id: Some(RequestId::from(1)),
        meta: RequestMeta::default(),
        values: Values::default(),
        server_info: None,
        buffer_limit,
        subscription,
    };
    let shared = Shared::new(info, true);
    let channel = Channel::new(&shared);
    (Arc::clone(&shared), channel, Outlet::new(shared))
}

/// What the body does once its handler has returned: looks for bytes, or waits to be woken.
async fn next(outlet: &Outlet) -> Option<Bytes> {
    poll_fn(|cx| match outlet.poll_bytes(cx.waker()) {
        Step::Bytes { bytes, .. } => Poll::Ready(Some(bytes)),
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
async fn single(outlet: &Outlet) -> Option<FinalReply> {
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
        let (_, channel, outlet) = request(false, 4096);
        let task = thread::spawn(move || {
            channel.try_send_notification(note(1)).expect("open");
            channel.send_result(json!({})).expect("open");
        });
        outlet.handler_returned(true);
        block_on(async {
            if single(&outlet).await.is_none() {
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
    loom::model(|| {
        let (_, channel, outlet) = request(false, 4096);
        let task = thread::spawn(move || {
            channel.try_send_notification(note(1)).expect("open");
            channel
        });
        // The handler is polled just now, and returns Pending.
        outlet.begin_poll();
        block_on(async {
            assert!(single(&outlet).await.is_none());
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
        let (_, channel, outlet) = request(false, 4096);
        let task = thread::spawn(move || drop(channel));
        outlet.handler_returned(true);
        let reply = block_on(single(&outlet)).expect("a reply");
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        task.join().expect("no panic");
    });
}

#[test]
fn one_reply_wins_and_the_other_is_told() {
    loom::model(|| {
        let (_, channel, outlet) = request(false, 4096);
        let other = channel.clone();
        let task = thread::spawn(move || other.send_result(json!({"a": 1})).is_ok());
        let first = channel.send_result(json!({"b": 2})).is_ok();
        let second = task.join().expect("no panic");
        assert!(first != second);
        outlet.handler_returned(true);
        assert!(block_on(single(&outlet)).is_some());
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

#[test]
fn keyed_frames_come_after_the_acknowledgement_and_are_not_missed() {
    use crate::protocol::message::Message;
    use crate::subscriptions::Subscriptions;

    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;
    loom::model(move || {
        let message = Message::parse(listen).expect("a request");
        let subscriptions = Subscriptions::new();
        let (_, channel, outlet) = request(true, 4096);
        let publisher = subscriptions.clone();
        let task = thread::spawn(move || publisher.tools_list_changed());
        subscriptions.accept(channel, &message).expect("accepted");
        outlet.handler_returned(true);
        // Published again when it is surely accepted: that one is never missed.
        assert_eq!(subscriptions.tools_list_changed(), 1);
        task.join().expect("no panic");
        subscriptions.close_all();
        let text = block_on(all(&outlet));
        assert!(
            text.find("acknowledged") < text.find("list_changed"),
            "{text}"
        );
        assert!(text.contains("list_changed"), "{text}");
        assert!(
            text.ends_with("}\n\n") && text.contains(r#""result""#),
            "{text}"
        );
        assert!(subscriptions.is_empty());
    });
}

#[test]
fn a_client_that_leaves_while_it_is_accepted_is_forgotten() {
    use crate::protocol::message::Message;
    use crate::subscriptions::Subscriptions;

    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;
    loom::model(move || {
        let message = Message::parse(listen).expect("a request");
        let subscriptions = Subscriptions::new();
        let (_, channel, outlet) = request(true, 4096);
        let task = thread::spawn(move || drop(outlet));
        // Whether it is refused as closed depends on who was first.
        let _ = subscriptions.accept(channel, &message);
        subscriptions.tools_list_changed();
        task.join().expect("no panic");
        assert!(subscriptions.is_empty());
    });
}
