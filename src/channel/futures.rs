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
    /// A task learns from this that the client is gone. The handler itself is cancelled then. On a
    /// handle that was [closed by itself](Self::set_closed) it resolves at once, with
    /// [`CloseReason::Closed`].
    ///
    /// The guide on [disconnects](crate::guide::disconnects) says when a server notices one.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and made again at any time.
    pub fn closed(&self) -> Closed<'_> {
        Closed::new(self)
    }

    /// Waits until the server has taken everything that was sent so far, and has the server write
    /// it before it asks for more.
    ///
    /// This is rarely needed: a frame that is alone leaves at once. It is for a handler that sends
    /// and then blocks its thread.
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
/// The `send_*` methods of a [`Channel`] return it. Values are encoded when it is made, so it is
/// `Send` whatever the message's type.
///
/// It yields to the server once when the current poll of the handler has lasted for more than a
/// millisecond, so that the client of a handler that only computes still sees its messages. The
/// clock is read only every few sends.
///
/// # Cancel safety
///
/// A message is sent whole or not at all. When this is dropped before it was polled, or while it
/// waits for room, the message is not sent and its place in line is given up.
///
/// While this is kept but not polled, it keeps its place in line, and every send behind it waits.
/// So drop it before you await another send of the same channel, for instance in an arm of a
/// `select!` over `&mut send`.
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
    /// The outcome was known before anything was sent.
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
                // It has yielded, or it is polled after its end, which is the caller's mistake and
                // does no harm.
                _ => Poll::Ready(Ok(())),
            };
        };
        let shared = &this.channel.shared;
        let sent = ready!(shared.poll_send(item, &mut this.ticket, cx));
        // Whether it was sent or refused, the next in line may go on, even if this future is kept.
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

    /// Waits until everything up to `target` was handed out, and has the server write it. The first
    /// call sets `target` to the end of what is queued then.
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

    /// Takes a waiter out of its line. If it was the first in line for room, the next one is woken.
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
