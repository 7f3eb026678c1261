//! What the handles of a channel and the side that writes the response have in common.
//!
//! One lock guards it. Nothing of a user runs under that lock: values are encoded before it is
//! taken, wakers are woken and dropped after it was released.

use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use http::StatusCode;
use serde::Serialize;

use super::inner::{FinalReply, Inner, Sent};
use super::scratch::Scratch;
use super::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, lock};
use super::values::Values;
use super::waiters::{Event, Ticket};
use crate::error::{CloseReason, SendError};
use crate::protocol::id::RequestId;
use crate::protocol::meta::RequestMeta;
use crate::protocol::progress::{Progress, ProgressNumber};
use crate::protocol::result::Stamps;
use crate::protocol::rpc_error::RpcError;
use crate::protocol::{result, sse};
use crate::state::{Frame, State};

/// What is known of the request; never changes.
#[derive(Debug)]
pub(crate) struct Info {
    pub(crate) id: Option<RequestId>,
    pub(crate) meta: RequestMeta,
    pub(crate) values: Values,
    pub(crate) server_info: Option<StdArc<str>>,
    pub(crate) buffer_limit: usize,
    pub(crate) subscription: bool,
}

pub(crate) struct Shared {
    pub(crate) info: Info,
    /// Open handles. Apart from the lock, so that cloning one is cheap.
    handles: AtomicUsize,
    inner: Mutex<Inner>,
}

/// What goes into the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    /// Encoded under the lock, into the bytes that go to the socket: it runs no code of a user.
    Progress(&'a Progress<'a>),
    /// Encoded before.
    Json {
        frame: Frame,
        json: &'a [u8],
        /// The amount, when it is a progress notification.
        progress: Option<f64>,
    },
}

impl Shared {
    pub(crate) fn new(info: Info, streamable: bool) -> Arc<Self> {
        let mut state = State::new(streamable, info.subscription);
        if info.id.is_none() {
            // Nothing can be sent for a notification.
            let _ = state.end(CloseReason::Closed);
        }
        Arc::new(Self {
            info,
            handles: AtomicUsize::new(0),
            inner: Mutex::new(Inner::new(state)),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle is gone. The last one, once the handler has returned, fails the request.
    pub(crate) fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let inner = self.lock();
            if inner.state.is_deferred() {
                self.abandon(inner);
            }
        }
    }

    /// The handler returned, and dropped its handles; `deferred` when a task has one.
    pub(crate) fn handler_returned(&self, deferred: bool) {
        let mut inner = self.lock();
        inner.state.handler_returned(deferred);
        if deferred && self.handles.load(Ordering::Acquire) == 0 {
            self.abandon(inner);
        } else if !deferred {
            // A clone that lives on in a task is of no use any more. An error means that it is so.
            let _ = self.end(inner, CloseReason::Closed, None);
        }
    }

    fn abandon(&self, inner: MutexGuard<'_, Inner>) {
        if inner.state.ended().is_none() {
            crate::trace::error!("the last handle of the channel was dropped without a reply");
            self.fail(inner, "the handler dropped its channel without a reply");
        }
    }

    /// Ends the request with an internal error, unless it has ended.
    pub(crate) fn fail(&self, inner: MutexGuard<'_, Inner>, message: &'static str) {
        let _ = self.end(inner, CloseReason::Replied, Some(self.failure(message)));
    }

    pub(crate) fn failure(&self, message: &'static str) -> FinalReply {
        self.error(&RpcError::internal(message).with_status(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// An error as this request's reply.
    pub(crate) fn error(&self, error: &RpcError) -> FinalReply {
        let mut json = Scratch::take();
        error.write_response(self.info.id.as_ref(), &mut json.0);
        FinalReply {
            status: error.status(),
            retry_after: error.retry_after(),
            json,
        }
    }

    /// A result as this request's reply.
    pub(crate) fn result(&self, result: &impl Serialize) -> Result<FinalReply, SendError> {
        self.result_of(|out| sse::encode(out, result))
    }

    /// A result that is in wire form already.
    pub(crate) fn encoded_result(&self, json: &[u8]) -> Result<FinalReply, SendError> {
        self.result_of(|out| {
            out.extend_from_slice(json);
            Ok(())
        })
    }

    fn result_of(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<FinalReply, SendError> {
        let Some(id) = &self.info.id else {
            return Err(SendError::CLOSED);
        };
        let stamps = Stamps {
            server_info: self.info.server_info.as_deref(),
            subscription: self.info.subscription,
        };
        let mut json = Scratch::take();
        result::write_response(&mut json.0, id, stamps, write).map_err(SendError::invalid)?;
        Ok(FinalReply {
            status: StatusCode::OK,
            retry_after: None,
            json,
        })
    }

    /// Ends the request, with its final reply when there is one. The first end is the end.
    pub(crate) fn end(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        reason: CloseReason,
        reply: Option<FinalReply>,
    ) -> Result<(), SendError> {
        inner.state.end(reason)?;
        let spent = reply.and_then(|reply| {
            if inner.state.is_streaming() {
                inner.outgoing.append_last(&reply.json.0);
                return Some(reply);
            }
            inner.reply = Some(reply);
            None
        });
        let waiters = inner.waiters.take_all();
        let poller = inner.wake_poller();
        let guard = inner.guard.take();
        drop(inner);
        drop((spent, guard));
        waiters.into_iter().chain(poller).for_each(Waker::wake);
        Ok(())
    }

    /// Ends the response without a reply of the handler's.
    pub(crate) fn close(&self) -> Result<(), SendError> {
        let inner = self.lock();
        let reply = if !inner.state.is_streaming() {
            Some(self.failure("the channel was closed without a reply"))
        } else if self.info.subscription {
            self.encoded_result(b"{}").ok()
        } else {
            None
        };
        self.end(inner, CloseReason::Closed, reply)
    }

    /// Puts an item into the queue, or the waiter into the line when there is no room. Without a
    /// waiter it is refused then. Once this is ready, a waiter has to [`leave`](Self::leave).
    pub(crate) fn send(
        &self,
        item: Item<'_>,
        waiter: Option<(&mut Ticket, &Context<'_>)>,
    ) -> Poll<Result<Sent, SendError>> {
        let mut inner = self.lock();
        let (frame, progress) = match item {
            Item::Progress(progress) => (Frame::Progress, Some(progress.progress)),
            Item::Json {
                frame, progress, ..
            } => (frame, progress.map(ProgressNumber::from)),
        };
        if let Err(refusal) = inner.state.admit(frame) {
            return Poll::Ready(Err(refusal.into()));
        }
        let token = self.info.meta.progress_token();
        if progress.is_some() && token.is_none() {
            return Poll::Ready(Err(SendError::NO_PROGRESS_TOKEN));
        }
        if let (Some(now), Some(last)) = (progress, inner.progress) {
            if !now.is_more_than(last) {
                return Poll::Ready(Ok(Sent::Done));
            }
        }

        let limit = self.info.buffer_limit;
        let queued = match &waiter {
            Some((ticket, _)) => inner.waiters.goes_first(ticket),
            None => inner.waiters.goes_first(&Ticket::default()),
        } && inner.outgoing.append(limit, |out| match (item, token) {
            (Item::Progress(progress), Some(token)) => progress.append_event(out, token),
            (Item::Progress(_), None) => {}
            (Item::Json { json, .. }, _) => sse::append_event(out, json),
        });
        if !queued {
            let Some((ticket, cx)) = waiter else {
                return Poll::Ready(Err(SendError::FULL));
            };
            let stale = inner.waiters.wait(ticket, Event::Room, cx.waker());
            drop(inner);
            drop(stale);
            return Poll::Pending;
        }
        inner.progress = progress.or(inner.progress);
        inner.state.accepted(frame);
        let sent = inner.budget_spent();
        let poller = inner.wake_poller();
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(sent))
    }

    /// Whether a frame of this kind may be sent now, before it is encoded.
    pub(crate) fn admit(&self, frame: Frame) -> Result<(), SendError> {
        Ok(self.lock().state.admit(frame)?)
    }

    /// As [`admit`](Self::admit), for what goes through `send_notification`.
    pub(crate) fn admit_notification(&self, frame: Frame) -> Result<(), SendError> {
        let inner = self.lock();
        inner.state.admit(frame)?;
        // Progress and log records end in silence for a client that takes only JSON; whoever sends
        // them as notifications is told.
        Ok(inner.state.admit_stream()?)
    }

    pub(crate) fn start_stream(&self) -> Result<(), SendError> {
        let mut inner = self.lock();
        inner.state.start_stream()?;
        let poller = inner.wake_poller();
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        Ok(())
    }
}
