//! What happens when the client reads more slowly than the handler writes.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use mcp_channel::{Channel, McpChannelLayer, Outlet, Reply, RpcError};
use serde_json::{Value, json};
use support::by_hand::{bytes_sent, channel, next_data, poll_data, sent, work};
use support::request::{Call, served_by};
use tokio_test::task::{Spawn, spawn};
use tokio_test::{assert_pending, assert_ready};
use tower::ServiceExt;

/// How many bytes may wait unsent by default.
const LIMIT: usize = 4096;

/// A channel, and its other end; the client wants progress.
fn with_token() -> (Channel, Outlet) {
    channel(&Call::tool("x").token(1))
}

/// A notification whose event has this many bytes.
fn frame(bytes: usize) -> Value {
    let with =
        |pad: usize| json!({"method": "notifications/own", "params": {"p": "x".repeat(pad)}});
    let (channel, mut outlet) = with_token();
    channel.try_send_notification(with(0)).unwrap();
    let empty = bytes_sent(&mut outlet).len();
    with(bytes - empty)
}

/// A channel on which no further frame has room.
fn full() -> (Channel, Outlet) {
    let (channel, outlet) = with_token();
    channel.try_send_notification(frame(LIMIT)).unwrap();
    (channel, outlet)
}

fn amounts(outlet: &mut Outlet) -> Vec<u64> {
    sent(outlet)
        .iter()
        .filter_map(|message| message["params"]["progress"].as_u64())
        .collect()
}

#[test]
fn frames_wait_up_to_the_limit_and_not_a_byte_more() {
    let (channel, mut outlet) = with_token();
    channel.try_send_notification(frame(LIMIT - 100)).unwrap();
    assert!(
        channel
            .try_send_notification(frame(101))
            .unwrap_err()
            .is_full()
    );
    channel.try_send_notification(frame(100)).unwrap();
    assert!(channel.try_send_progress(1).unwrap_err().is_full());
    assert_eq!(bytes_sent(&mut outlet).len(), LIMIT);
    channel.try_send_progress(1).unwrap();
}

#[test]
fn a_frame_over_the_limit_passes_when_nothing_waits() {
    let (channel, mut outlet) = with_token();
    let large = frame(3 * LIMIT);
    channel.try_send_notification(&large).unwrap();
    assert!(channel.try_send_notification(&large).unwrap_err().is_full());
    let mut sending = spawn(channel.send_notification(&large));
    assert_pending!(sending.poll());
    assert_eq!(bytes_sent(&mut outlet).len(), 3 * LIMIT);
    assert!(sending.is_woken());
    assert_ready!(sending.poll()).unwrap();
    assert_eq!(bytes_sent(&mut outlet).len(), 3 * LIMIT);
}

#[test]
fn every_try_send_is_full_where_its_send_waits() {
    let call = Call::tool("x").token(1).meta("logLevel", "debug");
    let (channel, mut outlet) = channel(&call);
    channel.try_send_notification(frame(LIMIT)).unwrap();
    let level = mcp_channel::LogLevel::Info;
    for result in [
        channel.try_send_progress(1),
        channel.try_send_log(level, 1),
        channel.try_send_log_from("l", level, 1),
        channel.try_send_notification(frame(200)),
    ] {
        assert!(result.unwrap_err().is_full());
    }
    let mut sends = [
        spawn(channel.send_progress(1)),
        spawn(channel.send_log(level, 1)),
        spawn(channel.send_log_from("l", level, 1)),
        spawn(channel.send_notification(frame(200))),
    ];
    for send in &mut sends {
        assert_pending!(send.poll());
    }
    assert_eq!(sent(&mut outlet).len(), 1);
    for send in &mut sends {
        assert!(send.is_woken());
        assert_ready!(send.poll()).unwrap();
    }
    assert_eq!(sent(&mut outlet).len(), 4);
}

#[test]
fn what_ends_the_response_never_waits() {
    type End = fn(&Channel);
    let ends: [End; 3] = [
        |channel| channel.send_result(json!({"content": []})).unwrap(),
        |channel| channel.send_error(RpcError::internal("")).unwrap(),
        |channel| channel.close().unwrap(),
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let (channel, mut outlet) = full();
        channel.start_stream().unwrap();
        let mut waiting = spawn(channel.send_progress(1));
        assert_pending!(waiting.poll());
        end(&channel);
        // Whoever waited is told, and nothing comes after the end.
        assert!(waiting.is_woken());
        assert!(assert_ready!(waiting.poll()).unwrap_err().is_closed());
        let messages = sent(&mut outlet);
        assert_eq!(messages.len(), if n == 2 { 1 } else { 2 });
        assert_eq!(messages[0]["method"], "notifications/own");
    }
}

#[test]
fn a_client_that_goes_away_ends_all_waiting() {
    let (channel, outlet) = full();
    let mut sends = [
        spawn(channel.send_progress(1)),
        spawn(channel.send_progress(2)),
    ];
    let mut flush = spawn(channel.flush());
    for send in &mut sends {
        assert_pending!(send.poll());
    }
    assert_pending!(flush.poll());
    drop(outlet);
    for send in &mut sends {
        assert!(send.is_woken());
        assert!(assert_ready!(send.poll()).unwrap_err().is_closed());
    }
    assert!(flush.is_woken());
    assert!(assert_ready!(flush.poll()).unwrap_err().is_closed());
}

// The line

#[test]
fn first_come_first_served() {
    let (channel, mut outlet) = full();
    let mut sends: Vec<_> = (1..=4).map(|n| spawn(channel.send_progress(n))).collect();
    for send in &mut sends {
        assert_pending!(send.poll());
    }
    assert_eq!(sent(&mut outlet).len(), 1);
    // There is room, but it belongs to the first in line.
    assert!(channel.try_send_progress(9).unwrap_err().is_full());
    assert_pending!(spawn(channel.send_progress(9)).poll());
    assert!(!sends[1].is_woken());
    assert_pending!(sends[1].poll());
    for (n, send) in sends.iter_mut().enumerate() {
        assert!(send.is_woken(), "{n}");
        assert_ready!(send.poll()).unwrap();
    }
    assert_eq!(amounts(&mut outlet), [1, 2, 3, 4]);
}

#[test]
fn a_send_that_is_dropped_while_it_waits_gives_up_its_place() {
    let (channel, mut outlet) = full();
    let mut sends: Vec<_> = (1..=3).map(|n| spawn(channel.send_progress(n))).collect();
    for send in &mut sends {
        assert_pending!(send.poll());
    }
    // One in the middle, and then the first after it was told to go on.
    drop(sends.remove(1));
    assert_eq!(sent(&mut outlet).len(), 1);
    let first = sends.remove(0);
    assert!(first.is_woken());
    drop(first);
    let mut last = sends.remove(0);
    assert!(last.is_woken());
    assert_ready!(last.poll()).unwrap();
    assert_eq!(amounts(&mut outlet), [3]);
    channel.try_send_progress(4).unwrap();
}

#[test]
fn a_send_that_has_ended_holds_no_place() {
    let (channel, mut outlet) = full();
    let mut increasing = spawn(channel.send_progress(5));
    let mut not = spawn(channel.send_progress(4));
    let mut last = spawn(channel.send_progress(6));
    for send in [&mut increasing, &mut not, &mut last] {
        assert_pending!(send.poll());
    }
    sent(&mut outlet);
    assert_ready!(increasing.poll()).unwrap();
    assert!(not.is_woken());
    // It is left out by now, which ends it without a frame. It is still held.
    assert_ready!(not.poll()).unwrap();
    assert!(last.is_woken());
    assert_ready!(last.poll()).unwrap();
    assert_eq!(amounts(&mut outlet), [5, 6]);
}

#[test]
fn a_send_that_waits_may_move_to_another_task() {
    let (channel, mut outlet) = full();
    let mut sending = Box::pin(channel.send_progress(1));
    let mut before = spawn(());
    let mut after = spawn(());
    let poll = |task: &mut Spawn<()>,
                sending: &mut std::pin::Pin<Box<mcp_channel::Sending<'_>>>| {
        task.enter(|cx, _| std::future::Future::poll(sending.as_mut(), cx))
    };
    assert_pending!(poll(&mut before, &mut sending));
    assert_pending!(poll(&mut after, &mut sending));
    sent(&mut outlet);
    assert!(after.is_woken() && !before.is_woken());
    assert_ready!(poll(&mut after, &mut sending)).unwrap();
}

#[test]
fn whether_progress_increases_is_decided_when_it_is_sent() {
    let (channel, mut outlet) = full();
    let mut waiting = spawn(channel.send_progress(5));
    assert_pending!(waiting.poll());
    sent(&mut outlet);
    // Nothing was sent yet, so this waits behind the other.
    let mut later = spawn(channel.send_progress(6));
    assert_pending!(later.poll());
    assert_ready!(waiting.poll()).unwrap();
    assert_ready!(later.poll()).unwrap();
    channel.try_send_progress(6).unwrap();
    assert_eq!(amounts(&mut outlet), [5, 6]);
}

// flush

#[test]
fn flush_waits_until_what_was_sent_is_handed_out() {
    let (channel, mut outlet) = with_token();
    assert_ready!(spawn(channel.flush()).poll()).unwrap();
    channel.try_send_progress(1).unwrap();
    let mut flush = spawn(channel.flush());
    let mut given_up = spawn(channel.flush());
    assert_pending!(flush.poll());
    assert_pending!(given_up.poll());
    drop(given_up);
    assert_eq!(amounts(&mut outlet), [1]);
    assert!(flush.is_woken());
    // What came after is not waited for.
    channel.try_send_progress(2).unwrap();
    assert_ready!(flush.poll()).unwrap();
}

#[test]
fn flush_holds_no_place_in_the_line_for_room() {
    let (channel, mut outlet) = full();
    let mut flush = spawn(channel.flush());
    assert_pending!(flush.poll());
    let mut sending = spawn(channel.send_progress(1));
    assert_pending!(sending.poll());
    sent(&mut outlet);
    assert!(flush.is_woken() && sending.is_woken());
    assert_ready!(sending.poll()).unwrap();
    assert_ready!(flush.poll()).unwrap();
}

// Through the layer

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_handler_and_it_goes_on_when_the_client_does() {
    for (limit, at_once) in [(0, 1), (1, 1), (1000, 10)] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let layer = McpChannelLayer::new().buffer_limit(limit);
        let service = served_by(layer, move |channel: Channel, _| {
            let count = Arc::clone(&counted);
            async move {
                for n in 1..=100 {
                    channel.send_progress(n).await.unwrap();
                    count.store(n, Ordering::Relaxed);
                }
                Reply::result(json!({"content": []}))
            }
        });
        let response: Response<_> = service
            .oneshot(Call::tool("x").token(1).request())
            .await
            .unwrap();
        let mut body = spawn(response.into_body());
        let before = count.load(Ordering::Relaxed);
        assert!(before <= at_once, "{before} with {limit}");
        let mut bytes = Vec::new();
        let mut read = 0;
        while let Some(data) = next_data(&mut body) {
            assert!(data.len() <= limit.max(300), "{} with {limit}", data.len());
            read += data.windows(2).filter(|end| end == b"\n\n").count();
            bytes.extend_from_slice(&data);
            let done = count.load(Ordering::Relaxed);
            assert!(done <= read + 2 * at_once, "{done} of {read} with {limit}");
        }
        let messages = support::request::messages_of(&bytes);
        assert_eq!(messages.len(), 101);
        for (n, message) in messages[..100].iter().enumerate() {
            assert_eq!(message["params"]["progress"], n + 1);
        }
        assert!(matches!(poll_data(&mut body), Poll::Ready(None)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_slows_down_gives_way_after_a_few_sends() {
    for (quick, steps) in [(0, 1), (1, 1), (2, 2), (5, 3), (9, 7), (33, 7)] {
        let slow = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&slow);
        let layer = McpChannelLayer::new().buffer_limit(1 << 20);
        let service = served_by(layer, move |channel: Channel, _| {
            let count = Arc::clone(&count);
            async move {
                for n in 0.. {
                    if n >= quick {
                        work(Duration::from_millis(3));
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    let _ = channel.send_progress(n).await;
                }
                Reply::result(json!({}))
            }
        });
        let request = Call::tool("x").token(1).request();
        let response = service.oneshot(request).await.unwrap();
        assert_eq!(
            slow.load(Ordering::Relaxed),
            steps,
            "after {quick} quick ones"
        );
        drop(response);
    }
}

#[tokio::test]
async fn a_task_that_sends_is_held_back_and_let_go_on_like_a_handler() {
    let layer = McpChannelLayer::new().buffer_limit(200);
    let (give, mut given) = tokio::sync::mpsc::unbounded_channel();
    let service = served_by(layer, move |channel: Channel, _| {
        let give = give.clone();
        async move {
            give.send(channel).unwrap();
            Response::<Full<Bytes>>::from(mcp_channel::Deferred)
        }
    });
    let mut response = spawn(service.oneshot(Call::tool("x").token(1).request()));
    assert_pending!(response.poll());
    let channel = given.recv().await.unwrap();
    let mut sending = spawn(channel.send_progress(1));
    assert_ready!(sending.poll()).unwrap();
    assert!(response.is_woken());
    let mut body = spawn(assert_ready!(response.poll()).unwrap().into_body());
    let mut second = spawn(channel.send_progress((2, 2, "m".repeat(100))));
    assert_pending!(second.poll());
    assert!(next_data(&mut body).is_some());
    assert!(second.is_woken());
    assert_pending!(poll_data(&mut body));
    assert!(body.is_woken(), "the first bytes are flushed");
    assert_pending!(poll_data(&mut body));
    assert_ready!(second.poll()).unwrap();
    assert!(body.is_woken());
    assert!(next_data(&mut body).is_some());
}
