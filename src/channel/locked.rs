//! What the lock of a channel guards.

use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::queue::{FinalReply, Output};
use super::waiters::{Event, Waiters};
use crate::error::{CloseReason, SendError};
use crate::protocol::notification::progress::ProgressNumber;
use crate::state::{Refusal, State};

/// For how long a handler may keep its thread before a send that is awaited gives way, so that the
/// server can write what was sent.
const POLL_BUDGET: Duration = Duration::from_millis(1);

pub(crate) struct Locked {
    pub(crate) state: State,
    pub(crate) output: Output,
    pub(super) progress: Option<ProgressNumber>,
    pub(super) waiters: Waiters,
    /// Dropped when the channel ends.
    pub(super) guard: Option<Box<dyn Send + Sync>>,
    /// Whoever writes the response, when it found nothing to do.
    poller: Option<Waker>,
    /// Since when the handler is being called or polled. The poller looks at the queue right after,
    /// so it needs no wake.
    polling: Option<Instant>,
    /// How often something was sent meanwhile. Begins anew when it overflows.
    sends: u16,
    /// The server is to write what it has before it asks for more.
    pub(crate) flush: bool,
}

/// Who can go on because bytes were handed out.
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

/// What nobody will read.
pub(crate) struct Unsent {
    _output: Output,
    _poller: Option<Waker>,
    _guard: Option<Box<dyn Send + Sync>>,
}

/// What an awaited send does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Goes on.
    Done,
    /// Gives way once.
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

    /// The waker of whoever writes the response, unless it will look by itself.
    pub(crate) fn wake_poller(&mut self) -> Option<Waker> {
        if self.polling.is_some() {
            return None;
        }
        self.poller.take()
    }

    /// The handler is about to be polled.
    pub(crate) fn begin_poll(&mut self, now: Instant) {
        self.polling = Some(now);
        self.sends = 0;
    }

    /// The handler has been polled. Every send from now on wakes the waker of
    /// [`wait`](Self::wait).
    pub(crate) fn end_poll(&mut self) {
        self.polling = None;
    }

    /// Nothing will be sent any more, so nobody is to be woken. The waker is to be dropped after
    /// unlocking.
    pub(crate) fn forget_poller(&mut self) -> Option<Waker> {
        self.poller.take()
    }

    /// Has `waker` woken by the next send. The one that it replaces is to be dropped after
    /// unlocking.
    pub(crate) fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        match &self.poller {
            Some(current) if current.will_wake(waker) => None,
            _ => self.poller.replace(waker.clone()),
        }
    }

    /// The bytes that the server gets next, in one piece or two. [`freed`](Self::freed) tells whom
    /// that frees.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Bytes, Option<Bytes>)> {
        let keyed = self.state.is_acknowledged();
        self.output.frames()?.take(keyed)
    }

    /// Who can go on after bytes were taken, to be woken after unlocking.
    #[inline]
    pub(crate) fn freed(&self) -> Option<Freed> {
        (!self.waiters.is_empty()).then(|| Freed {
            room: self.waiters.next_for_room(),
            flushed: self.waiters.all(Event::Flushed),
        })
    }

    /// Whether nothing waits, keyed frames aside.
    pub(crate) fn is_drained(&mut self) -> bool {
        self.output.frames().is_none_or(|frames| frames.is_empty())
    }

    /// Opens the stream even after the final reply, which then is its one event. The reply comes
    /// back, to be dropped after unlocking.
    pub(crate) fn stream_reply(&mut self, reply: Option<FinalReply>) -> Option<FinalReply> {
        self.state.stream_reply();
        if let Some(reply) = &reply {
            self.append_last(&reply.json.0);
        }
        reply
    }

    /// Queues the last event, behind the keyed frames that may go out.
    pub(crate) fn append_last(&mut self, json: &[u8]) {
        let keyed = self.state.is_acknowledged();
        let frames = self.output.frames();
        debug_assert!(frames.is_some(), "a reply is taken before it is appended");
        if let Some(frames) = frames {
            frames.append_last(json, keyed);
        }
    }

    /// The channel ends because nobody reads any more. Whom to wake and what to drop, after
    /// unlocking; None when it has ended and nothing is left.
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

    /// Looks at the clock on the 1st, 2nd, 4th and every 8th send of a poll: a burst pays little, and
    /// a handler that slows down is noticed soon.
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
