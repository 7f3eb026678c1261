//! A client with an open `subscriptions/listen` stream, which reads only when it is told to.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::task::noop_waker;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Service, ServiceExt};

use super::request::{Call, messages_of};
use super::schema;

/// An open stream. Dropping it is what a client does that goes away.
pub(crate) struct Listener {
    body: Pin<Box<dyn Body<Data = Bytes, Error = mcp_channel::BoxError> + Send>>,
    pub(crate) ended: bool,
}

impl Listener {
    /// Sends the request. The response's head is there when this returns.
    pub(crate) async fn open<S, B>(service: S, call: &Call) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>>,
        S::Error: std::fmt::Debug,
        B: Body<Data = Bytes, Error = mcp_channel::BoxError> + Send + 'static,
    {
        let response = service.oneshot(call.request()).await.unwrap();
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK || head.headers["content-type"] != "text/event-stream" {
            let body = body.collect().await.unwrap().to_bytes();
            panic!("no stream: {head:?} {body:?}");
        }
        Self {
            body: Box::pin(body),
            ended: false,
        }
    }

    /// How many bytes the body has, without what it points to.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.body)
    }

    /// The bytes that are there now.
    pub(crate) fn read(&mut self) -> Bytes {
        let waker = noop_waker();
        let mut bytes = BytesMut::new();
        let mut idle = 0;
        // The body is pending once in between, so that a server writes what it has.
        while idle < 2 && !self.ended {
            match self
                .body
                .as_mut()
                .poll_frame(&mut Context::from_waker(&waker))
            {
                Poll::Ready(Some(frame)) => {
                    idle = 0;
                    bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => idle += 1,
            }
        }
        bytes.freeze()
    }

    /// The messages that are there now, each held against the protocol's schema.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        let messages = messages_of(&self.read());
        for message in &messages {
            schema::validate_server_message(message)
                .unwrap_or_else(|error| panic!("{error}: {message}"));
        }
        messages
    }

    /// What is there now, in short: each notification's method without its first word, with its
    /// URI, and `result` or `error`.
    pub(crate) fn heard(&mut self) -> Vec<String> {
        self.messages().iter().map(short).collect()
    }
}

fn short(message: &Value) -> String {
    let Some(method) = message["method"].as_str() else {
        return if message.get("result").is_some() {
            "result"
        } else {
            "error"
        }
        .to_owned();
    };
    let method = method.strip_prefix("notifications/").unwrap_or(method);
    match message["params"]["uri"].as_str() {
        Some(uri) => format!("{method} {uri}"),
        None => method.to_owned(),
    }
}
