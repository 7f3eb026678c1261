//! Waiting for something of a channel.

use std::task::{Context, Poll, Waker};

use super::shared::Shared;
use super::waiters::{Event, Ticket};
use crate::error::{CloseReason, SendError};

impl Shared {
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
        let frames = inner.output.frames();
        let (appended, handed_out) = frames.map_or((0, 0), |f| (f.appended(), f.handed_out()));
        if handed_out >= *target.get_or_insert(appended) {
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
    #[inline]
    pub(crate) fn leave(&self, ticket: &mut Ticket) {
        if !ticket.is_none() {
            self.leave_line(ticket);
        }
    }

    #[cold]
    fn leave_line(&self, ticket: &mut Ticket) {
        let mut inner = self.lock();
        let stale = inner.waiters.leave(ticket);
        let next = inner.waiters.next_for_room();
        drop(inner);
        drop(stale);
        next.into_iter().for_each(Waker::wake);
    }
}
