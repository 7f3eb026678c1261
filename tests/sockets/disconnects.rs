//! Clients that go away: the handler is cancelled, and tasks that share its channel learn of it.

use std::time::Duration;

use mcp_channel::{Channel, CloseReason, Deferred, McpChannelLayer, Message, Reply};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::UnboundedSender;

use crate::client::{Raw, bytes_of};
use crate::net::{Alive, Endpoint, Told, both, hyper, hyper_builder, hyper_with, telling};
use crate::support::request::{Call, served_by};

/// What a handler of [`holding`] tells.
struct Holding {
    started: Told<()>,
    gone: Told<()>,
}

/// Never replies; streams when it is asked for progress. Neither timer runs, so that nothing is
/// ever written to a client that is gone.
fn holding() -> (Endpoint, Holding) {
    let layer = McpChannelLayer::new()
        .stream_after(Duration::MAX)
        .keep_alive(Duration::MAX);
    holding_behind(layer)
}

fn holding_behind(layer: McpChannelLayer) -> (Endpoint, Holding) {
    let (tell_start, started) = telling();
    let (tell_end, gone) = telling();
    let endpoint = served_by(layer, move |channel, _| {
        hold(channel, tell_start.clone(), Alive(tell_end.clone()))
    });
    (endpoint, Holding { started, gone })
}

async fn hold(channel: Channel, started: UnboundedSender<()>, alive: Alive) -> Reply {
    if channel.progress_token().is_some() {
        channel.send_progress(1).await.expect("a client");
    }
    started.send(()).expect("a test");
    std::future::pending::<()>().await;
    drop(alive);
    Reply::result(json!({}))
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_stream_cancels_the_handler() {
    let (endpoint, mut handler) = holding();
    for server in both(endpoint) {
        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x").token(1)).await;
        assert!(client.head().await.is_stream());
        client.message().await.expect("the progress");
        assert_eq!(handler.gone.so_far(), 0);
        drop(client);
        handler.gone.next("the handler's end").await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_head_cancels_the_handler() {
    let (endpoint, mut handler) = holding();
    for server in both(endpoint) {
        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x")).await;
        handler.started.next("the handler's start").await;
        assert_eq!(handler.gone.so_far(), 0);
        drop(client);
        handler.gone.next("the handler's end").await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_its_request_reaches_no_handler() {
    let (endpoint, mut handler) = holding();
    for server in both(endpoint) {
        let mut client = Raw::new(server.connect().await);
        let bytes = bytes_of(&Call::tool("x"), "1.1", "");
        client.write(&bytes[..bytes.len() - 1]).await;
        drop(client);

        // The next one is served: had the first come to a handler, it would have told so before.
        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x")).await;
        handler.started.next("the handler's start").await;
        assert_eq!(handler.started.so_far(), 0);
    }
}

/// A reset in place of a clean end.
#[tokio::test]
async fn a_connection_that_is_reset_cancels_the_handler() {
    let (endpoint, mut handler) = holding();
    for server in both(endpoint) {
        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x").token(1)).await;
        handler.started.next("the handler's start").await;
        // With unread bytes in its buffer, a socket that is closed resets the connection.
        client.stream.readable().await.expect("a server");
        drop(client);
        handler.gone.next("the handler's end").await;
    }
}

#[tokio::test]
async fn a_task_learns_that_the_client_is_gone() {
    let (tell, mut told) = telling();
    let endpoint = served_by(McpChannelLayer::new(), move |channel: Channel, _| {
        let tell = tell.clone();
        async move {
            tokio::spawn(async move {
                if channel.progress_token().is_some() {
                    channel.start_stream().expect("a client");
                }
                let waiting = channel.clone();
                tell.send(None).expect("a test");
                let reason = waiting.closed().await;
                let late = channel.send_result(json!({}));
                assert!(late.expect_err("nobody").is_closed());
                tell.send(Some(reason)).expect("a test");
            });
            Deferred
        }
    });
    for server in both(endpoint) {
        for call in [Call::tool("x"), Call::tool("x").token(1)] {
            let mut client = Raw::new(server.connect().await);
            client.send(&call).await;
            assert_eq!(told.next("the task's start").await, None);
            drop(client);
            let reason = told.next("the task's end").await;
            assert_eq!(reason, Some(CloseReason::Disconnected));
        }
    }
}

/// Once the reply was sent, only a disconnect cuts off what the handler still does.
#[tokio::test]
async fn a_client_that_leaves_cuts_off_what_comes_after_the_reply() {
    let (tell, mut gone) = telling();
    let endpoint = served_by(McpChannelLayer::new(), move |channel: Channel, _| {
        let alive = Alive(tell.clone());
        async move {
            channel.start_stream().expect("a client");
            channel
                .send_result(json!({"content": []}))
                .expect("a client");
            std::future::pending::<()>().await;
            drop(alive);
            Reply::result(json!({}))
        }
    });
    for server in both(endpoint) {
        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x")).await;
        client.head().await;
        assert!(client.message().await.expect("the result")["result"].is_object());
        assert_eq!(gone.so_far(), 0);
        drop(client);
        gone.next("the handler's end").await;
    }
}

// Clients that close one direction

/// To hyper's defaults, a client that says no more is gone.
#[tokio::test]
async fn a_half_closed_client_is_gone() {
    let (endpoint, mut handler) = holding();
    for server in both(endpoint) {
        for call in [Call::tool("x"), Call::tool("x").token(1)] {
            let mut client = Raw::new(server.connect().await);
            client.send(&call).await;
            handler.started.next("the handler's start").await;
            client.stream.shutdown().await.expect("a server");
            handler.gone.next("the handler's end").await;
        }
    }
}

/// With `half_close`, it still gets its answer.
#[tokio::test]
async fn a_half_closed_client_is_served_where_the_server_allows_it() {
    let (tell, mut started) = telling();
    let go = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let told = go.clone();
    let endpoint = served_by(
        McpChannelLayer::new(),
        move |channel: Channel, _: Message| {
            let (tell, told) = (tell.clone(), told.clone());
            async move {
                if channel.progress_token().is_some() {
                    channel.send_progress(1).await.expect("a client");
                }
                tell.send(()).expect("a test");
                told.acquire().await.expect("a test").forget();
                Reply::result(json!({"content": []}))
            }
        },
    );
    let mut builder = hyper_builder();
    builder.http1().half_close(true);
    let server = hyper_with(builder, endpoint);
    for call in [Call::tool("x"), Call::tool("x").token(1)] {
        let mut client = Raw::new(server.connect().await);
        client.send(&call).await;
        started.next("the handler's start").await;
        client.stream.shutdown().await.expect("a server");
        go.add_permits(1);
        let head = client.head().await;
        if head.is_stream() {
            assert_eq!(client.messages().await.len(), 2);
        } else {
            assert!(client.json(&head).await["result"].is_object());
        }
        assert_eq!(client.rest().await, b"");
    }
}

// A disconnect that the server cannot see

/// The server does not read on while it answers, so what was pipelined hides the end behind it
/// until something is written.
#[tokio::test]
async fn pipelined_bytes_hide_a_disconnect_until_a_keep_alive_is_written() {
    let layer = McpChannelLayer::new().keep_alive(Duration::from_millis(20));
    let (endpoint, mut handler) = holding_behind(layer);
    let server = hyper(endpoint);
    let mut client = Raw::new(server.connect().await);
    let mut both = bytes_of(&Call::tool("x").token(1), "1.1", "");
    both.extend(bytes_of(&Call::tool("y"), "1.1", ""));
    client.write(&both).await;
    assert!(client.head().await.is_stream());
    drop(client);
    handler.gone.next("the handler's end").await;
}

#[tokio::test]
async fn a_half_closed_client_that_goes_away_is_found_by_a_keep_alive() {
    let layer = McpChannelLayer::new().keep_alive(Duration::from_millis(20));
    let (endpoint, mut handler) = holding_behind(layer);
    let mut builder = hyper_builder();
    builder.http1().half_close(true);
    let server = hyper_with(builder, endpoint);
    let mut client = Raw::new(server.connect().await);
    client.send(&Call::tool("x").token(1)).await;
    assert!(client.head().await.is_stream());
    client.stream.shutdown().await.expect("a server");
    client.chunk().await.expect("a frame");
    assert_eq!(handler.gone.so_far(), 0);
    drop(client);
    handler.gone.next("the handler's end").await;
}
