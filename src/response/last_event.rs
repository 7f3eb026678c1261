//! The last event of a stream whose handler returned a response of its own: that response's body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::Response;
use http_body::Body;
use pin_project::pin_project;

use super::driver::caught;
use crate::error::BoxError;
use crate::protocol::id::RequestId;
use crate::protocol::json::encode;
use crate::protocol::reply::handmade;
use crate::trace::error;

/// Reads the body, and checks that it is the JSON-RPC response that the client waits for.
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

    /// The JSON of the last event; None when the body is not that response, which is traced.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        id: Option<&RequestId>,
    ) -> Poll<Option<Vec<u8>>>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let this = self.project();
        if !ready!(poll_read(this.body, this.read, *this.limit, cx)) {
            return Poll::Ready(None);
        }
        let event = std::str::from_utf8(this.read)
            .ok()
            .filter(|text| id.is_some_and(|id| handmade::answers(text, id)));
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

/// Reads on into `read`. False when the body failed, panicked or is larger than `limit`, which is
/// traced.
pub(super) fn poll_read<B>(
    body: Pin<&mut B>,
    read: &mut Vec<u8>,
    limit: u64,
    cx: &mut Context<'_>,
) -> Poll<bool>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    // Its data and its errors are user code, too.
    let polled = caught("the response body", || poll_inner(body, read, limit, cx));
    polled.unwrap_or(Poll::Ready(false))
}

fn poll_inner<B>(
    mut body: Pin<&mut B>,
    read: &mut Vec<u8>,
    limit: u64,
    cx: &mut Context<'_>,
) -> Poll<bool>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    while let Some(frame) = ready!(body.as_mut().poll_frame(cx)) {
        let frame = match frame {
            Ok(frame) => frame,
            Err(failure) => {
                let failure: BoxError = failure.into();
                error!(error = %failure, "the body that the handler returned failed");
                return Poll::Ready(false);
            }
        };
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if (read.len() as u64).saturating_add(data.remaining() as u64) > limit {
            error!(
                limit,
                "the handler returned a body that is too large for an event"
            );
            return Poll::Ready(false);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            read.extend_from_slice(chunk);
            let length = chunk.len();
            data.advance(length);
        }
    }
    Poll::Ready(true)
}
