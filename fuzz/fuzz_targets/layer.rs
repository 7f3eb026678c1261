//! Whatever a client sends, in however many pieces, there is an answer that is one JSON object, and
//! what reaches the handler is a message.

#![no_main]

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use mcp_channel::{
    AllowedHosts, AllowedOrigins, McpChannelLayer, Message, Reply, RequestBody, ServerInfo,
};
use serde_json::Value;
use tower::{Layer, ServiceExt, service_fn};

#[derive(Arbitrary, Debug)]
struct Client<'a> {
    post: bool,
    /// Begins with the headers and the body of a sound request.
    sound: bool,
    /// What is put into that body: where, in the place of how much.
    edits: Vec<(u16, u8, &'a [u8])>,
    limit: Option<u8>,
    hosts: bool,
    uri: &'a str,
    headers: Vec<(Header<'a>, &'a [u8])>,
    pieces: Vec<&'a [u8]>,
}

#[derive(Arbitrary, Debug)]
enum Header<'a> {
    Accept,
    ContentType,
    Host,
    Method,
    Name,
    Origin,
    Version,
    Other(&'a str),
}

const SOUND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7,"io.modelcontextprotocol/logLevel":"info","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}"#;

async fn handle(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let message: &Message = request.extensions().get().expect("a message");
    let _ = (message.name(), message.meta().client_info());
    Ok(Reply::result(serde_json::json!({"method": message.method()})).into())
}

fuzz_target!(|client: Client<'_>| {
    let mut layer = McpChannelLayer::new()
        .keep_alive(std::time::Duration::ZERO)
        .stream_after(std::time::Duration::ZERO)
        .server_info(ServerInfo::new("fuzz", "1"))
        .allowed_origins(AllowedOrigins::loopback());
    if client.hosts {
        layer = layer.allowed_hosts(AllowedHosts::loopback());
    }
    if let Some(limit) = client.limit {
        layer = layer.body_limit(limit.into());
    }
    let mut text = Vec::new();
    if client.sound {
        text.extend_from_slice(SOUND.as_bytes());
        for (at, gone, put) in &client.edits {
            let at = usize::from(*at).min(text.len());
            let end = (at + usize::from(*gone)).min(text.len());
            text.splice(at..end, put.iter().copied());
        }
    }
    let untouched = client.post
        && client.sound
        && client.edits.is_empty()
        && client.pieces.is_empty()
        && client.headers.is_empty()
        && client.limit.is_none()
        && !client.hosts;
    let pieces: Vec<_> = std::iter::once(&*text)
        .chain(client.pieces.iter().copied())
        .map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let mut request = Request::new(StreamBody::new(stream::iter(pieces)));
    if client.post {
        *request.method_mut() = Method::POST;
    }
    if let Ok(uri) = client.uri.parse() {
        *request.uri_mut() = uri;
    }
    if client.sound {
        for (name, value) in [
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
        ] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().insert(name, value);
        }
    }
    for (header, value) in &client.headers {
        let name = match header {
            Header::Accept => "accept",
            Header::ContentType => "content-type",
            Header::Host => "host",
            Header::Method => "mcp-method",
            Header::Name => "mcp-name",
            Header::Origin => "origin",
            Header::Version => "mcp-protocol-version",
            Header::Other(name) => name,
        };
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            request.headers_mut().append(name, value);
        }
    }
    let service = layer.layer(service_fn(handle));
    let Ok(response) = service.oneshot(request).now_or_never().expect("an answer");
    let (head, body) = response.into_parts();
    assert!(!untouched || head.status == 200, "{head:?}");
    let collected = body.collect().now_or_never().expect("a body that is there");
    let bytes = collected.expect("no error").to_bytes();
    if head.status == 202 {
        assert!(bytes.is_empty());
        return;
    }
    let json: &[u8] = if head.headers["content-type"] == "text/event-stream" {
        let event = bytes.strip_prefix(b"event: message\ndata: ");
        event
            .and_then(|event| event.strip_suffix(b"\n\n"))
            .expect("one event")
    } else {
        &bytes
    };
    assert!(!json.contains(&b'\n') && !json.contains(&b'\r'));
    // An id may hold half of a surrogate pair, so only the syntax is looked at.
    let raw: &serde_json::value::RawValue = serde_json::from_slice(json).expect("JSON");
    if let Ok(value) = serde_json::from_str::<Value>(raw.get()) {
        assert_eq!(value["jsonrpc"], "2.0");
        assert_eq!(head.status == 200, value.get("result").is_some(), "{value}");
        assert_eq!(head.status == 200, value.get("error").is_none(), "{value}");
    }
});
