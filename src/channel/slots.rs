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
    queued: Bits,
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
            queued: Bits::default(),
        }
    }

    /// Puts the frame of `key`, or merges it with the one that waits. Whether it was put.
    ///
    /// Where all frames of a key are the same, `general` is None. Otherwise, when the one that
    /// waits has another tail, `general` takes its place: the tail that says what both say.
    pub(crate) fn put(&mut self, key: u32, tail: &Bytes, general: Option<&Bytes>) -> bool {
        if self.queued.set(key) {
            self.queue.push_back(Slot {
                key,
                tail: tail.clone(),
            });
            return true;
        }
        if let Some(general) = general {
            let waiting = self.queue.iter_mut().find(|slot| slot.key == key);
            if let Some(slot) = waiting.filter(|slot| slot.tail != tail) {
                slot.tail = general.clone();
            }
        }
        false
    }

    /// The next frame, as its two pieces.
    pub(crate) fn pop(&mut self) -> Option<(Bytes, Bytes)> {
        let slot = self.queue.pop_front()?;
        self.queued.clear(slot.key);
        Some((self.head.clone(), slot.tail))
    }
}

/// A set of small numbers; those below 64 cost no memory of their own.
#[derive(Debug, Default)]
struct Bits {
    low: u64,
    high: Vec<u64>,
}

impl Bits {
    /// Adds a number. Whether it was not there.
    fn set(&mut self, n: u32) -> bool {
        let word = self.word(n);
        let before = *word;
        *word |= 1 << (n % 64);
        before != *word
    }

    fn clear(&mut self, n: u32) {
        *self.word(n) &= !(1 << (n % 64));
    }

    fn word(&mut self, n: u32) -> &mut u64 {
        let Some(high) = (n as usize / 64).checked_sub(1) else {
            return &mut self.low;
        };
        if self.high.len() <= high {
            self.high.resize(high + 1, 0);
        }
        &mut self.high[high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn popped(slots: &mut Slots) -> Vec<String> {
        let text = |b: Bytes| String::from_utf8(b.to_vec()).unwrap();
        std::iter::from_fn(|| slots.pop())
            .map(|(head, tail)| text(head) + &text(tail))
            .collect()
    }

    #[test]
    fn one_of_each_key_waits_in_the_order_of_the_first() {
        let mut slots = Slots::new(tail("h:"));
        for (key, put) in [
            (2, true),
            (70, true),
            (2, false),
            (0, true),
            (70, false),
            (6400, true),
        ] {
            assert_eq!(slots.put(key, &tail("t"), None), put);
        }
        assert_eq!(popped(&mut slots).len(), 4);
        assert!(slots.put(2, &tail("again"), None));
        assert_eq!(popped(&mut slots), ["h:again"]);
    }

    #[test]
    fn different_frames_of_a_key_become_the_general_one() {
        let mut slots = Slots::new(tail(""));
        let general = tail("all");
        assert!(slots.put(1, &tail("a"), Some(&general)));
        assert!(!slots.put(1, &tail("a"), Some(&general)));
        assert!(slots.put(2, &tail("a"), Some(&general)));
        assert!(!slots.put(2, &tail("b"), Some(&general)));
        assert_eq!(popped(&mut slots), ["a", "all"]);
    }
}
