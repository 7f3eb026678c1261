//! Keyed frames: at most one per key waits, and a further one of the same key is merged into it.
//!
//! So the memory is bounded by the number of keys, and no change is lost.
//!
//! A frame has two pieces: one that all streams share, and one of the stream's own, which names its
//! subscription and was encoded once. Handing out a frame copies and allocates nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

/// The piece of a frame that all streams share. A pointer, since each stream may keep very many.
pub(crate) type Piece = Arc<Bytes>;

/// The unsent keyed frames of one stream, in the order in which they were first put.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The stream's own piece, which ends each frame.
    own: Bytes,
    /// The frame that is handed out next. It is stored inline, because most of the time it is the
    /// only one.
    first: Option<Slot>,
    others: Option<Box<Others>>,
}

#[derive(Debug)]
struct Slot {
    key: u32,
    shared: Piece,
}

/// The frames behind the first.
#[derive(Debug, Default)]
struct Others {
    /// The keys of the waiting frames, in order.
    order: VecDeque<u32>,
    /// The shared piece of the frame that waits under each key. It grows to the highest key that
    /// ever waited.
    waiting: Vec<Option<Piece>>,
}

/// When nothing waits, an allocation for more keys than this is freed.
const KEPT: usize = 64;

impl Slots {
    pub(crate) fn new(own: Bytes) -> Self {
        // A `Bytes` allocates at its first clone. It is cloned here, so that handing out a frame
        // never allocates.
        drop(own.clone());
        Self {
            own,
            first: None,
            others: None,
        }
    }

    /// Puts a frame under `key`, or merges it with the one that waits there. Returns whether it was
    /// put.
    ///
    /// `general` is None where all frames of a key are the same. Elsewhere, when a different frame
    /// waits, `general` takes its place: it is the frame that covers both.
    pub(crate) fn put(&mut self, key: u32, shared: &Piece, general: Option<&Piece>) -> bool {
        let waiting = match &mut self.first {
            None => {
                let shared = Arc::clone(shared);
                self.first = Some(Slot { key, shared });
                return true;
            }
            Some(first) if first.key == key => &mut first.shared,
            Some(_) => {
                let others = self.others.get_or_insert_default();
                let n = key as usize;
                if others.waiting.len() <= n {
                    others.waiting.resize(n + 1, None);
                }
                let slot = &mut others.waiting[n];
                if slot.is_none() {
                    others.order.push_back(key);
                    *slot = Some(Arc::clone(shared));
                    return true;
                }
                slot.get_or_insert_default()
            }
        };
        if let Some(general) = general.filter(|_| *waiting != *shared) {
            *waiting = Arc::clone(general);
        }
        false
    }

    /// The next frame, as its two pieces.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Bytes, Bytes)> {
        let first = self.first.take()?;
        if let Some(others) = &mut self.others {
            self.first = others.pop();
            if self.first.is_none() && others.waiting.len() > KEPT {
                self.others = None;
            }
        }
        Some((Arc::unwrap_or_clone(first.shared), self.own.clone()))
    }
}

impl Others {
    fn pop(&mut self) -> Option<Slot> {
        let key = self.order.pop_front()?;
        let shared = self.waiting.get_mut(key as usize)?.take()?;
        Some(Slot { key, shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn piece(text: &'static str) -> Piece {
        Arc::new(bytes(text))
    }

    fn popped(slots: &mut Slots) -> Vec<String> {
        let text = |b: Bytes| String::from_utf8(b.to_vec()).unwrap();
        std::iter::from_fn(|| slots.pop())
            .map(|(shared, own)| text(shared) + &text(own))
            .collect()
    }

    #[test]
    fn one_of_each_key_waits_in_the_order_of_the_first() {
        let mut slots = Slots::new(bytes(":e"));
        for (key, put) in [
            (2, true),
            (70, true),
            (2, false),
            (0, true),
            (70, false),
            (6400, true),
        ] {
            assert_eq!(slots.put(key, &piece("t"), None), put);
        }
        assert_eq!(popped(&mut slots).len(), 4);
        assert!(slots.put(2, &piece("again"), None));
        assert_eq!(popped(&mut slots), ["again:e"]);
    }

    #[test]
    fn different_frames_of_a_key_become_the_general_one() {
        let mut slots = Slots::new(bytes(""));
        let general = piece("all");
        assert!(slots.put(1, &piece("a"), Some(&general)));
        assert!(!slots.put(1, &piece("a"), Some(&general)));
        assert!(slots.put(2, &piece("a"), Some(&general)));
        assert!(!slots.put(2, &piece("b"), Some(&general)));
        assert_eq!(popped(&mut slots), ["a", "all"]);
    }
}
