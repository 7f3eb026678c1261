//! The end that writes the response: it takes out what the handle put in. Dropped, it tells tasks that
//! hold a handle that the client is gone; the handler itself is dropped by its driver.

use std::fmt;
use std::task::{Poll, Waker};

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::locked::Freed;
use super::queue::FinalReply;
use super::queue::Outgoing;
use super::shared::{Info, Shared};
use super::sync::Arc;
use crate::error::CloseReason;
use crate::protocol::id::RequestId;
use crate::protocol::reply::handmade;
use crate::protocol::reply::legacy::{self, Form};
use crate::protocol::reply::rpc_error::RpcError;
use crate::state::{Frame, Head};

/// The other end of a [`Channel`](crate::Channel): it yields what was sent, as the client gets it.
///
/// The layer writes the response from an outlet.
/// [`Channel::from_request`](crate::Channel::from_request) makes one for tests of handlers.
/// Dropping it means that the client is gone: the channel is closed as
/// [disconnected](CloseReason::Disconnected).
pub struct Outlet {
    shared: Arc<Shared>,
    /// Whether the handler's first poll has begun already, with its call.
    called: bool,
    /// Whether the request has ended with a reply that was taken, so that nothing is left to close.
    spent: bool,
}

/// What the client is told when a subscription's result comes before its acknowledgement.
const NOT_ACKNOWLEDGED: &str = "the subscription was not acknowledged before its result";

/// What the response is to be.
#[derive(Debug)]
pub(crate) enum Decided {
    Single(FinalReply),
    Stream,
}

/// What becomes of a response that the handler made without its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// The channel had ended before. Its reply is sent, with the headers of this response.
    AfterEnd,
    /// Its body is to be the last event of the open stream.
    LastEvent,
    /// It is sent as it is.
    Untouched,
}

/// What the body of a stream gets.
#[derive(Debug)]
pub(crate) enum Step {
    /// Bytes for the client. `rest` follows at once. `flush` is true when the server is to write
    /// them before it asks for more.
    Bytes {
        bytes: Bytes,
        rest: Option<Bytes>,
        flush: bool,
    },
    /// Nothing yet. The waker is woken when there is something. `ended` is true when the channel
    /// has ended and only the handler's return is still to come.
    Wait { ended: bool },
    /// Everything was handed out.
    Done,
}

impl Outlet {
    /// Makes the channel of a request. When the handler is about to be called and then polled,
    /// `polling` is the time of that call; this spares the first poll a lock.
    pub(crate) fn new(info: Info, streamable: bool, polling: Option<Instant>) -> Self {
        Self {
            shared: Shared::new(info, streamable, polling),
            called: polling.is_some(),
            spent: false,
        }
    }

    /// What both ends share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes what was sent on the stream since the last call: one or more whole events. None when
    /// nothing was.
    pub fn try_next(&mut self) -> Option<Bytes> {
        let mut inner = self.shared.lock();
        let (bytes, rest) = inner.take()?;
        let freed = inner.freed();
        drop(inner);
        freed.into_iter().for_each(Freed::wake);
        Some(match rest {
            None => bytes,
            Some(rest) => [bytes, rest].concat().into(),
        })
    }

    /// Takes the final reply, with its HTTP status, when it came before anything opened the stream.
    pub fn try_reply(&mut self) -> Option<(StatusCode, Bytes)> {
        let reply = self.shared.lock().output.take_reply()?;
        Some((reply.status, reply.json.into_bytes()))
    }

    /// To be called before the handler is polled.
    pub(crate) fn begin_poll(&mut self) {
        if !std::mem::take(&mut self.called) {
            let now = Instant::now();
            self.shared.lock().begin_poll(now);
        }
    }

    /// Decides what the response is to be, after the handler was polled. The waker is woken when
    /// that changes.
    ///
    /// With `stream_only`, a reply with status 200 becomes the only event of a stream. An error
    /// with another status stays a single reply, since the status says something.
    pub(crate) fn poll_decided(&mut self, waker: &Waker, stream_only: bool) -> Poll<Decided> {
        let mut inner = self.shared.lock();
        inner.end_poll();
        match inner.state.head() {
            Head::Stream => Poll::Ready(Decided::Stream),
            Head::Single => {
                let reply = inner.output.take_reply();
                let poller = inner.forget_poller();
                drop(inner);
                drop(poller);
                // No sequence of events should leave an ended request without a reply.
                let reply = reply.unwrap_or_else(|| self.shared.failure("there is no reply"));
                if stream_only && reply.status == StatusCode::OK {
                    self.shared.lock().stream_reply(Some(reply));
                    return Poll::Ready(Decided::Stream);
                }
                self.spent = true;
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
        if let Some((bytes, rest)) = inner.take() {
            let flush = inner.is_drained() && std::mem::take(&mut inner.flush);
            let freed = inner.freed();
            drop(inner);
            freed.into_iter().for_each(Freed::wake);
            return Step::Bytes { bytes, rest, flush };
        }
        if inner.state.is_done() {
            return Step::Done;
        }
        let ended = inner.state.ended().is_some();
        let stale = inner.wait(waker);
        let quiet = inner.output.frames().map(Outgoing::release);
        drop(inner);
        drop((stale, quiet));
        Step::Wait { ended }
    }

    /// To be called when the handler has failed. If nothing was sent, closes the channel and
    /// returns true. Otherwise returns false, and the failure has to be sent on the channel.
    pub(crate) fn close_unused(&self) -> bool {
        let inner = self.shared.lock();
        let unused = !inner.state.is_streaming() && inner.state.ended().is_none();
        if unused {
            let _ = self.shared.end(inner, CloseReason::Closed, None);
        }
        unused
    }

    /// Whether somebody else still has an open handle.
    pub(crate) fn has_handles(&self) -> bool {
        self.shared.has_handles()
    }

    /// To be called when the handler has returned a response of its own. From then on the channel
    /// takes nothing more.
    ///
    /// Both happen under one lock. Otherwise a task could send a message that nobody will see, or a
    /// reply beside this response.
    pub(crate) fn returned(&self) -> Returned {
        let mut inner = self.shared.lock();
        let streaming = inner.state.is_streaming();
        if inner.state.ended().is_some() {
            inner.state.handler_returned();
            return Returned::AfterEnd;
        }
        if streaming {
            // The response still has to become the last event.
            let _ = self.shared.end(inner, CloseReason::Replied, None);
            return Returned::LastEvent;
        }
        inner.state.handler_returned();
        let _ = self.shared.end(inner, CloseReason::Closed, None);
        Returned::Untouched
    }

    /// Opens the stream because the reply is late. If there is a reply already, it is the only
    /// event.
    pub(crate) fn open_stream(&self) {
        let mut inner = self.shared.lock();
        let reply = inner.output.take_reply();
        let spent = inner.stream_reply(reply);
        drop(inner);
        drop(spent);
    }

    /// The status of the final reply that waits for the handler to return.
    pub(crate) fn reply_status(&self) -> Option<StatusCode> {
        self.shared.lock().output.reply().map(|reply| reply.status)
    }

    /// An error, encoded as the reply to the request.
    pub(crate) fn error(&self, error: &RpcError) -> FinalReply {
        self.shared.error(error)
    }

    /// Ends the request with the result that the handler returned, unless it has ended.
    pub(crate) fn reply_result(&self, json: &[u8]) {
        let admitted = self.shared.admit(Frame::Result);
        match admitted.and_then(|()| self.shared.encoded_result(json)) {
            Ok(reply) => self.reply(reply),
            Err(error) if error.is_closed() => too_late(),
            Err(error) if error.is_not_acknowledged() => {
                crate::trace::error!("the handler returned a result before its acknowledgement");
                self.fail(NOT_ACKNOWLEDGED);
            }
            Err(error) => {
                crate::trace::error!(%error, "the handler returned a result that is no JSON object: its client gets an internal error");
                self.fail("the result is no JSON object");
            }
        }
    }

    /// Ends the request with an error, unless it has ended.
    pub(crate) fn reply_error(&self, error: &RpcError) {
        self.reply(self.shared.error(error));
    }

    fn reply(&self, reply: FinalReply) {
        let inner = self.shared.lock();
        if self
            .shared
            .end(inner, CloseReason::Replied, Some(reply))
            .is_err()
        {
            too_late();
        }
    }

    /// Ends the request with an internal error, unless it has ended.
    pub(crate) fn fail(&self, message: &'static str) {
        // An error means that the first reply stands.
        let _ = self.shared.fail(self.shared.lock(), message);
    }

    /// Sends the last event after [`Returned::LastEvent`].
    pub(crate) fn send_last(&self, json: &[u8]) {
        self.shared.lock().append_last(json);
    }

    /// As [`send_last`](Self::send_last), for a JSON-RPC response that the handler wrote. For a
    /// subscription, a result gets the subscription id, and has to come after the acknowledgement.
    pub(crate) fn send_last_response(&self, mut json: Vec<u8>) {
        if let Some(translated) = self.translated(&json) {
            return self.send_last(&translated);
        }
        if let Some(id) = self.request_id().filter(|_| self.shared.info.subscription) {
            // It was scanned when it was found to be a response, so it scans again.
            let result = handmade::stamp_result(&mut json, id).unwrap_or_default();
            if result && !self.shared.lock().state.is_acknowledged() {
                crate::trace::error!("the handler returned a result before its acknowledgement");
                return self.fail_last(NOT_ACKNOWLEDGED);
            }
        }
        self.send_last(&json);
    }

    /// What becomes of a response that a handler wrote by itself, for a client that is not modern.
    /// None when it stays as it is.
    pub(crate) fn translated(&self, json: &[u8]) -> Option<Vec<u8>> {
        let info = &self.shared.info;
        if info.form == Form::Modern {
            return None;
        }
        let text = std::str::from_utf8(json).ok()?;
        let server_info = info.options.server_info.as_deref();
        legacy::translated(text, info.id.as_ref()?, info.form, server_info)
    }

    /// The form in which the request is answered.
    pub(crate) fn form(&self) -> Form {
        self.shared.info.form
    }

    /// Sends an internal error as the last event after [`Returned::LastEvent`].
    pub(crate) fn fail_last(&self, message: &'static str) {
        let failure = self.shared.failure(message);
        self.send_last(&failure.json.0);
    }

    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        self.shared.info.id.as_ref()
    }

    /// To be called when the handler has returned and everything that it held was dropped.
    pub(crate) fn handler_returned(&self, deferred: bool) {
        self.shared.handler_returned(deferred);
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if self.spent {
            return;
        }
        let left = self.shared.lock().disconnect();
        if let Some((wakers, unsent)) = left {
            wakers.into_iter().for_each(Waker::wake);
            drop(unsent);
        }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}

fn too_late() {
    crate::trace::warn!(
        "the handler returned a reply after its request had ended: the first one stands"
    );
}
