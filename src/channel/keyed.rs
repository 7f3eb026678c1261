//! Keyed frames: what subscriptions stand on.

use std::task::Waker;

use bytes::Bytes;

use super::shared::Shared;
use super::slots::Slots;

impl Shared {
    /// Has the stream take keyed frames.
    pub(crate) fn set_slots(&self, slots: Slots) {
        self.lock().outgoing.set_slots(slots);
    }

    /// Whether this is a subscription that still wants its acknowledgement.
    pub(crate) fn is_unacknowledged(&self) -> bool {
        self.lock().state.is_unacknowledged()
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

    /// Puts a keyed frame, or merges it with one that waits; see [`Slots::put`]. Never waits. False
    /// when the channel has ended.
    pub(crate) fn put_keyed(&self, key: u32, tail: &Bytes, general: Option<&Bytes>) -> bool {
        let mut inner = self.lock();
        if inner.state.ended().is_some() {
            return false;
        }
        let Some(slots) = inner.outgoing.slots() else {
            return false;
        };
        // One that is merged waits already, and whoever hands it out knows.
        let poller = if slots.put(key, tail, general) {
            inner.wake_poller()
        } else {
            None
        };
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        true
    }
}
