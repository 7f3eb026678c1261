//! What reads or changes bodies.

use std::io::Read;

use super::*;
use mcp_channel::McpChannelLayer;
use tower::{ServiceBuilder, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::map_response_body::MapResponseBodyLayer;

// Compression

#[tokio::test(start_paused = true)]
async fn compression_outside_leaves_a_stream_alone_and_unbuffered() {
    let service = ServiceBuilder::new()
        .layer(CompressionLayer::new())
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    let call = Call::tool("stream")
        .token(1)
        .header("accept-encoding", "gzip, br, zstd");
    let headers = streams_for(call, service).await;
    assert!(!headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn compression_outside_compresses_a_json_reply() {
    let service = ServiceBuilder::new()
        .layer(CompressionLayer::new())
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let call = Call::tool("plain").header("accept-encoding", encoding);
        let response = service.clone().oneshot(call.request()).await.unwrap();
        assert_eq!(response.headers()["content-encoding"], encoding);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(
            body.len() < long_text().len() / 2,
            "{encoding}: {}",
            body.len()
        );
    }
    let client = ServiceBuilder::new()
        .layer(DecompressionLayer::new())
        .service(service);
    let reply = Call::tool("plain").send(client).await;
    assert_eq!(reply.json()["result"]["text"], long_text());
}

#[tokio::test(start_paused = true)]
async fn compression_inside_concerns_the_handlers_own_bodies_alone() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(CompressionLayer::new())
        .service_fn(tool);
    let gzip = |tool| Call::tool(tool).token(1).header("accept-encoding", "gzip");
    streams_for(gzip("stream"), service.clone()).await;

    let reply = gzip("plain").send(service.clone()).await;
    assert!(!reply.headers.contains_key("content-encoding"));
    assert_eq!(reply.json()["result"]["text"], long_text());

    let response = service.oneshot(gzip("untouched").request()).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
}

// Decompression of requests

/// What `bytes` are, compressed by tower-http.
async fn gzip(bytes: impl Into<Bytes>) -> Bytes {
    let bytes = bytes.into();
    let compress = ServiceBuilder::new()
        .layer(CompressionLayer::new())
        .service_fn(move |_: Request<()>| {
            let response = Response::new(Full::new(bytes.clone()));
            async { Ok::<_, Infallible>(response) }
        });
    let request = Request::get("/")
        .header("accept-encoding", "gzip")
        .body(())
        .unwrap();
    let response = compress.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    response.into_body().collect().await.unwrap().to_bytes()
}

async fn compressed(call: Call) -> Request<Full<Bytes>> {
    let body = gzip(call.message.to_string()).await;
    call.header("content-encoding", "gzip")
        .with_body(Full::new(body))
}

#[tokio::test(start_paused = true)]
async fn decompression_outside_reads_compressed_requests() {
    let service = ServiceBuilder::new()
        .layer(RequestDecompressionLayer::new())
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;

    let request = compressed(Call::tool("stream").token(1)).await;
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap()["params"]["progress"], 1);
}

/// The limit counts what is read, not what was sent: a small body cannot become a large one.
#[tokio::test]
async fn the_body_limit_holds_for_what_was_decompressed() {
    let service = ServiceBuilder::new()
        .layer(RequestDecompressionLayer::new())
        .layer(McpChannelLayer::new().body_limit(10_000))
        .service_fn(tool);
    let request = compressed(Call::tool("plain").param("pad", "x".repeat(100_000))).await;
    assert!(request.body().size_hint_upper() < 10_000);
    let response = service.oneshot(request).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.json()["error"]["code"], -32600);
}

trait Upper {
    fn size_hint_upper(&self) -> u64;
}

impl<B: Body> Upper for B {
    fn size_hint_upper(&self) -> u64 {
        self.size_hint().upper().expect("a known size")
    }
}

#[tokio::test]
async fn a_compressed_body_is_rejected_where_nothing_decompresses_it() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    let request = compressed(Call::tool("plain")).await;
    let response = service.oneshot(request).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    assert_eq!(reply.status, 415);
    assert_eq!(reply.json()["error"]["code"], -32600);
    let said = reply.json()["error"]["message"].as_str().unwrap();
    for word in [
        "`Content-Encoding`",
        "'gzip'",
        "`RequestDecompressionLayer`",
    ] {
        assert!(said.contains(word), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn decompression_inside_finds_nothing_to_do() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(RequestDecompressionLayer::new())
        .service_fn(tool);
    streams(service).await;
}

// Limits of request bodies

#[tokio::test(start_paused = true)]
async fn a_body_limit_outside_is_a_json_rpc_413_where_the_length_is_not_told() {
    let service = ServiceBuilder::new()
        .layer(RequestBodyLimitLayer::new(1000))
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    streams(service.clone()).await;

    let large = Call::tool("plain").param("pad", "x".repeat(1000));
    let body = Full::new(Bytes::from(large.message.to_string()));
    let pieces = futures_util::stream::once(async move {
        body.collect()
            .await
            .map(|body| http_body::Frame::data(body.to_bytes()))
    });
    let request = large.with_body(http_body_util::StreamBody::new(Box::pin(pieces)));
    let response = service.clone().oneshot(request).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.json()["error"]["code"], -32600);
    let said = reply.json()["error"]["message"].as_str().unwrap();
    assert!(said.contains("limit"), "{said}");

    // Where it is told, tower-http answers, and the layer is never called.
    let length = large.message.to_string().len().to_string();
    let reply = large.header("content-length", &length).send(service).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test(start_paused = true)]
async fn a_body_limit_inside_sees_the_whole_body() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(RequestBodyLimitLayer::new(1000))
        .service_fn(tool);
    streams(service).await;
}

// Other bodies

#[tokio::test(start_paused = true)]
async fn bodies_may_be_mapped_outside_and_inside() {
    let service = ServiceBuilder::new()
        .layer(MapRequestBodyLayer::new(axum::body::Body::new))
        .layer(MapResponseBodyLayer::new(axum::body::Body::new))
        .layer(McpChannelLayer::new())
        .layer(MapRequestBodyLayer::new(axum::body::Body::new))
        .layer(MapResponseBodyLayer::new(axum::body::Body::new))
        .service(service_fn(tool));
    streams(service).await;
}

/// The same bytes reach the handler, whoever reads them.
#[tokio::test]
async fn the_inner_body_is_what_the_client_sent() {
    let call = Call::tool("x");
    let sent = call.message.to_string();
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .service_fn(move |request: Request<mcp_channel::RequestBody>| {
            let sent = sent.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let mut text = String::new();
                (&body[..]).read_to_string(&mut text).expect("text");
                assert_eq!(text, sent);
                Ok::<Plain, Infallible>(mcp_channel::Reply::result(json!({})).into())
            }
        });
    assert_eq!(call.send(service).await.status, 200);
}
