//! A handler in a task of its own.

mod support;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use mcp_channel::{Channel, CloseReason, McpChannelLayer, Reply, RequestBody, TaskLayer};
use serde_json::json;
use support::request::{Call, Reply as Got};
use tokio::sync::mpsc;
use tower::{ServiceBuilder, ServiceExt};

type Plain = Response<Full<Bytes>>;

/// A handler that opens its stream, works for a while, and tells.
async fn respond(
    task: TaskLayer,
    tell: mpsc::UnboundedSender<Option<CloseReason>>,
) -> Response<impl Body<Data = Bytes, Error = mcp_channel::BoxError>> {
    let handler = move |request: Request<RequestBody>| {
        let tell = tell.clone();
        async move {
            let channel: Channel = request.extensions().get().cloned().unwrap();
            channel.start_stream().unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let closed = tokio::time::timeout(Duration::ZERO, channel.closed()).await;
            tell.send(closed.ok()).unwrap();
            Ok::<_, Infallible>(Plain::from(Reply::result(json!({"content": []}))))
        }
    };
    ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(task)
        .service_fn(handler)
        .oneshot(Call::tool("x").request())
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_while_nobody_reads() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let response = respond(TaskLayer::new(), tell).await;
    // The body is not polled.
    assert_eq!(told.recv().await, Some(None));
    let reply = Got::read(response).await;
    assert!(reply.events()[0]["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn it_is_aborted_when_the_client_goes_away() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let response = respond(TaskLayer::new(), tell).await;
    drop(response);
    // Its sender is dropped with it.
    assert_eq!(told.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn detached_it_runs_to_its_end_and_finds_its_channel_closed() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let response = respond(TaskLayer::new().detached(), tell).await;
    drop(response);
    assert_eq!(told.recv().await, Some(Some(CloseReason::Disconnected)));
}

#[tokio::test]
async fn a_panic_in_it_is_answered_as_any_other() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(TaskLayer::new())
        .service_fn(|_: Request<RequestBody>| async {
            assert!(std::env::args().count() == 0, "secret");
            Ok::<_, Infallible>(Plain::default())
        });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["error"]["code"], -32603);
}
