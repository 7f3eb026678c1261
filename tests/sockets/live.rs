//! A client sees frames when they are sent, not when it suits somebody between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_channel::{Channel, McpChannelLayer, Reply};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::client::{each_way, each_way_on};
use crate::net::{Endpoint, soon};
use crate::support::request::{Call, served, served_by};

/// Each frame is sent only when the client has the one before it.
#[tokio::test]
async fn frames_leave_as_they_are_sent() {
    let seen = Arc::new(Semaphore::new(0));
    let handlers = Arc::clone(&seen);
    let endpoint = served(move |channel: Channel, _| {
        let seen = Arc::clone(&handlers);
        async move {
            for step in 1..=5 {
                channel.send_progress((step, 5)).await.expect("a client");
                seen.acquire().await.expect("a test").forget();
            }
            Reply::result(json!({"content": []}))
        }
    });
    for (way, _server, mut client) in each_way(endpoint).await {
        let mut messages = client.stream(&Call::tool("x").token(1)).await;
        for step in 1..=5 {
            let message = messages.next().await.expect("a frame");
            assert_eq!(message["params"]["progress"], step, "{way}");
            seen.add_permits(1);
        }
        let result = messages.next().await.expect("a result");
        assert!(result["result"].is_object(), "{way}");
        assert_eq!(messages.next().await, None);
    }
}

/// Computes without any await for a few milliseconds, and on until `seen` says that the client has
/// got so far.
fn compute(seen: &AtomicU64, until: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(3) || seen.load(Ordering::SeqCst) < until {
        std::thread::yield_now();
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "never seen: {until}"
        );
    }
}

/// Calls a tool that reports five steps to a client that says which it has seen.
///
/// The client has a runtime of its own: a thread that computes may be the one that looks after its
/// runtime's sockets, and the client is to see what was sent all the same.
fn is_seen(endpoint: Endpoint, seen: &AtomicU64) {
    let servers = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let clients = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    clients.block_on(async {
        for (way, _server, mut client) in each_way_on(servers.handle(), endpoint).await {
            seen.store(0, Ordering::SeqCst);
            let mut messages = client.stream(&Call::tool("x").token(1)).await;
            for step in 1..=5 {
                let message = messages.next().await.expect("a frame");
                assert_eq!(message["params"]["progress"], step, "{way}: {message}");
                seen.store(step, Ordering::SeqCst);
            }
            let result = messages.next().await.expect("a result");
            assert!(result["result"].is_object(), "{way}: {result}");
        }
    });
}

/// It never waits for anything, and sends at the end of each step. The next step goes on until the
/// client has the frame.
#[test]
fn a_handler_that_computes_between_sends_is_seen_working() {
    let seen = Arc::new(AtomicU64::new(0));
    let handlers = Arc::clone(&seen);
    let endpoint = served(move |channel: Channel, _| {
        let seen = Arc::clone(&handlers);
        async move {
            for step in 1..=5 {
                compute(&seen, step - 1);
                channel.send_progress(step).await.expect("a client");
            }
            Reply::result(json!({"content": []}))
        }
    });
    is_seen(endpoint, &seen);
}

#[test]
fn what_was_flushed_is_seen_before_the_handler_goes_on() {
    let seen = Arc::new(AtomicU64::new(0));
    let handlers = Arc::clone(&seen);
    let endpoint = served(move |channel: Channel, _| {
        let seen = Arc::clone(&handlers);
        async move {
            for step in 1..=5 {
                channel.send_progress(step).await.expect("a client");
                channel.flush().await.expect("a client");
                compute(&seen, step);
            }
            Reply::result(json!({"content": []}))
        }
    });
    is_seen(endpoint, &seen);
}

/// A thread that knows no runtime may hold a channel.
#[test]
fn a_plain_thread_is_seen_working() {
    let seen = Arc::new(AtomicU64::new(0));
    let handlers = Arc::clone(&seen);
    let endpoint = served(move |channel: Channel, _| {
        let seen = Arc::clone(&handlers);
        async move {
            std::thread::spawn(move || {
                for step in 1..=5 {
                    compute(&seen, step - 1);
                    channel.try_send_progress(step).expect("room");
                }
                channel
                    .send_result(json!({"content": []}))
                    .expect("a client");
            });
            mcp_channel::Deferred
        }
    });
    is_seen(endpoint, &seen);
}

/// Nothing is sent at all, and the client still learns that the server works.
#[tokio::test]
async fn a_silent_handler_is_seen_by_its_keep_alives() {
    let layer = McpChannelLayer::new()
        .stream_after(Duration::from_millis(20))
        .keep_alive(Duration::from_millis(20));
    let endpoint = served_by(layer, |_, _| std::future::pending::<Reply>());
    for (way, _server, mut client) in each_way(endpoint).await {
        let response = client.send(&Call::tool("x")).await;
        assert_eq!(
            response.headers()["content-type"],
            "text/event-stream",
            "{way}"
        );
        let mut body = response.into_body();
        for _ in 0..3 {
            let frame = soon("a keep-alive", http_body_util::BodyExt::frame(&mut body)).await;
            let data = frame
                .expect("a frame")
                .expect("a server")
                .into_data()
                .expect("data");
            assert_eq!(data[0], b':', "{way}");
        }
    }
}
