//! Reads the body of a request, up to a limit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::Body;

use crate::error::BoxError;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::request::arrival;

/// What was read of the body so far.
#[derive(Debug)]
pub(crate) struct Collect {
    limit: u64,
    /// A body that arrives in one piece is used as it is.
    first: Bytes,
    more: Vec<u8>,
}

impl Collect {
    /// `limit` is in bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            first: Bytes::new(),
            more: Vec::new(),
        }
    }

    /// Reads on, and returns the whole body once it is there. The rest of a body that is too large
    /// is not read.
    pub(crate) fn poll<B>(
        &mut self,
        mut body: Pin<&mut B>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Rejection>>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        // The body may claim any size, so the sum must not overflow.
        if self.len().saturating_add(body.size_hint().lower()) > self.limit {
            return Poll::Ready(Err(arrival::too_large(self.limit)));
        }
        while let Some(frame) = ready!(body.as_mut().poll_frame(cx)) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    let error: BoxError = error.into();
                    return Poll::Ready(Err(self.rejection(&*error)));
                }
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if self.len().saturating_add(data.remaining() as u64) > self.limit {
                return Poll::Ready(Err(arrival::too_large(self.limit)));
            }
            self.push(data);
        }
        let first = std::mem::take(&mut self.first);
        Poll::Ready(Ok(if self.more.is_empty() {
            first
        } else {
            std::mem::take(&mut self.more).into()
        }))
    }

    fn len(&self) -> u64 {
        (self.first.len() + self.more.len()) as u64
    }

    fn push(&mut self, mut data: impl Buf) {
        if self.len() == 0 {
            self.first = data.copy_to_bytes(data.remaining());
            return;
        }
        if self.more.is_empty() {
            self.more
                .extend_from_slice(&std::mem::take(&mut self.first));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            self.more.extend_from_slice(chunk);
            let length = chunk.len();
            data.advance(length);
        }
    }

    /// The rejection for a body that failed. When a limit outside the layer made it fail, the
    /// client gets a 413, as with our own limit.
    fn rejection(&self, error: &(dyn std::error::Error + 'static)) -> Rejection {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.to_string().contains("length limit exceeded") {
                return arrival::too_large_for_another();
            }
            cause = error.source();
        }
        arrival::broken_body(&error)
    }
}
