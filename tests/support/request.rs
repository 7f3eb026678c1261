//! Requests as a client makes them, and what comes back of a service in this process.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcp_channel::{McpChannelLayer, McpChannelService, RequestBody};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt, service_fn};

use super::{schema, sse};

pub(crate) const VERSION: &str = "2026-07-28";
/// No response that is read to its end takes longer, be it by a clock that is paused. Keep-alives
/// would make one that never ends go on for ever.
const LONGEST: Duration = Duration::from_secs(600);
const PREFIX: &str = "io.modelcontextprotocol/";

/// A request to come, with everything that the protocol asks for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) message: Value,
    pub(crate) headers: HeaderMap,
}

impl Call {
    /// A request with id 1.
    pub(crate) fn new(method: &str) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", VERSION),
            ("mcp-method", method),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        Self {
            message: json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}),
            headers,
        }
    }

    /// A call of a tool.
    pub(crate) fn tool(name: &str) -> Self {
        Self::new("tools/call")
            .param("name", name)
            .param("arguments", json!({}))
            .header("mcp-name", name)
    }

    /// A `subscriptions/listen` for the list of tools.
    pub(crate) fn listen() -> Self {
        Self::new("subscriptions/listen").param("notifications", json!({"toolsListChanged": true}))
    }

    pub(crate) fn notification(method: &str) -> Self {
        let mut call = Self::new(method);
        call.message.as_object_mut().unwrap().remove("id");
        call
    }

    pub(crate) fn id(mut self, id: impl Into<Value>) -> Self {
        self.message["id"] = id.into();
        self
    }

    pub(crate) fn param(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.message["params"][key] = value.into();
        self
    }

    /// A member of `_meta`; the protocol's prefix is added to plain keys of its own.
    pub(crate) fn meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        let own = ["progressToken", "traceparent", "tracestate", "baggage"].contains(&key);
        let key = if own || key.contains('/') {
            key.to_owned()
        } else {
            format!("{PREFIX}{key}")
        };
        self.message["params"]["_meta"][key] = value.into();
        self
    }

    /// Asks for progress.
    pub(crate) fn token(self, token: impl Into<Value>) -> Self {
        self.meta("progressToken", token)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn accept(self, value: &str) -> Self {
        self.header("accept", value)
    }

    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        self.with_body(Full::new(self.message.to_string().into()))
    }

    pub(crate) fn with_body<B>(&self, body: B) -> Request<B> {
        let mut request = Request::post("http://localhost/mcp").body(body).unwrap();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends it, and reads the response to its end.
    pub(crate) async fn send<S, B>(&self, service: S) -> Reply
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>>,
        S::Error: std::fmt::Debug,
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let response = in_time(service.oneshot(self.request())).await.unwrap();
        Reply::read(response).await
    }
}

/// A response, read to its end. Each message in it was held against the protocol's schema.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The one JSON, or those of the events.
    pub(crate) messages: Vec<Value>,
}

impl Reply {
    pub(crate) async fn read<B>(response: Response<B>) -> Self
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let (parts, body) = response.into_parts();
        let body = in_time(body.collect()).await.unwrap().to_bytes();
        let content_type = parts.headers.get("content-type");
        let messages = match content_type.map(|value| value.to_str().unwrap()) {
            Some("application/json") => vec![serde_json::from_slice(&body).unwrap()],
            Some("text/event-stream") => messages_of(&body),
            _ => Vec::new(),
        };
        for message in &messages {
            schema::validate_server_message(message)
                .unwrap_or_else(|error| panic!("{error}: {message}"));
        }
        Self {
            status: parts.status,
            headers: parts.headers,
            body,
            messages,
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.headers["content-type"] == "text/event-stream"
    }

    /// The only message: that of a JSON reply.
    pub(crate) fn json(&self) -> &Value {
        assert!(!self.is_stream(), "{self:?}");
        &self.messages[0]
    }

    /// The messages of a stream.
    pub(crate) fn events(&self) -> &[Value] {
        assert!(self.is_stream(), "{self:?}");
        &self.messages
    }

    /// The last message.
    pub(crate) fn last(&self) -> &Value {
        self.messages.last().expect("a message")
    }
}

/// Awaits what is bound to come. Some tests run without a runtime, which has no clock to wait by.
async fn in_time<F: Future>(future: F) -> F::Output {
    if tokio::runtime::Handle::try_current().is_err() {
        return future.await;
    }
    let awaited = tokio::time::timeout(LONGEST, future).await;
    awaited.expect("an answer that comes and ends")
}

/// The messages in the bytes of a stream.
pub(crate) fn messages_of(stream: &[u8]) -> Vec<Value> {
    sse::events(stream)
        .into_iter()
        .map(|event| {
            assert_eq!(event.event, "message");
            serde_json::from_str(&event.data).unwrap()
        })
        .collect()
}

/// A handler behind the layer.
pub(crate) type Served =
    McpChannelService<BoxCloneSyncService<Request<RequestBody>, Response<Full<Bytes>>, Infallible>>;

/// A handler behind the layer with its defaults.
pub(crate) fn served<H, F, R>(handler: H) -> Served
where
    H: Fn(mcp_channel::Channel, mcp_channel::Message) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = R> + Send + 'static,
    R: Into<Response<Full<Bytes>>> + 'static,
{
    served_by(McpChannelLayer::new(), handler)
}

/// A handler behind this layer.
pub(crate) fn served_by<H, F, R>(layer: McpChannelLayer, handler: H) -> Served
where
    H: Fn(mcp_channel::Channel, mcp_channel::Message) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = R> + Send + 'static,
    R: Into<Response<Full<Bytes>>> + 'static,
{
    let service = service_fn(move |mut request: Request<RequestBody>| {
        let channel = request.extensions_mut().remove().expect("a channel");
        let message = request.extensions_mut().remove().expect("a message");
        let response = handler(channel, message);
        async move { Ok(response.await.into()) }
    });
    tower::Layer::layer(&layer, BoxCloneSyncService::new(service))
}
