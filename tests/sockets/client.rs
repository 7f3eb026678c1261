//! Clients: one that writes and reads HTTP/1 by hand, and hyper's.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::net::{self, Endpoint, Server, soon};
use crate::support::request::{Call, messages_of};
use crate::support::schema;

/// A connection of which every byte is known.
pub(crate) struct Raw<S> {
    pub(crate) stream: S,
    /// Read, and not yet looked at.
    read: Vec<u8>,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status_line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| &**value);
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.get("content-type") == Some("text/event-stream")
    }
}

/// The bytes of a request with its length.
pub(crate) fn bytes_of(call: &Call, version: &str, more: &str) -> Vec<u8> {
    let body = call.message.to_string();
    let mut bytes = head_of(call, version, more);
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// The bytes of the head alone.
pub(crate) fn head_of(call: &Call, version: &str, more: &str) -> Vec<u8> {
    let mut head = format!("POST /mcp HTTP/{version}\r\nhost: localhost\r\n");
    for (name, value) in &call.headers {
        head += &format!("{name}: {}\r\n", value.to_str().expect("text"));
    }
    head += &format!("content-length: {}\r\n", call.message.to_string().len());
    head += more;
    head += "\r\n";
    head.into_bytes()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        soon("room for a request", self.stream.write_all(bytes))
            .await
            .expect("a server");
    }

    pub(crate) async fn send(&mut self, call: &Call) {
        self.write(&bytes_of(call, "1.1", "")).await;
    }

    /// Reads on. False at the end.
    async fn more(&mut self) -> bool {
        let read = soon("bytes", self.stream.read_buf(&mut self.read)).await;
        read.expect("a server") > 0
    }

    async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            let found = self.read.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                let rest = self.read.split_off(at + end.len());
                return std::mem::replace(&mut self.read, rest);
            }
            assert!(self.more().await, "ended after {:?}", self.read);
        }
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            assert!(self.more().await, "ended after {:?}", self.read);
        }
        let rest = self.read.split_off(length);
        std::mem::replace(&mut self.read, rest)
    }

    /// All until the server closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    pub(crate) async fn head(&mut self) -> Head {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await).expect("text");
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().expect("a status line").to_owned();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").expect("a header");
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Head {
            status_line,
            headers: headers.collect(),
        }
    }

    /// The next chunk of a chunked body. None is its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = self.until(b"\r\n").await;
        let length = std::str::from_utf8(&length).expect("a length");
        let length = usize::from_str_radix(length.trim_end(), 16).expect("a length");
        let mut chunk = self.exactly(length + 2).await;
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    /// The next message of a stream whose events come in a chunk each.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        // As a whole, since keep-alives may come for ever.
        soon("a message", self.wait_for_message()).await
    }

    async fn wait_for_message(&mut self) -> Option<Value> {
        loop {
            let messages = messages_of(&self.chunk().await?);
            assert!(messages.len() <= 1, "{messages:?}");
            if let Some(message) = messages.into_iter().next() {
                return Some(message);
            }
        }
    }

    /// The messages of a chunked stream, to its end.
    pub(crate) async fn messages(&mut self) -> Vec<Value> {
        let mut body = Vec::new();
        let read = async {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        };
        soon("the end of the stream", read).await;
        messages_of(&body)
    }

    /// A JSON body with its length.
    pub(crate) async fn json(&mut self, head: &Head) -> Value {
        assert_eq!(head.get("content-type"), Some("application/json"));
        let length = head.get("content-length").expect("a length");
        let body = self.exactly(length.parse().expect("a length")).await;
        serde_json::from_slice(&body).expect("JSON")
    }
}

/// The messages of a stream as they arrive.
pub(crate) struct Messages {
    body: Incoming,
    read: Vec<u8>,
}

impl Messages {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            read: Vec::new(),
        }
    }

    /// The next one; None at the end. Comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        // As a whole, since keep-alives may come for ever.
        soon("a message", self.wait()).await
    }

    async fn wait(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.read.windows(2).position(|end| end == b"\n\n") {
                let rest = self.read.split_off(at + 2);
                let event = std::mem::replace(&mut self.read, rest);
                if let Some(message) = messages_of(&event).pop() {
                    schema::validate_server_message(&message).expect("a message of the protocol");
                    return Some(message);
                }
                continue;
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data = frame.expect("a server").into_data().expect("data");
                    self.read.extend_from_slice(&data);
                }
                None => {
                    assert_eq!(self.read, b"", "an event was cut off");
                    return None;
                }
            }
        }
    }

    /// The rest of them.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }
}

/// hyper's client on one connection, of either version of HTTP.
pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn http1<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (client, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .expect("a connection");
        tokio::spawn(connection);
        Self::Http1(client)
    }

    pub(crate) async fn http2<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // A window for one stream that is much smaller than that for all, as browsers have it: a
        // stream that is not read uses up its own.
        let (client, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(64 * 1024)
            .initial_connection_window_size(1024 * 1024)
            .handshake(TokioIo::new(stream))
            .await
            .expect("a connection");
        tokio::spawn(connection);
        Self::Http2(client)
    }

    /// Sends a request. Its response is waited for apart.
    pub(crate) fn begin(
        &mut self,
        call: &Call,
    ) -> impl Future<Output = hyper::Result<http::Response<Incoming>>> + use<> {
        let request = call.request();
        match self {
            Self::Http1(client) => {
                let (mut parts, body) = request.into_parts();
                parts.uri = http::Uri::from_static("/mcp");
                let host = http::HeaderValue::from_static("localhost");
                parts.headers.insert("host", host);
                let request = http::Request::from_parts(parts, body);
                futures_util::future::Either::Left(client.send_request(request))
            }
            Self::Http2(client) => {
                futures_util::future::Either::Right(client.send_request(request))
            }
        }
    }

    pub(crate) async fn send(&mut self, call: &Call) -> http::Response<Incoming> {
        soon("a response", self.begin(call))
            .await
            .expect("a server")
    }

    /// The messages of a call that is answered with a stream.
    pub(crate) async fn stream(&mut self, call: &Call) -> Messages {
        let response = self.send(call).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Messages::new(response.into_body())
    }
}

/// A client of each version of HTTP at each server. The servers live as long as what they come with.
pub(crate) async fn each_way(endpoint: Endpoint) -> Vec<(String, Server, Client)> {
    each_way_on(&tokio::runtime::Handle::current(), endpoint).await
}

/// [`each_way`], with the servers on a runtime of their own.
pub(crate) async fn each_way_on(
    servers: &tokio::runtime::Handle,
    endpoint: Endpoint,
) -> Vec<(String, Server, Client)> {
    let mut ways = Vec::new();
    for server in ["hyper", "axum"] {
        for version in ["HTTP/1.1", "HTTP/2"] {
            let running = {
                let _on = servers.enter();
                match server {
                    "hyper" => net::hyper(endpoint.clone()),
                    _ => net::axum(endpoint.clone()),
                }
            };
            let stream = running.connect().await;
            let client = match version {
                "HTTP/1.1" => Client::http1(stream).await,
                _ => Client::http2(stream).await,
            };
            ways.push((format!("{version} at {server}"), running, client));
        }
    }
    ways
}
