//! Unix sockets, as sidecars and local proxies use them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mcp_channel::{Channel, Reply};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::client::{Client, Raw};
use crate::net::{Alive, Endpoint, hyper_builder, soon, telling};
use crate::support::request::{Call, served};

/// A server at a path that is its own. Both go when this is dropped.
struct Server {
    path: PathBuf,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Server {
    async fn connect(&self) -> UnixStream {
        soon("a connection", UnixStream::connect(&self.path))
            .await
            .expect("a connection")
    }
}

fn listen() -> (UnixListener, PathBuf) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("mcp-channel-{}-{n}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    // One that a killed process with the same id left behind.
    let _ = std::fs::remove_file(&path);
    (UnixListener::bind(&path).expect("a listener"), path)
}

fn hyper(endpoint: Endpoint) -> Server {
    let (listener, path) = listen();
    let accept = async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let service = TowerToHyperService::new(endpoint.clone());
            connections.spawn(async move {
                let builder = hyper_builder();
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    let task = tokio::spawn(accept).abort_handle();
    Server { path, task }
}

fn axum(endpoint: Endpoint) -> Server {
    let (listener, path) = listen();
    let router: axum::Router = axum::Router::new().route_service("/mcp", endpoint);
    let task = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
    Server { path, task }
}

#[tokio::test]
async fn an_endpoint_may_be_at_a_unix_socket() {
    let (tell, mut gone) = telling();
    let endpoint = served(move |channel: Channel, _| {
        let alive = Alive(tell.clone());
        async move {
            channel.send_progress(1).await.expect("a client");
            if channel
                .progress_token()
                .is_some_and(|token| token.to_string() == "1")
            {
                std::future::pending::<()>().await;
            }
            drop(alive);
            Reply::result(json!({"content": []}))
        }
    });
    for server in [hyper(endpoint.clone()), axum(endpoint)] {
        for version in ["HTTP/1.1", "HTTP/2"] {
            let stream = server.connect().await;
            let mut client = match version {
                "HTTP/1.1" => Client::http1(stream).await,
                _ => Client::http2(stream).await,
            };
            let messages = client.stream(&Call::tool("x").token(2)).await.rest().await;
            assert_eq!(messages.len(), 2, "{version}");
            gone.next("the handler's end").await;
        }

        let mut client = Raw::new(server.connect().await);
        client.send(&Call::tool("x").token(1)).await;
        client.head().await;
        client.message().await.expect("the progress");
        assert_eq!(gone.so_far(), 0);
        drop(client);
        gone.next("the handler's end").await;
    }
}
