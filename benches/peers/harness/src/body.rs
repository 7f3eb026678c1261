//! One request body for both ways to call a server.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;

/// A body from a socket, or one that is there already.
#[derive(Debug)]
pub enum RequestBody {
    Incoming(Incoming),
    Full(Full<Bytes>),
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            RequestBody::Incoming(body) => Pin::new(body).poll_frame(cx),
            RequestBody::Full(body) => Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Incoming(body) => body.is_end_stream(),
            RequestBody::Full(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Incoming(body) => body.size_hint(),
            RequestBody::Full(body) => body.size_hint(),
        }
    }
}
