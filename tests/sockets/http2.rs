//! HTTP/2 without TLS: many streams on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::Full;
use mcp_channel::{Channel, McpChannelLayer, Message, Reply};
use serde_json::json;
use tokio::time::Instant;

use crate::back_pressure::{FLOOD, flood, settled};
use crate::client::{Client, Messages};
use crate::net::{Alive, both, soon, telling};
use crate::support::request::{Call, served, served_by};

/// A hundred streams, one of which nobody reads: the others do not wait for it.
#[tokio::test]
async fn siblings_do_not_wait_for_a_stream_that_is_not_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let handlers = Arc::clone(&sent);
    let endpoint = served(move |channel: Channel, message: Message| {
        let sent = Arc::clone(&handlers);
        async move {
            if message.name().as_deref() == Some("flood") {
                return flood(channel, sent).await;
            }
            for step in 1..=5 {
                channel.send_progress((step, 5)).await.expect("a client");
                tokio::task::yield_now().await;
            }
            Reply::result(json!({"content": []}))
        }
    });
    for server in both(endpoint) {
        sent.store(0, Ordering::SeqCst);
        let mut client = Client::http2(server.connect().await).await;
        let unread = client.stream(&Call::tool("flood")).await;
        settled(&sent).await;

        let siblings: Vec<_> = (1..100)
            .map(|id| client.begin(&Call::tool("steps").token(id).id(id)))
            .collect();
        let siblings = join_all(
            siblings
                .into_iter()
                .enumerate()
                .map(|(n, response)| async move {
                    let response = response.await.expect("a server");
                    let messages = Messages::new(response.into_body()).rest().await;
                    assert_eq!(messages.len(), 6);
                    assert_eq!(messages[5]["id"], n + 1);
                }),
        );
        soon("the siblings", siblings).await;

        // And the one goes on where it was when it is read.
        let mut unread = unread;
        for n in 0..FLOOD {
            let message = unread.next().await.expect("a frame");
            assert_eq!(message["params"]["n"], n);
        }
        assert!(unread.next().await.expect("a result")["result"].is_object());
        assert_eq!(unread.next().await, None);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_drops_its_handler_within_milliseconds() {
    let (tell, mut gone) = telling();
    let endpoint = served(move |channel: Channel, message: Message| {
        let tell = tell.clone();
        async move {
            if message.name().as_deref() == Some("hold") {
                let _alive = Alive(tell);
                channel.send_progress(1).await.expect("a client");
                std::future::pending::<()>().await;
            }
            Reply::result(json!({"content": []}))
        }
    });
    for server in both(endpoint) {
        let mut client = Client::http2(server.connect().await).await;
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let mut held = client.stream(&Call::tool("hold").token(1)).await;
            held.next().await.expect("the progress");
            let start = Instant::now();
            drop(held);
            gone.next("the handler's end").await;
            quickest = quickest.min(start.elapsed());
        }
        // The quickest of some, since the machine may be busy with other things.
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");

        // The connection goes on.
        let response = client.send(&Call::tool("plain")).await;
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn a_request_that_is_reset_before_its_head_drops_its_handler() {
    let (tell, mut gone) = telling();
    let (started, mut starts) = telling();
    let endpoint = served(move |_, _| {
        let alive = Alive(tell.clone());
        let started = started.clone();
        async move {
            started.send(()).expect("a test");
            std::future::pending::<()>().await;
            drop(alive);
            Reply::result(json!({}))
        }
    });
    for server in both(endpoint) {
        let mut client = Client::http2(server.connect().await).await;
        let response = tokio::spawn(client.begin(&Call::tool("hold")));
        starts.next("the handler's start").await;
        response.abort();
        gone.next("the handler's end").await;
    }
}

/// What a handler says of the connection is not passed on, and the layer says nothing.
#[tokio::test]
async fn no_header_speaks_of_the_connection() {
    let layer = McpChannelLayer::new();
    let endpoint = served_by(layer, |channel: Channel, message: Message| async move {
        match message.name().as_deref() {
            Some("stream") => channel.start_stream().expect("a client"),
            Some("headers") => {
                channel
                    .send_result(json!({"content": []}))
                    .expect("a client");
                let response = http::Response::builder()
                    .header("connection", "close, x-hop")
                    .header("keep-alive", "timeout=5")
                    .header("transfer-encoding", "chunked")
                    .header("upgrade", "x");
                return response.body(Full::default()).expect("a response");
            }
            _ => {}
        }
        Reply::result(json!({"content": []})).into()
    });
    for server in both(endpoint) {
        let mut client = Client::http2(server.connect().await).await;
        for call in [
            Call::tool("plain"),
            Call::tool("stream"),
            Call::tool("headers"),
            Call::tool("x").without_header("mcp-name"),
            Call::tool("x").header("origin", "https://evil.example"),
            Call::notification("notifications/x"),
        ] {
            let response = client.send(&call).await;
            assert_eq!(response.version(), http::Version::HTTP_2);
            for name in [
                "connection",
                "keep-alive",
                "proxy-connection",
                "transfer-encoding",
                "upgrade",
            ] {
                assert!(!response.headers().contains_key(name), "{name}: {call:?}");
            }
        }
    }
}

/// hyper takes such headers away; this shows that the layer makes none.
#[tokio::test]
async fn the_layer_makes_no_header_that_speaks_of_the_connection() {
    let endpoint = served(|channel: Channel, _| async move {
        if channel.progress_token().is_some() {
            channel.start_stream().expect("a client");
        }
        Reply::result(json!({"content": []}))
    });
    for call in [
        Call::tool("plain"),
        Call::tool("stream").token(1),
        Call::tool("x").without_header("mcp-name"),
        Call::notification("notifications/x"),
    ] {
        let reply = call.send(endpoint.clone()).await;
        let known = ["content-type", "cache-control", "x-accel-buffering"];
        for name in reply.headers.keys() {
            assert!(known.contains(&name.as_str()), "{name}: {call:?}");
        }
    }
}
