//! What waits to be handed to the server: frames in their order, or the single reply of a response
//! without frames.

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;

use super::coalescing::Slots;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::reply::sse;

/// The final reply, before it is known what the response is to be.
#[derive(Debug)]
pub(crate) struct FinalReply {
    pub(crate) status: StatusCode,
    /// In seconds.
    pub(crate) retry_after: Option<u32>,
    pub(crate) json: Scratch,
}

/// What waits: frames or a reply, never both. A reply on an open stream is one of the frames.
#[derive(Debug)]
pub(crate) enum Output {
    Frames(Outgoing),
    Reply(FinalReply),
}

impl Default for Output {
    fn default() -> Self {
        Self::Frames(Outgoing::default())
    }
}

impl Output {
    /// The frames, unless there is a reply in their place.
    #[inline]
    pub(crate) fn frames(&mut self) -> Option<&mut Outgoing> {
        match self {
            Self::Frames(frames) => Some(frames),
            Self::Reply(_) => None,
        }
    }

    pub(crate) fn reply(&self) -> Option<&FinalReply> {
        match self {
            Self::Frames(_) => None,
            Self::Reply(reply) => Some(reply),
        }
    }

    /// Takes the reply, which leaves room for frames.
    pub(crate) fn take_reply(&mut self) -> Option<FinalReply> {
        match std::mem::take(self) {
            Self::Reply(reply) => Some(reply),
            frames @ Self::Frames(_) => {
                *self = frames;
                None
            }
        }
    }

    /// Whether it holds no memory.
    pub(crate) fn is_unused(&self) -> bool {
        matches!(self, Self::Frames(frames) if frames.is_unused())
    }
}

/// The size of a stream's first allocation, in bytes. It holds a few frames; a burst makes it grow.
const FIRST: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    buffer: BytesMut,
    /// How many bytes have gone through the buffer, those that wait included.
    appended: u64,
    slots: Option<Box<Slots>>,
}

impl Outgoing {
    /// Appends one whole event, which `write` writes. When more than `limit` bytes would wait then,
    /// appends nothing and returns false. An event always fits when nothing else waits.
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

    /// Appends the last event without a limit, since there is only one per stream. With `keyed`,
    /// the keyed frames go before it; without, they are dropped.
    pub(crate) fn append_last(&mut self, json: &[u8], keyed: bool) {
        let mut slots = self.slots.take().filter(|_| keyed);
        while let Some((shared, own)) = slots.as_mut().and_then(|slots| slots.pop()) {
            self.buffer.reserve(shared.len() + own.len());
            self.buffer.put_slice(&shared);
            self.buffer.put_slice(&own);
        }
        sse::append_event(&mut self.buffer, json);
    }

    /// Takes what is handed out next: whole events, in one piece or two. Keyed frames are held back
    /// unless `keyed` is set.
    #[inline]
    pub(crate) fn take(&mut self, keyed: bool) -> Option<(Bytes, Option<Bytes>)> {
        if !self.buffer.is_empty() {
            return Some((self.buffer.split().freeze(), None));
        }
        let (shared, own) = self.slots.as_mut().filter(|_| keyed)?.pop()?;
        Some((shared, Some(own)))
    }

    /// Whether no frames wait, apart from keyed ones.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether it holds no memory.
    pub(crate) fn is_unused(&self) -> bool {
        self.buffer.capacity() == 0 && self.slots.is_none()
    }

    /// Takes the buffer out, so that its memory is freed. To be called while nothing waits.
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
