//! Puts a frame into the queue, if the protocol allows it and there is room.

use bytes::BytesMut;

use super::locked::Locked;
use super::shared::Shared;
use super::waiters::Ticket;
use crate::error::SendError;
use crate::protocol::id::ProgressToken;
use crate::protocol::notification::progress::{Progress, ProgressNumber};
use crate::protocol::reply::sse;
use crate::state::Frame;

/// What goes into the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    /// Encoded under the lock, into the bytes that go to the socket. No user code runs for that.
    Progress(&'a Progress<'a>),
    /// Encoded before the lock is taken.
    Json {
        frame: Frame,
        json: &'a [u8],
        /// The amount, when it is a progress notification.
        progress: Option<f64>,
    },
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    Yes,
    /// There is no room for it yet.
    Full,
    /// It is not sent, and that is not an error.
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

    /// `first` is true when no earlier sender waits.
    pub(super) fn queue(
        &self,
        inner: &mut Locked,
        item: Item<'_>,
        first: bool,
    ) -> Result<Queued, SendError> {
        match item {
            Item::Progress(progress) => {
                inner.state.admit(Frame::Progress)?;
                let token = self.progress_token()?;
                // JSON cannot express NaN and the infinities.
                if !progress.is_finite() {
                    return Err(SendError::invalid(
                        "progress and its total are finite numbers",
                    ));
                }
                let now = Some(progress.progress);
                self.append(inner, Frame::Progress, now, first, |out| {
                    progress.append_event(out, token);
                })
            }
            Item::Json {
                frame,
                json,
                progress,
            } => {
                inner.state.admit(frame)?;
                if progress.is_some() {
                    self.progress_token()?;
                }
                let now = progress.map(ProgressNumber::from);
                self.append(inner, frame, now, first, |out| sse::append_event(out, json))
            }
        }
    }

    fn progress_token(&self) -> Result<&ProgressToken, SendError> {
        let token = self.info.meta.progress_token();
        token.ok_or(SendError::NO_PROGRESS_TOKEN)
    }

    fn append(
        &self,
        inner: &mut Locked,
        frame: Frame,
        progress: Option<ProgressNumber>,
        first: bool,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<Queued, SendError> {
        if let (Some(now), Some(last)) = (progress, inner.progress)
            && !now.is_more_than(last)
        {
            return Ok(Queued::Skipped);
        }
        let Some(frames) = inner.output.frames() else {
            return Err(SendError::CLOSED);
        };
        if !first || !frames.append(self.info.options.buffer_limit, write) {
            return Ok(Queued::Full);
        }
        if progress.is_some() {
            inner.progress = progress;
        }
        inner.state.accepted(frame);
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
        // The state admits progress and log records for a client that takes only JSON: it has no
        // progress token and no log level, so they go nowhere. Sent as notifications, they are
        // refused.
        Ok(inner.state.admit_stream()?)
    }
}

pub(super) fn skipped() {
    crate::trace::debug!("progress that does not increase is not sent");
}
