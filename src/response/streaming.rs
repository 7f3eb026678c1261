//! [`Stream`]: an open event stream, which hands out frames and keep-alives and drives the handler
//! on.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::Body;

use super::driver::{Driver, INTERNAL, Settled, drop_caught};
use super::last_event::LastEvent;
use super::timers::KeepAlive;
use crate::channel::Step;
use crate::error::BoxError;
use crate::protocol::reply::sse;

pub(crate) struct Stream<F, B> {
    driver: Driver<F>,
    /// The handler's response, when it came without a reply on the channel: its body is to be the
    /// last event.
    last: Option<Pin<Box<LastEvent<B>>>>,
    last_limit: u64,
    keep_alive: KeepAlive,
    /// The piece that follows directly on the bytes that were handed out.
    rest: Option<Bytes>,
    /// Whether the handler was polled and the queue was not looked at since.
    fresh: bool,
    /// Whether to return Pending once, so that the server writes what it has.
    flush: bool,
    /// Whether nothing was handed out so far. The first bytes are flushed.
    first: bool,
    done: bool,
}

impl<F, B> Stream<F, B> {
    /// Continues with a handler that was just polled, or with the response that it returned.
    pub(crate) fn new(
        driver: Driver<F>,
        response: Option<Response<B>>,
        last_limit: u64,
        keep_alive: KeepAlive,
    ) -> Self {
        let mut stream = Self {
            driver,
            last: None,
            last_limit,
            keep_alive,
            rest: None,
            fresh: true,
            flush: false,
            first: true,
            done: false,
        };
        if let Some(response) = response {
            stream.read_last(response);
        }
        stream
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    fn read_last(&mut self, response: Response<B>) {
        self.last = Some(Box::pin(LastEvent::new(response, self.last_limit)));
    }

    /// The next bytes, or None after the last.
    pub(crate) fn poll_next<E>(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>
    where
        F: Future<Output = Result<Response<B>, E>>,
        B: Body,
        B::Error: Into<BoxError>,
        E: Into<BoxError>,
    {
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(rest));
        }
        if self.done {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut self.flush) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if std::mem::take(&mut self.fresh) {
            // What the handler sent before goes first, or else a comment: it may compute for long
            // when polled again.
            match self.driver.outlet.poll_bytes(cx.waker()) {
                Step::Bytes { bytes, rest, flush } => return self.hand_out(bytes, rest, flush),
                Step::Wait { ended: false } => return self.open(),
                Step::Wait { .. } | Step::Done => {}
            }
        }
        self.drive(cx);
        match self.driver.outlet.poll_bytes(cx.waker()) {
            Step::Bytes { bytes, rest, flush } => self.hand_out(bytes, rest, flush),
            Step::Done => {
                self.done = true;
                Poll::Ready(None)
            }
            // Nothing follows the last event, so no keep-alive is sent.
            Step::Wait { ended: true } if self.last.is_none() => Poll::Pending,
            Step::Wait { .. } if self.first => self.open(),
            Step::Wait { .. } => self
                .keep_alive
                .poll(cx)
                .map(|()| Some(Bytes::from_static(sse::COMMENT))),
        }
    }

    /// Polls the handler, and then the body of the response that it returned.
    fn drive<E>(&mut self, cx: &mut Context<'_>)
    where
        F: Future<Output = Result<Response<B>, E>>,
        B: Body,
        B::Error: Into<BoxError>,
        E: Into<BoxError>,
    {
        if let Some(outcome) = self.driver.poll(cx) {
            match self.driver.settle(outcome) {
                // A stream is open, so a failure was sent on it, and a response is its last event.
                Settled::Channel(_) | Settled::Error(_) => {}
                Settled::LastEvent(response) | Settled::Response(response) => {
                    self.read_last(response);
                }
            }
        }
        let Some(last) = &mut self.last else { return };
        let outlet = &self.driver.outlet;
        if let Poll::Ready(event) = last.as_mut().poll(cx, outlet.request_id()) {
            match event {
                Some(json) => outlet.send_last_response(json),
                None => outlet.fail_last(INTERNAL),
            }
            drop_caught("the response body", self.last.take());
            outlet.handler_returned(false);
        }
    }

    /// Hands out a comment where no frame waits: proxies hold a head back until the first byte of the
    /// body.
    fn open(&mut self) -> Poll<Option<Bytes>> {
        self.hand_out(Bytes::from_static(sse::COMMENT), None, true)
    }

    fn hand_out(&mut self, bytes: Bytes, rest: Option<Bytes>, flush: bool) -> Poll<Option<Bytes>> {
        self.keep_alive.frame();
        self.rest = rest;
        self.flush = std::mem::take(&mut self.first) || flush;
        Poll::Ready(Some(bytes))
    }
}
