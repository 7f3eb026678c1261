//! A response whose body is to be the last event of a stream that is open already.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::Response;
use http_body::Body;
use pin_project::pin_project;

use crate::driver::caught;
use crate::error::BoxError;
use crate::protocol::id::RequestId;
use crate::protocol::{encode, response};
use crate::trace::error;

/// Reads the body, and looks whether it is the JSON-RPC response that the client waits for.
#[pin_project]
pub(crate) struct LastEvent<B> {
    #[pin]
    body: B,
    read: Vec<u8>,
    limit: u64,
}

impl<B> LastEvent<B> {
    /// `limit` bounds the body, in bytes.
    pub(crate) fn new(response: Response<B>, limit: u64) -> Self {
        Self {
            body: response.into_body(),
            read: Vec::new(),
            limit,
        }
    }

    /// The JSON of the last event; None when the body is none, which is traced.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        id: Option<&RequestId>,
    ) -> Poll<Option<Vec<u8>>>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let mut this = self.project();
        loop {
            let polled = caught("the response body", || this.body.as_mut().poll_frame(cx));
            let Some(polled) = polled else {
                return Poll::Ready(None);
            };
            match ready!(polled) {
                Some(Ok(frame)) => {
                    let Ok(mut data) = frame.into_data() else {
                        continue;
                    };
                    if (this.read.len() + data.remaining()) as u64 > *this.limit {
                        error!(
                            limit = *this.limit,
                            "the handler returned a body that is too large for an event"
                        );
                        return Poll::Ready(None);
                    }
                    while data.has_remaining() {
                        let chunk = data.chunk();
                        this.read.extend_from_slice(chunk);
                        let length = chunk.len();
                        data.advance(length);
                    }
                }
                Some(Err(failure)) => {
                    let failure: BoxError = failure.into();
                    error!(error = %failure, "the body that the handler returned failed");
                    return Poll::Ready(None);
                }
                None => break,
            }
        }
        let event = std::str::from_utf8(this.read)
            .ok()
            .filter(|text| id.is_some_and(|id| response::answers(text, id)));
        let Some(text) = event else {
            error!(
                "the handler returned a body that is no response to the request, on an open stream: return `Reply`, or `Deferred` while a task replies"
            );
            return Poll::Ready(None);
        };
        let mut json = Vec::with_capacity(text.len());
        encode::put_json(&mut json, text);
        Poll::Ready(Some(json))
    }
}
