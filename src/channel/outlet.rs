//! The other end of a channel: whoever writes the response.

use std::fmt;
use std::task::{Poll, Waker};

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::inner::FinalReply;
use super::shared::Shared;
use super::sync::Arc;
use crate::error::CloseReason;
use crate::protocol::id::RequestId;
use crate::protocol::response;
use crate::protocol::rpc_error::RpcError;
use crate::state::{Frame, Head};

/// The other end of a [`Channel`](crate::Channel): what was sent, as the client gets it.
///
/// The layer writes the response from one. [`Channel::from_request`](crate::Channel::from_request)
/// hands one out for tests of handlers. When it is dropped, the client is gone: the channel is
/// closed as [disconnected](CloseReason::Disconnected).
pub struct Outlet {
    shared: Arc<Shared>,
}

/// What the client of a subscription is told that has a result too early.
const NOT_ACKNOWLEDGED: &str = "the subscription was not acknowledged before its result";

/// What the response is to be.
#[derive(Debug)]
pub(crate) enum Decided {
    Single(FinalReply),
    Stream,
}

/// What there is for the body of a stream.
#[derive(Debug)]
pub(crate) enum Step {
    /// Bytes for the client; `flush` when the server is to write them before it asks for more.
    Bytes { bytes: Bytes, flush: bool },
    /// Nothing yet. The waker is woken when there is; `ended` when only the handler's return is
    /// still to come.
    Wait { ended: bool },
    /// All was handed out.
    Done,
}

impl Outlet {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// What was sent since the last call and is on the stream: one or more whole events. None when
    /// nothing was.
    pub fn try_next(&mut self) -> Option<Bytes> {
        let (bytes, freed) = self.shared.lock().take()?;
        freed.wake();
        Some(bytes)
    }

    /// The final reply, with its HTTP status, when it came before anything opened the stream.
    pub fn try_reply(&mut self) -> Option<(StatusCode, Bytes)> {
        let reply = self.shared.lock().reply.take()?;
        Some((reply.status, reply.json.into_bytes()))
    }

    /// The handler is about to be polled.
    pub(crate) fn begin_poll(&self) {
        let now = Instant::now();
        self.shared.lock().begin_poll(now);
    }

    /// Decides what the response is to be, after the handler was polled. The waker is woken when
    /// that changes.
    ///
    /// With `stream_only` a result is made the one event of a stream. An error whose status says
    /// something stays a single reply.
    pub(crate) fn poll_decided(&self, waker: &Waker, stream_only: bool) -> Poll<Decided> {
        let mut inner = self.shared.lock();
        inner.end_poll();
        match inner.state.head() {
            Head::Stream => Poll::Ready(Decided::Stream),
            Head::Single => {
                let reply = inner.reply.take();
                drop(inner);
                // No sequence of events should leave an ended request without a reply.
                let reply = reply.unwrap_or_else(|| self.shared.failure("there is no reply"));
                if stream_only && reply.status == StatusCode::OK {
                    self.shared.lock().stream_reply(Some(reply));
                    return Poll::Ready(Decided::Stream);
                }
                Poll::Ready(Decided::Single(reply))
            }
            Head::Undecided => {
                let stale = inner.wait(waker);
                drop(inner);
                drop(stale);
                Poll::Pending
            }
        }
    }

    /// Looks for bytes, after the handler was polled.
    pub(crate) fn poll_bytes(&self, waker: &Waker) -> Step {
        let mut inner = self.shared.lock();
        inner.end_poll();
        if let Some((bytes, freed)) = inner.take() {
            let flush = inner.outgoing.is_empty() && std::mem::take(&mut inner.flush);
            drop(inner);
            freed.wake();
            return Step::Bytes { bytes, flush };
        }
        if inner.state.is_done() {
            return Step::Done;
        }
        let ended = inner.state.ended().is_some();
        let stale = inner.wait(waker);
        let quiet = inner.outgoing.release();
        drop(inner);
        drop((stale, quiet));
        Step::Wait { ended }
    }

    /// Whether the stream is open.
    pub(crate) fn is_streaming(&self) -> bool {
        self.shared.lock().state.is_streaming()
    }

    /// Whether something was sent, so that the handler's failure is the channel's to tell.
    pub(crate) fn was_used(&self) -> bool {
        let inner = self.shared.lock();
        inner.state.is_streaming() || inner.state.ended().is_some()
    }

    /// The handler has returned, and the channel was closed before: the reply is there.
    pub(crate) fn returned_after_end(&self) -> bool {
        let mut inner = self.shared.lock();
        let ended = inner.state.ended().is_some();
        if ended {
            inner.state.handler_returned(false);
        }
        ended
    }

    /// Opens the stream because the reply is late. A reply that is there is its one event.
    pub(crate) fn open_stream(&self) {
        let mut inner = self.shared.lock();
        let reply = inner.reply.take();
        let spent = inner.stream_reply(reply);
        drop(inner);
        drop(spent);
    }

    /// The status of the reply that is kept back.
    pub(crate) fn reply_status(&self) -> Option<StatusCode> {
        self.shared.lock().reply.as_ref().map(|reply| reply.status)
    }

    /// An error as the request's reply.
    pub(crate) fn error(&self, error: &RpcError) -> FinalReply {
        self.shared.error(error)
    }

    /// Ends the request with the result that the handler returned, unless it has ended.
    pub(crate) fn reply_result(&self, json: &[u8]) {
        let admitted = self.shared.admit(Frame::Result);
        match admitted.and_then(|()| self.shared.encoded_result(json)) {
            Ok(reply) => self.reply(reply),
            Err(error) if error.is_closed() => {}
            Err(error) if error.is_not_acknowledged() => {
                crate::trace::error!("the handler returned a result before its acknowledgement");
                self.fail(NOT_ACKNOWLEDGED);
            }
            Err(error) => {
                crate::trace::error!(%error, "the handler returned what is no result");
                self.fail("the result is no JSON object");
            }
        }
    }

    /// Ends the request with an error, unless it has ended.
    pub(crate) fn reply_error(&self, error: &RpcError) {
        self.reply(self.shared.error(error));
    }

    fn reply(&self, reply: FinalReply) {
        // An error means that the first reply stands.
        let _ = self
            .shared
            .end(self.shared.lock(), CloseReason::Replied, Some(reply));
    }

    /// Ends the request with an internal error, unless it has ended.
    pub(crate) fn fail(&self, message: &'static str) {
        self.shared.fail(self.shared.lock(), message);
    }

    /// Refuses every further send: the last event is still to be made of a response's body.
    pub(crate) fn close_for_body(&self) {
        let _ = self
            .shared
            .end(self.shared.lock(), CloseReason::Replied, None);
    }

    /// Sends the last event after [`close_for_body`](Self::close_for_body).
    pub(crate) fn send_last(&self, json: &[u8]) {
        let mut inner = self.shared.lock();
        let keyed = inner.state.is_acknowledged();
        inner.outgoing.append_last(json, keyed);
    }

    /// As [`send_last`](Self::send_last), for a response that somebody else wrote: the result of a
    /// subscription names it, and comes after its acknowledgement.
    pub(crate) fn send_last_response(&self, mut json: Vec<u8>) {
        if let Some(id) = self.request_id().filter(|_| self.shared.info.subscription) {
            // What was found to be a response scans again.
            let result = response::stamp_result(&mut json, id).unwrap_or_default();
            if result && !self.shared.lock().state.is_acknowledged() {
                crate::trace::error!("the handler returned a result before its acknowledgement");
                return self.fail_last(NOT_ACKNOWLEDGED);
            }
        }
        self.send_last(&json);
    }

    /// Sends an internal error as the last event after [`close_for_body`](Self::close_for_body).
    pub(crate) fn fail_last(&self, message: &'static str) {
        let failure = self.shared.failure(message);
        self.send_last(&failure.json.0);
    }

    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        self.shared.info.id.as_ref()
    }

    /// The handler has returned, and all that it held is dropped.
    pub(crate) fn handler_returned(&self, deferred: bool) {
        self.shared.handler_returned(deferred);
    }

    /// Closes the channel because nobody will read any more.
    pub(crate) fn disconnect(&self) {
        let (wakers, unsent) = self.shared.lock().disconnect();
        wakers.into_iter().for_each(Waker::wake);
        drop(unsent);
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}
