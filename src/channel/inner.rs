//! What the lock of a channel guards.

use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::outgoing::Outgoing;
use super::scratch::Scratch;
use super::waiters::{Event, Waiters};
use crate::error::{CloseReason, SendError};
use crate::protocol::progress::ProgressNumber;
use crate::state::{Refusal, State};

/// For how long a handler may keep its thread before a send that is awaited gives way, so that the
/// server can write what was sent.
const POLL_BUDGET: Duration = Duration::from_millis(1);

pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) outgoing: Outgoing,
    /// The final reply, kept back until it is known what the response is to be.
    pub(crate) reply: Option<FinalReply>,
    pub(super) progress: Option<ProgressNumber>,
    pub(super) waiters: Waiters,
    /// Dropped when the channel ends.
    pub(super) guard: Option<Box<dyn Send + Sync>>,
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
    pub(crate) retry_after: Option<Duration>,
    pub(crate) json: Scratch,
}

/// Who can go on because bytes were handed out.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    room: Option<Waker>,
    flushed: Vec<Waker>,
}

impl Freed {
    /// To be called after unlocking.
    pub(crate) fn wake(self) {
        self.room.into_iter().for_each(Waker::wake);
        self.flushed.into_iter().for_each(Waker::wake);
    }
}

/// What nobody will read.
pub(crate) struct Unsent {
    _outgoing: Outgoing,
    _reply: Option<FinalReply>,
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

impl Inner {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            outgoing: Outgoing::default(),
            reply: None,
            progress: None,
            waiters: Waiters::default(),
            guard: None,
            poller: None,
            polling: None,
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

    /// The bytes that the server gets next, in one piece or two, and whom that frees.
    pub(crate) fn take(&mut self) -> Option<(Bytes, Option<Bytes>, Freed)> {
        let (bytes, rest) = self.outgoing.take(self.state.is_acknowledged())?;
        let mut freed = Freed::default();
        if !self.waiters.is_empty() {
            freed.room = self.waiters.next_for_room();
            freed.flushed = self.waiters.all(Event::Flushed);
        }
        Some((bytes, rest, freed))
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
        self.outgoing.append_last(json, keyed);
    }

    /// The channel ends because nobody reads any more. Whom to wake and what to drop, after
    /// unlocking; None when it has ended and nothing is left.
    pub(crate) fn disconnect(&mut self) -> Option<(Vec<Waker>, Unsent)> {
        if self.state.end(CloseReason::Disconnected).is_err()
            && self.outgoing.is_unused()
            && self.reply.is_none()
            && self.waiters.is_empty()
            && self.poller.is_none()
        {
            return None;
        }
        let unsent = Unsent {
            _outgoing: std::mem::take(&mut self.outgoing),
            _reply: self.reply.take(),
            _poller: self.poller.take(),
            _guard: self.guard.take(),
        };
        Some((self.waiters.take_all(), unsent))
    }

    /// Looks at the clock on the 1st, 2nd, 4th, 8th … send of a poll, so that bursts pay nothing.
    pub(super) fn budget_spent(&mut self) -> Sent {
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
