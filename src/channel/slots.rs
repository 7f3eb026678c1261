//! Keyed frames that stand for a level, not an edge: while one waits unsent, another of its key
//! adds nothing. So their memory is bounded by the number of keys, and none of them is ever lost.
//!
//! A frame is two pieces: the stream's own head, which names its subscription and was encoded once,
//! and the tail that all streams share. Handing one out copies and allocates nothing.

use std::collections::VecDeque;

use bytes::Bytes;

/// The unsent keyed frames of one stream, in the order of their first put.
#[derive(Debug)]
pub(crate) struct Slots {
    head: Bytes,
    queue: VecDeque<Slot>,
}

#[derive(Debug)]
struct Slot {
    key: u32,
    tail: Bytes,
}

impl Slots {
    pub(crate) fn new(head: Bytes) -> Self {
        Self {
            head,
            queue: VecDeque::new(),
        }
    }

    /// Puts the frame of `key`, or merges it with the one that waits.
    ///
    /// Where the one that waits has another tail, `general` takes its place: the frame that says
    /// what both of them say.
    pub(crate) fn put(&mut self, key: u32, tail: &Bytes, general: impl FnOnce() -> Bytes) -> bool {
        match self.queue.iter_mut().find(|slot| slot.key == key) {
            Some(slot) => {
                if slot.tail != tail {
                    slot.tail = general();
                }
                false
            }
            None => {
                self.queue.push_back(Slot {
                    key,
                    tail: tail.clone(),
                });
                true
            }
        }
    }

    /// The next frame, as its two pieces.
    pub(crate) fn pop(&mut self) -> Option<(Bytes, Bytes)> {
        let slot = self.queue.pop_front()?;
        Some((self.head.clone(), slot.tail))
    }
}
