//! What is to be handed to the server: the bytes that wait, in their order.

use bytes::{BufMut, Bytes, BytesMut};

use super::slots::Slots;
use crate::protocol::sse;

/// The first allocation of a stream holds a few frames; a burst makes it grow.
const FIRST: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The rest of a frame of which the first piece was handed out.
    rest: Option<Bytes>,
    buffer: BytesMut,
    /// How many bytes have gone through the buffer, those that wait included.
    appended: u64,
    slots: Option<Box<Slots>>,
}

impl Outgoing {
    /// Appends what `write` writes, which is one whole event, or takes it back and returns false
    /// when more than `limit` bytes would wait then. One that finds nothing waiting always passes.
    pub(crate) fn append(&mut self, limit: usize, write: impl FnOnce(&mut BytesMut)) -> bool {
        let before = self.buffer.len();
        if before >= limit && before > 0 {
            return false;
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve(FIRST);
        }
        write(&mut self.buffer);
        if before > 0 && self.buffer.len() > limit {
            self.buffer.truncate(before);
            return false;
        }
        self.appended += (self.buffer.len() - before) as u64;
        true
    }

    /// Appends the last event, whatever waits: there is one per stream. Keyed frames go before it,
    /// where `keyed` allows them.
    pub(crate) fn append_last(&mut self, json: &[u8], keyed: bool) {
        let mut slots = self.slots.take().filter(|_| keyed);
        while let Some((head, tail)) = slots.as_mut().and_then(|slots| slots.pop()) {
            self.buffer.reserve(head.len() + tail.len());
            self.buffer.put_slice(&head);
            self.buffer.put_slice(&tail);
        }
        sse::append_event(&mut self.buffer, json);
    }

    /// What is handed out next. Keyed frames are held back until `keyed` allows them.
    pub(crate) fn take(&mut self, keyed: bool) -> Option<Bytes> {
        if let Some(rest) = self.take_rest() {
            return Some(rest);
        }
        if !self.buffer.is_empty() {
            return Some(self.buffer.split().freeze());
        }
        let (head, tail) = self.slots.as_mut().filter(|_| keyed)?.pop()?;
        self.rest = Some(tail);
        Some(head)
    }

    /// The second piece of a keyed frame, when the first was handed out.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
        self.rest.take()
    }

    /// Whether nothing waits, keyed frames aside.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_none() && self.buffer.is_empty()
    }

    /// Gives the buffer back; called while nothing waits.
    pub(crate) fn release(&mut self) -> BytesMut {
        debug_assert!(self.buffer.is_empty());
        std::mem::take(&mut self.buffer)
    }

    pub(crate) fn slots(&mut self) -> Option<&mut Slots> {
        self.slots.as_deref_mut()
    }

    pub(crate) fn set_slots(&mut self, slots: Option<Slots>) {
        self.slots = slots.map(Box::new);
    }

    /// How many bytes went through the buffer so far.
    pub(crate) fn appended(&self) -> u64 {
        self.appended
    }

    /// How many of them were handed out.
    pub(crate) fn handed_out(&self) -> u64 {
        self.appended - self.buffer.len() as u64
    }
}
