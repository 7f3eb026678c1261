//! The layer stacked with tower's and tower-http's: outside of it and inside, each with a stream.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod failures;
mod headers;
mod limits;
mod timeouts;

use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use mcp_channel::{Channel, Message};
use serde_json::{Value, json};
use support::request::{Call, messages_of};
use support::schema;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

/// What a handler answers with.
type Plain = Response<Full<Bytes>>;

const SECOND: Duration = Duration::from_secs(1);

/// Text that is worth being compressed.
fn long_text() -> String {
    "all work and no play ".repeat(100)
}

/// A handler with a tool for each case, behind whatever layers and with whatever body they make.
async fn tool<B>(request: Request<B>) -> Result<Plain, Infallible> {
    let channel: &Channel = request.extensions().get().expect("a channel");
    let message: &Message = request.extensions().get().expect("a message");
    let result = json!({"content": [], "text": long_text()});
    match message.name().as_deref() {
        // Three messages, a second apart.
        Some("stream") => {
            channel.send_progress((1, 2)).await.expect("a client");
            tokio::time::sleep(SECOND).await;
            channel.send_progress((2, 2)).await.expect("a client");
            tokio::time::sleep(SECOND).await;
            channel.send_result(result).expect("a client");
        }
        Some("hold") => std::future::pending().await,
        Some("hold-stream") => {
            channel.send_progress(1).await.expect("a client");
            std::future::pending().await
        }
        Some("panic") => panic!("secret"),
        Some("panic-stream") => {
            channel.send_progress(1).await.expect("a client");
            tokio::task::yield_now().await;
            panic!("secret");
        }
        // A response that never touches the channel.
        Some("untouched") => {
            let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": long_text(), "resultType": "complete"}});
            let mut response = Response::new(Full::from(body.to_string()));
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert("content-type", json);
            return Ok(response);
        }
        _ => return Ok(mcp_channel::Reply::result(result).into()),
    }
    Ok(Response::default())
}

/// Calls the tool that streams, and sees that each message arrives when it is sent: nothing
/// between holds it back. Gives the response's headers.
async fn streams<S, B>(service: S) -> HeaderMap
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    S::Error: Debug,
    B: Body<Data = Bytes>,
    B::Error: Debug,
{
    streams_for(Call::tool("stream").token(1), service).await
}

/// [`streams`], for a request with more to it.
async fn streams_for<S, B>(call: Call, service: S) -> HeaderMap
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    S::Error: Debug,
    B: Body<Data = Bytes>,
    B::Error: Debug,
{
    let start = Instant::now();
    let response = soon(service.oneshot(call.request()))
        .await
        .expect("a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (head, body) = response.into_parts();
    let mut body = Box::pin(body);
    let mut seen = Vec::new();
    while let Some(message) = soon(next(&mut body)).await {
        let kind = if message["result"].is_object() {
            "result"
        } else {
            "progress"
        };
        seen.push((start.elapsed().as_secs(), kind));
    }
    assert_eq!(seen, [(0, "progress"), (1, "progress"), (2, "result")]);
    head.headers
}

/// Waits a minute at most, by a clock that may be paused.
async fn soon<F: Future>(future: F) -> F::Output {
    let minute = Duration::from_secs(60);
    tokio::time::timeout(minute, future)
        .await
        .expect("within a minute")
}

/// The next message of a stream.
async fn next<B>(body: &mut (impl Body<Data = Bytes, Error = B> + Unpin)) -> Option<Value>
where
    B: Debug,
{
    loop {
        let frame = body.frame().await?.expect("a frame");
        let data = frame.into_data().expect("data");
        let messages = messages_of(&data);
        assert!(messages.len() <= 1, "{messages:?}");
        if let Some(message) = messages.into_iter().next() {
            schema::validate_server_message(&message).expect("a message of the protocol");
            return Some(message);
        }
    }
}
