//! Putting frames into the queue.

use std::task::{Context, Poll};

use super::inner::{Inner, Sent};
use super::shared::Shared;
use super::waiters::{Event, Ticket};
use crate::error::SendError;
use crate::protocol::progress::{Progress, ProgressNumber};
use crate::protocol::sse;
use crate::state::Frame;

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

impl Item<'_> {
    fn frame(&self) -> Frame {
        match self {
            Self::Progress(_) => Frame::Progress,
            Self::Json { frame, .. } => *frame,
        }
    }

    /// NaN and the infinities have no JSON; what was encoded has none of them.
    fn is_finite(&self) -> bool {
        match self {
            Self::Progress(progress) => progress.is_finite(),
            Self::Json { .. } => true,
        }
    }

    fn progress(&self) -> Option<ProgressNumber> {
        match self {
            Self::Progress(progress) => Some(progress.progress),
            Self::Json { progress, .. } => progress.map(ProgressNumber::from),
        }
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queued {
    Yes,
    /// There is no room for it yet.
    Full,
    /// It was not to be sent, and that is no error.
    Skipped,
}

impl Shared {
    /// Queues an item, or refuses it when there is no room.
    pub(crate) fn try_send(&self, item: Item<'_>) -> Result<(), SendError> {
        let mut inner = self.lock();
        let first = inner.waiters.goes_first(&Ticket::default());
        let queued = self.queue(&mut inner, item, first)?;
        if queued == Queued::Yes {
            inner.budget_spent();
        }
        let poller = inner.wake_poller();
        drop(inner);
        if let Some(poller) = poller {
            poller.wake();
        }
        match queued {
            Queued::Yes => Ok(()),
            Queued::Full => Err(SendError::FULL),
            Queued::Skipped => {
                skipped();
                Ok(())
            }
        }
    }

    /// Queues an item, or puts its sender into the line when there is no room. Once this is ready,
    /// the sender has to [`leave`](Self::leave) the line.
    pub(crate) fn poll_send(
        &self,
        item: Item<'_>,
        ticket: &mut Ticket,
        cx: &Context<'_>,
    ) -> Poll<Result<Sent, SendError>> {
        let mut inner = self.lock();
        let first = inner.waiters.goes_first(ticket);
        let sent = match self.queue(&mut inner, item, first)? {
            Queued::Yes => inner.budget_spent(),
            Queued::Skipped => {
                drop(inner);
                skipped();
                return Poll::Ready(Ok(Sent::Done));
            }
            Queued::Full => {
                let stale = inner.waiters.wait(ticket, Event::Room, cx.waker());
                drop(inner);
                drop(stale);
                return Poll::Pending;
            }
        };
        let poller = inner.wake_poller();
        drop(inner);
        if let Some(poller) = poller {
            poller.wake();
        }
        Poll::Ready(Ok(sent))
    }

    /// `first` says that nobody waits who came before.
    fn queue(&self, inner: &mut Inner, item: Item<'_>, first: bool) -> Result<Queued, SendError> {
        inner.state.admit(item.frame())?;
        let mut token = None;
        let progress = item.progress();
        if let Some(now) = progress {
            token = self.info.meta.progress_token();
            if token.is_none() {
                return Err(SendError::NO_PROGRESS_TOKEN);
            }
            if !item.is_finite() {
                return Err(SendError::invalid(
                    "progress and its total are finite numbers",
                ));
            }
            if inner.progress.is_some_and(|last| !now.is_more_than(last)) {
                return Ok(Queued::Skipped);
            }
        }
        let limit = self.info.options.buffer_limit;
        let Some(frames) = inner.output.frames() else {
            return Err(SendError::CLOSED);
        };
        let queued = first
            && frames.append(limit, |out| match (item, token) {
                (Item::Progress(progress), Some(token)) => progress.append_event(out, token),
                (Item::Progress(_), None) => {}
                (Item::Json { json, .. }, _) => sse::append_event(out, json),
            });
        if !queued {
            return Ok(Queued::Full);
        }
        if progress.is_some() {
            inner.progress = progress;
        }
        inner.state.accepted(item.frame());
        Ok(Queued::Yes)
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
}

fn skipped() {
    crate::trace::debug!("progress that does not increase is not sent");
}
