//! [`Locked`]: the state that the lock of a channel guards.

use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::queue::{FinalReply, Output};
use super::waiters::{Event, Waiters};
use crate::error::{CloseReason, SendError};
use crate::protocol::notification::progress::ProgressNumber;
use crate::state::{Refusal, State};

/// How long a poll of the handler may last before an awaited send yields, so that the server can
/// write what was sent.
const POLL_BUDGET: Duration = Duration::from_millis(1);

pub(crate) struct Locked {
    pub(crate) state: State,
    pub(crate) output: Output,
    pub(super) progress: Option<ProgressNumber>,
    pub(super) waiters: Waiters,
    /// Dropped when the channel ends.
    pub(super) guard: Option<Box<dyn Send + Sync>>,
    /// The waker of the response, when it found nothing to do.
    poller: Option<Waker>,
    /// When the current call or poll of the handler began. The response looks at the queue right
    /// after it, so sends need not wake it.
    polling: Option<Instant>,
    /// How many messages were sent during that poll. It wraps around.
    sends: u16,
    /// Whether the server is to write what it has before it asks for more.
    pub(crate) flush: bool,
}

/// The waiters that can go on because bytes were handed out.
#[derive(Debug)]
pub(crate) struct Freed {
    room: Option<Waker>,
    flushed: Vec<Waker>,
}

impl Freed {
    /// To be called after unlocking.
    #[cold]
    pub(crate) fn wake(self) {
        self.room.into_iter().for_each(Waker::wake);
        self.flushed.into_iter().for_each(Waker::wake);
    }
}

/// What is left of a channel that nobody reads any more.
pub(crate) struct Unsent {
    _output: Output,
    _poller: Option<Waker>,
    _guard: Option<Box<dyn Send + Sync>>,
}

/// What an awaited send does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It completes.
    Done,
    /// It yields once.
    Yield,
}

impl Locked {
    pub(crate) fn new(state: State, polling: Option<Instant>) -> Self {
        Self {
            state,
            output: Output::default(),
            progress: None,
            waiters: Waiters::default(),
            guard: None,
            poller: None,
            polling,
            sends: 0,
            flush: false,
        }
    }

    /// Takes the waker of the response, unless the handler is being polled: then the response looks
    /// at the queue anyway.
    pub(crate) fn wake_poller(&mut self) -> Option<Waker> {
        if self.polling.is_some() {
            return None;
        }
        self.poller.take()
    }

    /// To be called before the handler is polled.
    pub(crate) fn begin_poll(&mut self, now: Instant) {
        self.polling = Some(now);
        self.sends = 0;
    }

    /// To be called after the handler was polled. From then on every send wakes the waker that
    /// [`wait`](Self::wait) was given.
    pub(crate) fn end_poll(&mut self) {
        self.polling = None;
    }

    /// Takes the waker of the response, since nothing more will be sent. It is to be dropped after
    /// unlocking.
    pub(crate) fn forget_poller(&mut self) -> Option<Waker> {
        self.poller.take()
    }

    /// Has the next send wake `waker`. Returns the waker that it replaces, to be dropped after
    /// unlocking.
    pub(crate) fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.poller {
            Some(current) if current.will_wake(waker) => None,
            _ => self.poller.replace(waker.clone()),
        }
    }

    /// Takes the bytes that the server gets next, in one piece or two. [`freed`](Self::freed) then
    /// says who can go on.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Bytes, Option<Bytes>)> {
        let keyed = self.state.is_acknowledged();
        self.output.frames()?.take(keyed)
    }

    /// The waiters that can go on after bytes were taken, to be woken after unlocking.
    #[inline]
    pub(crate) fn freed(&self) -> Option<Freed> {
        (!self.waiters.is_empty()).then(|| Freed {
            room: self.waiters.next_for_room(),
            flushed: self.waiters.all(Event::Flushed),
        })
    }

    /// Whether no frames wait, apart from keyed ones.
    pub(crate) fn is_drained(&mut self) -> bool {
        self.output.frames().is_none_or(|frames| frames.is_empty())
    }

    /// Opens the stream even after the final reply, which then is its only event. Returns the
    /// reply, to be dropped after unlocking.
    pub(crate) fn stream_reply(&mut self, reply: Option<FinalReply>) -> Option<FinalReply> {
        self.state.stream_reply();
        if let Some(reply) = &reply {
            self.append_last(&reply.json.0);
        }
        reply
    }

    /// Queues the last event, behind the keyed frames if the subscription was acknowledged.
    pub(crate) fn append_last(&mut self, json: &[u8]) {
        let keyed = self.state.is_acknowledged();
        let frames = self.output.frames();
        debug_assert!(frames.is_some(), "a reply is taken before it is appended");
        if let Some(frames) = frames {
            frames.append_last(json, keyed);
        }
    }

    /// Ends the channel because nobody reads any more. Returns what to wake and what to drop after
    /// unlocking, or None when it has ended and nothing is left.
    pub(crate) fn disconnect(&mut self) -> Option<(Vec<Waker>, Unsent)> {
        if self.state.end(CloseReason::Disconnected).is_err()
            && self.output.is_unused()
            && self.waiters.is_empty()
            && self.poller.is_none()
        {
            return None;
        }
        let unsent = Unsent {
            _output: std::mem::take(&mut self.output),
            _poller: self.poller.take(),
            _guard: self.guard.take(),
        };
        Some((self.waiters.take_all(), unsent))
    }

    /// Whether an awaited send has to yield now. The clock is read at the 1st, 2nd, 4th and every
    /// 8th send of a poll: a burst pays little for it, and a handler that slows down is noticed
    /// soon.
    pub(super) fn budget_spent(&mut self) -> Sent {
        let Some(since) = self.polling else {
            return Sent::Done;
        };
        self.sends = self.sends.wrapping_add(1);
        let looks = matches!(self.sends, 1 | 2 | 4) || self.sends.is_multiple_of(8);
        if looks && since.elapsed() > POLL_BUDGET {
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
