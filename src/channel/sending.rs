//! A send that waits for room.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Channel;
use super::enqueue::Item;
use super::locked::Sent;
use super::waiters::Ticket;
use crate::error::SendError;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::notification::progress::Progress;
use crate::state::Frame;

/// Sends one message, and waits while the client reads more slowly than the handler writes.
///
/// Made by the `send_*` methods of a [`Channel`]. What is to be sent was encoded when it was made,
/// so this is `Send` whatever the message's type.
///
/// Gives way to the server once when the handler has kept its thread for more than a millisecond, as
/// is looked up every few sends, so that a handler that only computes is seen working.
///
/// # Cancel safety
///
/// A message is sent whole or not at all. Dropped before it was polled, or while it waits for room,
/// it is not sent and its place in line is given up.
///
/// One that is kept but not polled keeps its place, and every send behind it waits. So do not await
/// another send of the same channel while one is on hold, in the arm of a `select!` over `&mut send`
/// for instance: drop it first.
#[must_use = "nothing is sent unless this is awaited"]
pub struct Sending<'a> {
    channel: &'a Channel,
    step: Step<'a>,
    ticket: Ticket,
}

pub(super) enum Step<'a> {
    Progress(Progress<'a>),
    Json {
        frame: Frame,
        json: Scratch,
        progress: Option<f64>,
    },
    /// Decided before anything was to be sent.
    Decided(Result<(), SendError>),
    Yielded,
    Done,
}

impl Step<'_> {
    pub(super) fn item(&self) -> Option<Item<'_>> {
        match self {
            Self::Progress(progress) => Some(Item::Progress(progress)),
            Self::Json {
                frame,
                json,
                progress,
            } => Some(Item::Json {
                frame: *frame,
                json: &json.0,
                progress: *progress,
            }),
            _ => None,
        }
    }
}

impl<'a> Sending<'a> {
    #[inline]
    pub(super) fn new(channel: &'a Channel, step: Step<'a>) -> Self {
        Self {
            channel,
            step,
            ticket: Ticket::default(),
        }
    }
}

impl Future for Sending<'_> {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(item) = this.step.item() else {
            return match std::mem::replace(&mut this.step, Step::Done) {
                Step::Decided(result) => Poll::Ready(result),
                // Also when polled after its end, which is the caller's mistake and harms nobody.
                _ => Poll::Ready(Ok(())),
            };
        };
        let shared = &this.channel.shared;
        let sent = ready!(shared.poll_send(item, &mut this.ticket, cx));
        // However it ended, the next in line may go on. This one may be held on to.
        shared.leave(&mut this.ticket);
        this.step = Step::Done;
        if sent? == Sent::Yield {
            this.step = Step::Yielded;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Sending<'_> {
    #[inline]
    fn drop(&mut self) {
        self.channel.shared.leave(&mut self.ticket);
    }
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}
