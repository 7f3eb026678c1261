//! Panics, and what observers see of a response.

use std::sync::{Arc, Mutex};

use super::*;
use mcp_channel::McpChannelLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;

// CatchPanic

#[tokio::test(start_paused = true)]
async fn catch_panic_outside_finds_nothing_to_catch() {
    let service = ServiceBuilder::new()
        .layer(CatchPanicLayer::new())
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;

    let reply = Call::tool("panic").send(service.clone()).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["error"]["code"], -32603);
    let reply = Call::tool("panic-stream").token(1).send(service).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn catch_panic_inside_makes_a_response_that_passes_until_a_stream_is_open() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(CatchPanicLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;

    let reply = Call::tool("panic").send(service.clone()).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    let reply = Call::tool("panic-stream").token(1).send(service).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
    assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
}

// Trace

/// What an observer saw, in its order.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<What>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Request,
    Response,
    Chunk,
    End,
    Failure,
}

use What::{Chunk, End, Failure};

impl Seen {
    fn add(&self, what: What) {
        self.0.lock().unwrap().push(what);
    }

    /// What came since the last call.
    fn take(&self) -> Vec<What> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

macro_rules! trace {
    ($seen:expr, $body:ty) => {{
        let [request, response, chunk, end, failure] = std::array::from_fn(|_| $seen.clone());
        TraceLayer::new_for_http()
            .on_request(move |_: &Request<$body>, _: &Span| request.add(What::Request))
            .on_response(move |_: &Response<_>, _: Duration, _: &Span| response.add(What::Response))
            .on_body_chunk(move |_: &Bytes, _: Duration, _: &Span| chunk.add(What::Chunk))
            .on_eos(move |_: Option<&HeaderMap>, _: Duration, _: &Span| end.add(What::End))
            .on_failure(move |_, _: Duration, _: &Span| failure.add(What::Failure))
    }};
}

#[tokio::test(start_paused = true)]
async fn trace_outside_sees_each_frame_and_one_end() {
    let seen = Seen::default();
    let service = ServiceBuilder::new()
        .layer(trace!(seen, Full<Bytes>))
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;
    assert_eq!(
        seen.take(),
        [What::Request, What::Response, Chunk, Chunk, Chunk, End]
    );

    // A reply, and a rejection, which is no failure of the server.
    for call in [
        Call::tool("plain"),
        Call::tool("plain").without_header("mcp-name"),
    ] {
        call.send(service.clone()).await;
        assert_eq!(seen.take(), [What::Request, What::Response, Chunk, End]);
    }
    let reply = Call::tool("panic").send(service.clone()).await;
    assert_eq!(reply.status, 500);
    assert_eq!(
        seen.take(),
        [What::Request, What::Response, Failure, Chunk, End]
    );

    // A client that goes away sees no end.
    let call = Call::tool("hold-stream").token(1);
    let response = service.oneshot(call.request()).await.unwrap();
    drop(response);
    assert_eq!(seen.take(), [What::Request, What::Response]);
}

#[tokio::test(start_paused = true)]
async fn trace_inside_sees_the_handler() {
    let seen = Seen::default();
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(trace!(seen, mcp_channel::RequestBody))
        .service_fn(tool);
    streams(service.clone()).await;
    // Its response is dropped unread: the reply went through the channel.
    assert_eq!(seen.take(), [What::Request, What::Response]);

    Call::tool("untouched").send(service.clone()).await;
    assert_eq!(seen.take(), [What::Request, What::Response, Chunk, End]);

    // A rejected request never comes here.
    Call::tool("plain")
        .without_header("mcp-name")
        .send(service)
        .await;
    assert_eq!(seen.take(), []);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_goes_up_is_a_failure_to_an_observer_outside() {
    let seen = Seen::default();
    let service = ServiceBuilder::new()
        .layer(trace!(seen, Full<Bytes>))
        .layer(McpChannelLayer::new())
        .service_fn(|_: Request<mcp_channel::RequestBody>| async {
            Err::<Plain, BoxError>("mine".into())
        });
    let error = service.oneshot(Call::tool("x").request()).await.err();
    assert_eq!(error.unwrap().to_string(), "mine");
    assert_eq!(seen.take(), [What::Request, Failure]);
}
