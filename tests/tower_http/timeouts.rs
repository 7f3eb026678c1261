//! Time limits: outside they time the head, inside they time the handler.
//!
//! An inner one runs only while the response is polled; what bounds a client that does not read is
//! shown in `tests/sockets`.

use super::*;
use mcp_channel::{CloseReason, McpChannelLayer};
use tokio::sync::mpsc::unbounded_channel;
use tower::timeout::TimeoutLayer as TowerTimeoutLayer;
use tower::{BoxError, Layer, ServiceBuilder};
use tower_http::timeout::{
    RequestBodyDeadlineLayer, RequestBodyTimeoutLayer, ResponseBodyTimeoutLayer, TimeoutLayer,
};

fn limit(time: Duration) -> TimeoutLayer {
    TimeoutLayer::with_status_code(http::StatusCode::GATEWAY_TIMEOUT, time)
}

#[tokio::test(start_paused = true)]
async fn a_time_out_outside_times_the_head_alone() {
    let time = SECOND / 2;
    streams(
        ServiceBuilder::new()
            .layer(limit(time))
            .layer(McpChannelLayer::new())
            .service_fn(tool),
    )
    .await;
    streams(
        ServiceBuilder::new()
            .layer(TowerTimeoutLayer::new(time))
            .layer(McpChannelLayer::new())
            .service_fn(tool),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_time_out_outside_cancels_a_handler_that_is_silent() {
    let (tell, mut told) = unbounded_channel();
    let handler = move |request: Request<mcp_channel::RequestBody>| {
        let channel: Channel = request.extensions().get().cloned().expect("a channel");
        let tell = tell.clone();
        let task = channel.clone();
        tokio::spawn(async move { tell.send(task.closed().await) });
        async move {
            std::future::pending::<()>().await;
            drop(channel);
            Ok::<Plain, Infallible>(Plain::default())
        }
    };
    let layer = McpChannelLayer::new().stream_after(Duration::ZERO);
    let start = Instant::now();
    let service = ServiceBuilder::new()
        .layer(limit(SECOND))
        .layer(layer.clone())
        .service_fn(handler.clone());
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 504);
    assert_eq!(reply.body, "");
    assert_eq!(told.recv().await, Some(CloseReason::Disconnected));

    let service = ServiceBuilder::new()
        .layer(TowerTimeoutLayer::new(SECOND))
        .layer(layer)
        .service_fn(handler);
    let error = service
        .oneshot(Call::tool("x").request())
        .await
        .unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
    assert_eq!(told.recv().await, Some(CloseReason::Disconnected));
    assert_eq!(start.elapsed(), 2 * SECOND);
}

/// A reply that becomes a stream in time is in time.
#[tokio::test(start_paused = true)]
async fn stream_after_keeps_a_silent_handler_from_the_time_out_outside() {
    let service = ServiceBuilder::new()
        .layer(limit(SECOND))
        .layer(McpChannelLayer::new().stream_after(SECOND / 2))
        .service_fn(tool);
    let response = service.oneshot(Call::tool("hold").request()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
}

#[tokio::test(start_paused = true)]
async fn a_time_out_inside_ends_a_streamed_handler_with_an_error_event() {
    let start = Instant::now();
    let call = || Call::tool("hold-stream").token(1);
    let http = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(limit(3 * SECOND))
        .service_fn(tool);
    streams(http.clone()).await;
    let reply = call().send(http).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
    assert_eq!(start.elapsed(), 5 * SECOND);

    let start = Instant::now();
    let tower = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(TowerTimeoutLayer::new(3 * SECOND))
        .service_fn(tool);
    streams(tower.clone()).await;
    let reply = call().send(tower).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
    assert_eq!(start.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_inside_answers_for_a_silent_handler() {
    let layer = McpChannelLayer::new();
    let http = ServiceBuilder::new()
        .layer(layer.clone())
        .layer(limit(SECOND))
        .service_fn(tool);
    let reply = Call::tool("hold").send(http).await;
    assert_eq!((reply.status.as_u16(), &*reply.body), (504, &b""[..]));

    let tower = ServiceBuilder::new()
        .layer(layer)
        .layer(TowerTimeoutLayer::new(SECOND))
        .service_fn(tool);
    let error: BoxError = tower
        .oneshot(Call::tool("hold").request())
        .await
        .unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
}

/// A limit on silence between frames is kept by keep-alives that come sooner.
#[tokio::test(start_paused = true)]
async fn an_idle_time_out_of_the_body_outside_needs_shorter_keep_alives() {
    let held = |keep_alive| {
        ServiceBuilder::new()
            .layer(ResponseBodyTimeoutLayer::new(2 * SECOND))
            .layer(McpChannelLayer::new().keep_alive(keep_alive))
            .service_fn(tool)
    };
    streams(held(SECOND)).await;

    let call = Call::tool("hold-stream").token(1);
    for (keep_alive, lives) in [(SECOND, true), (10 * SECOND, false)] {
        let response = held(keep_alive).oneshot(call.request()).await.unwrap();
        let mut body = Box::pin(response.into_body());
        assert!(body.frame().await.expect("the progress").is_ok());
        let mut comments = 0;
        let mut failed = false;
        for _ in 0..5 {
            match body.frame().await {
                Some(Ok(_)) => comments += 1,
                Some(Err(_)) => failed = true,
                None => break,
            }
        }
        assert_eq!((comments == 5, failed), (lives, !lives), "{keep_alive:?}");
    }
}

// Uploads

/// While a request arrives, the service that is ready waits, with the permit that it may hold.
#[tokio::test(start_paused = true)]
async fn a_slow_upload_is_bounded_from_outside() {
    let call = Call::tool("plain");
    let stalled = || {
        let first = Bytes::from_static(b"{");
        let first =
            futures_util::stream::iter([Ok::<_, Infallible>(http_body::Frame::data(first))]);
        let never = futures_util::stream::pending();
        let body = futures_util::StreamExt::chain(first, never);
        call.with_body(http_body_util::StreamBody::new(body))
    };
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(tower::limit::ConcurrencyLimitLayer::new(1))
        .service_fn(tool);
    let start = Instant::now();

    let idle = RequestBodyTimeoutLayer::new(SECOND).layer(service.clone());
    let response = idle.clone().oneshot(stalled()).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    assert_eq!(reply.status, 400);
    let said = reply.json()["error"]["message"].as_str().unwrap();
    assert!(said.contains("did not arrive"), "{said}");
    assert_eq!(start.elapsed(), SECOND);
    streams(idle).await;

    let start = Instant::now();
    let whole = RequestBodyDeadlineLayer::new(SECOND).layer(service.clone());
    let response = whole.clone().oneshot(stalled()).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(start.elapsed(), SECOND);
    streams(whole).await;

    let head = limit(SECOND).layer(service);
    let response = head.clone().oneshot(stalled()).await.unwrap();
    assert_eq!(response.status(), 504);
    // The permit is free again each time.
    streams(head).await;
}
