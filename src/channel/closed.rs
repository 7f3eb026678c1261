//! Waiting for the end of a channel, and for what was sent to be written.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Channel;
use super::waiters::Ticket;
use crate::error::{CloseReason, SendError};

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
