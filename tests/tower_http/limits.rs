//! What bounds how many requests there are: inside, a request counts for as long as its stream.

use super::*;
use mcp_channel::McpChannelLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};

/// Sends two calls at the same time, and tells when each was over.
async fn two<S, B>(service: S) -> [u64; 2]
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: Debug,
    B: Body<Data = Bytes>,
    B::Error: Debug,
{
    let start = Instant::now();
    let one = || async {
        let reply = Call::tool("stream").token(1).send(service.clone()).await;
        assert_eq!(reply.events().len(), 3);
        start.elapsed().as_secs()
    };
    let (first, second) = tokio::join!(one(), one());
    [first, second]
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_inside_counts_a_request_until_its_handler_ends() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .service_fn(tool);
    streams(service.clone()).await;
    assert_eq!(two(service).await, [2, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_outside_counts_a_request_until_its_head() {
    let service = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;
    assert_eq!(two(service).await, [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn load_is_shed_while_a_stream_holds_the_permit_inside() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .service_fn(tool);
    streams(service.clone()).await;

    let call = Call::tool("stream").token(1);
    let first = service.clone().oneshot(call.request()).await.unwrap();
    let error: BoxError = service.clone().oneshot(call.request()).await.unwrap_err();
    assert!(error.is::<tower::load_shed::error::Overloaded>());
    drop(first);
    streams(service).await;
}

#[tokio::test(start_paused = true)]
async fn load_is_shed_outside_until_the_head() {
    let service = ServiceBuilder::new()
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(McpChannelLayer::new().stream_after(SECOND))
        .service_fn(tool);
    streams(service.clone()).await;

    let first = tokio_test::task::spawn(service.clone().oneshot(Call::tool("hold").request()));
    let mut first = first;
    assert!(first.poll().is_pending());
    let call = Call::tool("stream").token(1);
    let error: BoxError = service.clone().oneshot(call.request()).await.unwrap_err();
    assert!(error.is::<tower::load_shed::error::Overloaded>());
    let head = first.await.unwrap();
    streams(service).await;
    drop(head);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_stands_outside_and_inside() {
    let outside = ServiceBuilder::new()
        .buffer(4)
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(outside).await;
    let inside = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .buffer(4)
        .service_fn(tool);
    streams(inside.clone()).await;
    assert_eq!(two(inside).await, [2, 2]);
}

/// The buffer's task calls the handler, but the response still drives it.
#[tokio::test(start_paused = true)]
async fn a_handler_behind_a_buffer_is_cancelled_with_the_response() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .buffer(4)
        .layer(ConcurrencyLimitLayer::new(1))
        .service_fn(tool);
    let call = Call::tool("hold-stream").token(1);
    let response = service.clone().oneshot(call.request()).await.unwrap();
    drop(response);
    // The only permit is free again.
    streams(service).await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_stands_outside_and_inside() {
    let outside = ServiceBuilder::new()
        .buffer(4)
        .rate_limit(1, 5 * SECOND)
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    assert_eq!(two(outside).await, [2, 7]);
    let inside = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .buffer(4)
        .rate_limit(1, 5 * SECOND)
        .service_fn(tool);
    assert_eq!(two(inside.clone()).await, [2, 7]);
    tokio::time::advance(5 * SECOND).await;
    streams(inside).await;
}
