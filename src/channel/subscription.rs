//! What only the stream of a subscription has: keyed frames, which are put without waiting, and an
//! end from the server's side.

use std::task::Waker;

use super::coalescing::{Piece, Slots};
use super::queue::Outgoing;
use super::shared::Shared;
use crate::error::CloseReason;
use crate::protocol::reply::rpc_error::RpcError;

impl Shared {
    /// Has the stream of a subscription take keyed frames, which wait until it is acknowledged.
    /// Returns false when this is not a subscription, takes them already, was acknowledged or has
    /// ended.
    pub(crate) fn take_keyed(&self, slots: Slots) -> bool {
        let mut inner = self.lock();
        if !inner.state.is_unacknowledged() {
            return false;
        }
        let Some(frames) = inner.output.frames() else {
            return false;
        };
        let fresh = frames.slots().is_none();
        if fresh {
            frames.set_slots(Some(slots));
        }
        fresh
    }

    /// Undoes [`take_keyed`](Self::take_keyed).
    pub(crate) fn refuse_keyed(&self) {
        if let Some(frames) = self.lock().output.frames() {
            frames.set_slots(None);
        }
    }

    /// Ends a subscription from the server's side: with its completion result, or with `refusal`
    /// when it was not acknowledged. Does nothing when it has ended already.
    pub(crate) fn close_subscription(&self, refusal: &RpcError) {
        let inner = self.lock();
        if inner.state.ended().is_some() {
            return;
        }
        let (reason, reply) = if inner.state.is_acknowledged() {
            (CloseReason::Closed, self.encoded_result(b"{}").ok())
        } else {
            (CloseReason::Replied, Some(self.error(refusal)))
        };
        let _ = self.end(inner, reason, reply);
    }

    /// Keeps `guard` until the channel ends, and drops it then.
    pub(crate) fn on_end(&self, guard: Box<dyn Send + Sync>) {
        let mut inner = self.lock();
        if inner.state.ended().is_some() {
            drop(inner);
            drop(guard);
            return;
        }
        inner.guard = Some(match inner.guard.take() {
            Some(other) => Box::new((other, guard)),
            None => guard,
        });
    }

    /// Puts a keyed frame, or merges it with one that waits; see [`Slots::put`]. Never waits.
    /// Returns false when the channel has ended.
    pub(crate) fn put_keyed(&self, key: u32, shared: &Piece, general: Option<&Piece>) -> bool {
        let mut inner = self.lock();
        if inner.state.ended().is_some() {
            return false;
        }
        let Some(slots) = inner.output.frames().and_then(Outgoing::slots) else {
            return false;
        };
        // A frame that was merged waits already, and the response was woken for it.
        let poller = if slots.put(key, shared, general) {
            inner.wake_poller()
        } else {
            None
        };
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        true
    }
}
