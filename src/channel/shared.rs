//! What the handles of a channel and the side that writes the response have in common.
//!
//! One lock guards it. Nothing of a user runs under that lock: values are encoded before it is
//! taken, wakers are woken and dropped after it was released.

use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use tokio::time::Instant;

use super::outgoing::Outgoing;
use super::scratch::Scratch;
use super::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, lock};
use super::values::Values;
use super::waiters::{Event, Ticket, Waiters};
use crate::error::{CloseReason, SendError};
use crate::protocol::id::RequestId;
use crate::protocol::meta::RequestMeta;
use crate::protocol::progress::{Progress, ProgressNumber};
use crate::protocol::result::Stamps;
use crate::protocol::rpc_error::RpcError;
use crate::protocol::{result, sse};
use crate::state::{Frame, Refusal, State};

/// For how long a handler may keep its thread before a send that is awaited gives way, so that the
/// server can write what was sent.
const POLL_BUDGET: Duration = Duration::from_millis(1);

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

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) info: Info,
    /// Open handles. Apart from the lock, so that cloning one is cheap.
    handles: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) outgoing: Outgoing,
    /// The final reply, kept back until it is known what the response is to be.
    pub(crate) reply: Option<FinalReply>,
    progress: Option<ProgressNumber>,
    waiters: Waiters,
    /// Whoever writes the response, when it found nothing to do.
    poller: Option<Waker>,
    /// The handler is being polled. The poller looks at the queue right after, so it needs no wake.
    polling: Option<Polling>,
    /// The server is to write what it has before it asks for more.
    pub(crate) flush: bool,
}

#[derive(Debug)]
struct Polling {
    since: Instant,
    sends: u32,
}

/// A reply that is still to be sent as the one JSON of the response.
#[derive(Debug)]
pub(crate) struct FinalReply {
    pub(crate) status: StatusCode,
    pub(crate) json: Scratch,
}

/// What nobody will read.
#[derive(Debug)]
pub(crate) struct Unsent {
    _outgoing: Outgoing,
    _reply: Option<FinalReply>,
    _poller: Option<Waker>,
}

/// What an awaited send does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Goes on.
    Done,
    /// Gives way once.
    Yield,
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
            inner: Mutex::new(Inner {
                state,
                outgoing: Outgoing::default(),
                reply: None,
                progress: None,
                waiters: Waiters::default(),
                poller: None,
                polling: None,
                flush: false,
            }),
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
        drop(inner);
        drop(spent);
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
    /// waiter it is refused then.
    pub(crate) fn send(
        &self,
        item: Item<'_>,
        waiter: Option<(&mut Ticket, &Context<'_>)>,
    ) -> Poll<Result<Sent, SendError>> {
        let mut stale = None;
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
            stale = inner.waiters.wait(ticket, Event::Room, cx.waker());
            drop(inner);
            drop(stale);
            return Poll::Pending;
        }
        inner.progress = progress.or(inner.progress);
        inner.state.accepted(frame);
        let next = if let Some((ticket, _)) = waiter {
            stale = inner.waiters.leave(ticket);
            inner.waiters.next_for_room()
        } else {
            None
        };
        let sent = inner.budget_spent();
        let poller = inner.wake_poller();
        drop(inner);
        drop(stale);
        poller.into_iter().chain(next).for_each(Waker::wake);
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

    /// Puts a keyed frame, or merges it with one that waits.
    pub(crate) fn put_keyed(
        &self,
        key: u32,
        tail: &Bytes,
        general: impl FnOnce() -> Bytes,
    ) -> bool {
        let mut inner = self.lock();
        if inner.state.ended().is_some() {
            return false;
        }
        let Some(slots) = inner.outgoing.slots() else {
            return false;
        };
        // One that is merged waits already, and whoever hands it out knows.
        let poller = if slots.put(key, tail, general) {
            inner.wake_poller()
        } else {
            None
        };
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        true
    }

    /// Waits until the channel is closed.
    pub(crate) fn poll_closed(&self, ticket: &mut Ticket, cx: &Context<'_>) -> Poll<CloseReason> {
        let mut inner = self.lock();
        if let Some(reason) = inner.state.ended() {
            return Poll::Ready(reason);
        }
        let stale = inner.waiters.wait(ticket, Event::Closed, cx.waker());
        drop(inner);
        drop(stale);
        Poll::Pending
    }

    /// Waits until everything up to `target`, what waits now at first, was handed out, and has the
    /// server write it.
    pub(crate) fn poll_flushed(
        &self,
        target: &mut Option<u64>,
        ticket: &mut Ticket,
        cx: &Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        let mut inner = self.lock();
        if inner.state.ended().is_some() {
            return Poll::Ready(Err(SendError::CLOSED));
        }
        let target = *target.get_or_insert(inner.outgoing.appended());
        if inner.outgoing.handed_out() >= target {
            let stale = inner.waiters.leave(ticket);
            drop(inner);
            drop(stale);
            return Poll::Ready(Ok(()));
        }
        inner.flush = true;
        let stale = inner.waiters.wait(ticket, Event::Flushed, cx.waker());
        let poller = inner.wake_poller();
        drop(inner);
        drop(stale);
        poller.into_iter().for_each(Waker::wake);
        Poll::Pending
    }

    /// One that waited does not any more. When it was next in line for room, another is.
    pub(crate) fn leave(&self, ticket: &mut Ticket) {
        if ticket.is_none() {
            return;
        }
        let mut inner = self.lock();
        let stale = inner.waiters.leave(ticket);
        let next = inner.waiters.next_for_room();
        drop(inner);
        drop(stale);
        next.into_iter().for_each(Waker::wake);
    }
}

impl Inner {
    /// The waker of whoever writes the response, unless it will look by itself.
    pub(crate) fn wake_poller(&mut self) -> Option<Waker> {
        if self.polling.is_some() {
            return None;
        }
        self.poller.take()
    }

    /// The handler is about to be polled.
    pub(crate) fn begin_poll(&mut self, now: Instant) {
        self.polling = Some(Polling {
            since: now,
            sends: 0,
        });
    }

    /// The handler has been polled. Every send from now on wakes the waker of
    /// [`wait`](Self::wait).
    pub(crate) fn end_poll(&mut self) {
        self.polling = None;
    }

    /// Has `waker` woken by the next send. The one that it replaces is to be dropped after
    /// unlocking.
    pub(crate) fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.poller {
            Some(current) if current.will_wake(waker) => None,
            _ => self.poller.replace(waker.clone()),
        }
    }

    /// The bytes that the server gets next, and whom that gives room.
    pub(crate) fn take(&mut self) -> Option<(Bytes, Vec<Waker>)> {
        let bytes = self.outgoing.take(self.state.is_acknowledged())?;
        let mut wakers = Vec::new();
        if !self.waiters.is_empty() {
            wakers = self.waiters.all(Event::Flushed);
            wakers.extend(self.waiters.next_for_room());
        }
        Some((bytes, wakers))
    }

    /// The channel ends because nobody reads any more. Whom to wake and what to drop, after
    /// unlocking.
    pub(crate) fn disconnect(&mut self) -> (Vec<Waker>, Unsent) {
        let _ = self.state.end(CloseReason::Disconnected);
        let unsent = Unsent {
            _outgoing: std::mem::take(&mut self.outgoing),
            _reply: self.reply.take(),
            _poller: self.poller.take(),
        };
        (self.waiters.take_all(), unsent)
    }

    /// Looks at the clock on the 1st, 2nd, 4th, 8th … send of a poll, so that bursts pay nothing.
    fn budget_spent(&mut self) -> Sent {
        let Some(polling) = &mut self.polling else {
            return Sent::Done;
        };
        polling.sends += 1;
        if polling.sends.is_power_of_two() && polling.since.elapsed() > POLL_BUDGET {
            self.flush = true;
            return Sent::Yield;
        }
        Sent::Done
    }
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Closed => Self::CLOSED,
            Refusal::NotStreamable => Self::NOT_STREAMABLE,
            Refusal::NotAcknowledged => Self::NOT_ACKNOWLEDGED,
            Refusal::Misplaced(why) => Self::invalid(why),
        }
    }
}
