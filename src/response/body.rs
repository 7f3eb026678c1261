//! [`ResponseBody`]: the body of a response, of whatever kind it is.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::driver::caught;
use super::streaming::Stream;
use super::translated::Translated;
use crate::error::BoxError;

/// The body of a response: a single JSON reply, an event stream that drives its handler, or the
/// inner service's own body, untouched.
///
/// `F` is the handler's future and `B` its response's body. The default is an empty body.
///
/// A JSON reply is one frame, and its size hint is exact. A stream has no known size, ends after
/// its last event, and has no trailers. The inner service's own body passes with its errors, its
/// trailers and its size. Polled after its end, a reply or a stream gives `None`.
///
/// # Errors
///
/// Those of the inner service's own body. If that body panics, this is an error, too. A reply and a
/// stream never fail.
///
/// # Panics
///
/// When it is polled outside of a tokio runtime with a timer while
/// [`keep_alive`](crate::McpChannelLayer::keep_alive) is on.
///
/// # Cancel safety
///
/// Dropping it cancels the handler that it still drives, and closes the channel.
#[pin_project]
pub struct ResponseBody<F, B> {
    #[pin]
    kind: Kind<F, B>,
}

#[pin_project(project = KindProj)]
enum Kind<F, B> {
    Empty,
    Full(Bytes),
    Inner(#[pin] B),
    Stream(Stream<F, B>),
    /// Boxed: only clients of earlier revisions get one, and rarely.
    Translated(Pin<Box<Translated<B>>>),
}

impl<F, B> ResponseBody<F, B> {
    /// One piece of bytes, of known length.
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self {
            kind: Kind::Full(bytes),
        }
    }

    pub(crate) fn inner(body: B) -> Self {
        Self {
            kind: Kind::Inner(body),
        }
    }

    pub(crate) fn translated(body: Translated<B>) -> Self {
        Self {
            kind: Kind::Translated(Box::pin(body)),
        }
    }

    pub(crate) fn stream(stream: Stream<F, B>) -> Self {
        Self {
            kind: Kind::Stream(stream),
        }
    }
}

impl<F, B> Default for ResponseBody<F, B> {
    fn default() -> Self {
        Self { kind: Kind::Empty }
    }
}

impl<F, B, E> Body for ResponseBody<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut kind = self.project().kind;
        match kind.as_mut().project() {
            KindProj::Empty => Poll::Ready(None),
            KindProj::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                kind.set(Kind::Empty);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            KindProj::Inner(body) => {
                // Its data and its errors are user code, too.
                let into_bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
                let polled = caught("the response body", || {
                    body.poll_frame(cx).map(|frame| {
                        frame.map(|frame| {
                            frame
                                .map(|frame| frame.map_data(into_bytes))
                                .map_err(Into::into)
                        })
                    })
                });
                polled.unwrap_or_else(|| {
                    let _ = caught("the response body", || kind.set(Kind::Empty));
                    Poll::Ready(Some(Err("the response body panicked".into())))
                })
            }
            KindProj::Stream(stream) => stream
                .poll_next(cx)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            KindProj::Translated(body) => body
                .as_mut()
                .poll(cx)
                .map(|bytes| bytes.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(_) => false,
            Kind::Inner(body) => body.is_end_stream(),
            Kind::Stream(stream) => stream.is_done(),
            Kind::Translated(body) => body.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Inner(body) => body.size_hint(),
            Kind::Stream(stream) if stream.is_done() => SizeHint::with_exact(0),
            Kind::Translated(body) if body.is_done() => SizeHint::with_exact(0),
            Kind::Stream(_) | Kind::Translated(_) => SizeHint::default(),
        }
    }
}

impl<F, B> fmt::Debug for ResponseBody<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResponseBody")
            .field(&match &self.kind {
                Kind::Empty => "empty",
                Kind::Full(_) => "single",
                Kind::Inner(_) => "inner",
                Kind::Stream(_) => "stream",
                Kind::Translated(_) => "translated",
            })
            .finish()
    }
}
