//! The waiting of a channel: [`Sending`] waits in line for room, [`Closed`] for the end, and [`Flush`]
//! until everything was handed to the server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::enqueue::{Item, Queued, skipped};
use super::handle::Channel;
use super::locked::Sent;
use super::shared::Shared;
use super::waiters::{Event, Ticket};
use crate::error::{CloseReason, SendError};
use crate::protocol::json::scratch::Scratch;
use crate::protocol::notification::progress::Progress;
use crate::state::Frame;

impl Channel {
    /// Waits until the channel is closed, and says why.
    ///
    /// The way for a task to notice that the client is gone; the handler itself is cancelled then.
    /// A handle that was closed alone resolves at once, with
    /// [`CloseReason::Closed`].
    ///
    /// The guide on [disconnects](crate::guide::disconnects) tells when a server notices one.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and made again at any time.
    pub fn closed(&self) -> Closed<'_> {
        Closed::new(self)
    }

    /// Waits until the server has been given what was sent so far, and has it write that before it
    /// asks for more.
    ///
    /// Rarely needed: a frame that is alone leaves at once. For a handler that sends and then keeps
    /// its thread.
    ///
    /// # Errors
    ///
    /// [`is_closed`](SendError::is_closed), as the future's output.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and made again at any time.
    pub fn flush(&self) -> Flush<'_> {
        Flush::new(self)
    }
}

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

/// Resolves when the channel is closed; see [`Channel::closed`].
///
/// # Cancel safety
///
/// It can be dropped and made again at any time.
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a> {
    channel: &'a Channel,
    ticket: Ticket,
}

impl<'a> Closed<'a> {
    pub(super) fn new(channel: &'a Channel) -> Self {
        Self {
            channel,
            ticket: Ticket::default(),
        }
    }
}

impl Future for Closed<'_> {
    type Output = CloseReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let this = self.get_mut();
        match this.channel.open() {
            Ok(shared) => shared.poll_closed(&mut this.ticket, cx),
            Err(_) => Poll::Ready(CloseReason::Closed),
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.channel.shared.leave(&mut self.ticket);
    }
}

impl fmt::Debug for Closed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

/// Resolves when what was sent has been handed to the server; see [`Channel::flush`].
///
/// # Cancel safety
///
/// It can be dropped and made again at any time.
#[must_use = "futures do nothing unless awaited"]
pub struct Flush<'a> {
    channel: &'a Channel,
    target: Option<u64>,
    ticket: Ticket,
}

impl<'a> Flush<'a> {
    pub(super) fn new(channel: &'a Channel) -> Self {
        Self {
            channel,
            target: None,
            ticket: Ticket::default(),
        }
    }
}

impl Future for Flush<'_> {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.channel.open() {
            Ok(shared) => shared.poll_flushed(&mut this.target, &mut this.ticket, cx),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        self.channel.shared.leave(&mut self.ticket);
    }
}

impl fmt::Debug for Flush<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flush").finish_non_exhaustive()
    }
}

impl Shared {
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
