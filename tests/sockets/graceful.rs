//! The graceful end of a server: it waits for open responses, and `Shutdown` ends those that would
//! never end by themselves.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use mcp_channel::notification::SubscriptionsAcknowledged;
use mcp_channel::{Channel, McpChannelLayer, Message, Reply, Shutdown};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, Messages};
use crate::net::{Endpoint, hyper_builder, listen, soon};
use crate::support::request::{Call, served_by};

/// Listens for ever, or works for a moment.
fn endpoint(layer: McpChannelLayer) -> Endpoint {
    served_by(layer, |channel: Channel, message: Message| async move {
        if message.method() == "subscriptions/listen" {
            let acknowledged = SubscriptionsAcknowledged {
                notifications: json!({"toolsListChanged": true}),
            };
            channel
                .send_notification(acknowledged)
                .await
                .expect("a client");
            channel.closed().await;
        } else {
            channel.send_progress(1).await.expect("a client");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Reply::result(json!({"content": []}))
    })
}

/// A server, and how to end it: it has ended when the task has.
struct Ending {
    address: std::net::SocketAddr,
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

fn axum(endpoint: Endpoint) -> Ending {
    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let (end, told) = oneshot::channel();
    let router: axum::Router = axum::Router::new().route_service("/mcp", endpoint);
    let ended = tokio::spawn(async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(async { told.await.expect("a test") })
            .await
            .expect("a server");
    });
    Ending {
        address,
        end,
        ended,
    }
}

fn hyper(endpoint: Endpoint) -> Ending {
    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let (end, mut told) = oneshot::channel();
    let ended = tokio::spawn(async move {
        let graceful = GracefulShutdown::new();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted.expect("a connection").0,
                _ = &mut told => break,
            };
            let service = TowerToHyperService::new(endpoint.clone());
            let builder = hyper_builder();
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let connection = graceful.watch(connection.into_owned());
            tokio::spawn(async move {
                let _ = connection.await;
            });
        }
        drop(listener);
        graceful.shutdown().await;
    });
    Ending {
        address,
        end,
        ended,
    }
}

/// Opens a subscription, or another stream, over each version of HTTP.
async fn open(server: &Ending, call: &Call) -> Vec<(Client, Messages)> {
    let mut open = Vec::new();
    for version in ["HTTP/1.1", "HTTP/2"] {
        let stream = tokio::net::TcpStream::connect(server.address).await;
        let stream = stream.expect("a connection");
        let mut client = match version {
            "HTTP/1.1" => Client::http1(stream).await,
            _ => Client::http2(stream).await,
        };
        let mut messages = client.stream(call).await;
        let first = messages.next().await.expect("the first message");
        assert!(first["method"].is_string());
        open.push((client, messages));
    }
    open
}

#[tokio::test]
async fn a_graceful_end_returns_promptly_when_the_shutdown_has_begun() {
    for serve in [axum, hyper] {
        let shutdown = Shutdown::new();
        let server = serve(endpoint(McpChannelLayer::new().shutdown(&shutdown)));
        let open = open(&server, &Call::listen().id("s")).await;
        shutdown.begin();
        server.end.send(()).expect("a server");
        for (_client, mut messages) in open {
            let last = messages.next().await.expect("the completion");
            assert_eq!(last["id"], "s");
            assert_eq!(last["result"]["resultType"], "complete");
            let id = &last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*id, "s");
            assert_eq!(messages.next().await, None);
        }
        soon("the server's end", server.ended)
            .await
            .expect("no panic");
    }
}

/// As many as a server has, over a few connections, so that the test needs no more files than usual.
#[tokio::test]
async fn a_graceful_end_with_a_thousand_subscriptions_returns_within_two_seconds() {
    let shutdown = Shutdown::new();
    let server = axum(endpoint(McpChannelLayer::new().shutdown(&shutdown)));
    let mut open = Vec::new();
    for _ in 0..10 {
        let stream = tokio::net::TcpStream::connect(server.address).await;
        let stream = stream.expect("a connection");
        // Many small requests, one after the other.
        stream.set_nodelay(true).expect("a socket");
        let mut client = Client::http2(stream).await;
        let mut streams = Vec::new();
        for _ in 0..100 {
            let mut messages = client.stream(&Call::listen()).await;
            let first = messages.next().await.expect("the acknowledgement");
            assert!(first["method"].is_string());
            streams.push(messages);
        }
        open.push((client, streams));
    }
    shutdown.begin();
    server.end.send(()).expect("a server");
    let ended = timeout(Duration::from_secs(2), server.ended).await;
    ended.expect("within two seconds").expect("no panic");
    for (_client, streams) in open {
        for mut messages in streams {
            let last = messages.next().await.expect("the completion");
            assert_eq!(last["result"]["resultType"], "complete");
            assert_eq!(messages.next().await, None);
        }
    }
}

/// The other order is as good.
#[tokio::test]
async fn a_shutdown_that_begins_later_ends_what_the_server_waits_for() {
    for serve in [axum, hyper] {
        let shutdown = Shutdown::new();
        let mut server = serve(endpoint(McpChannelLayer::new().shutdown(&shutdown)));
        let open = open(&server, &Call::listen()).await;
        server.end.send(()).expect("a server");
        // Without it, the server would wait for ever.
        let early = timeout(Duration::from_millis(200), &mut server.ended).await;
        assert!(
            early.is_err(),
            "the server did not wait for its subscriptions"
        );
        shutdown.begin();
        soon("the server's end", server.ended)
            .await
            .expect("no panic");
        drop(open);
    }
}

/// Other requests are finished first, and the handler notices nothing.
#[tokio::test]
async fn a_graceful_end_lets_requests_finish() {
    for serve in [axum, hyper] {
        let shutdown = Shutdown::new();
        let server = serve(endpoint(McpChannelLayer::new().shutdown(&shutdown)));
        let open = open(&server, &Call::tool("x").token(1)).await;
        shutdown.begin();
        server.end.send(()).expect("a server");
        for (_client, mut messages) in open {
            let result = messages.next().await.expect("the result");
            assert!(result["result"].is_object());
            assert_eq!(messages.next().await, None);
        }
        soon("the server's end", server.ended)
            .await
            .expect("no panic");
    }
}

#[tokio::test]
async fn a_subscription_is_refused_once_the_shutdown_has_begun() {
    let shutdown = Shutdown::new();
    let server = axum(endpoint(McpChannelLayer::new().shutdown(&shutdown)));
    let mut open = open(&server, &Call::listen()).await;
    shutdown.begin();
    // The connections still serve: the server itself was not told to end.
    let (client, _) = &mut open[1];
    let response = client.send(&Call::listen()).await;
    assert_eq!(response.status(), 200);
    let reply = crate::support::request::Reply::read(response).await;
    assert_eq!(reply.json()["error"]["code"], -32603);
}
