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
    /// The keys under which a tail waits.
    order: VecDeque<u32>,
    /// The tail that waits under each key. Grows to the highest key that ever waited.
    tails: Vec<Option<Bytes>>,
}

/// What is allocated for more keys than this is given back when nothing waits.
const KEPT: usize = 64;

impl Slots {
    pub(crate) fn new(head: Bytes) -> Self {
        // A `Bytes` allocates at its first clone: now, so that handing a frame out never does.
        drop(head.clone());
        Self {
            head,
            order: VecDeque::new(),
            tails: Vec::new(),
        }
    }

    /// Puts the frame of `key`, or merges it with the one that waits. Whether it was put.
    ///
    /// Where all frames of a key are the same, `general` is None. Otherwise, when the one that
    /// waits has another tail, `general` takes its place: the tail that says what both say.
    pub(crate) fn put(&mut self, key: u32, tail: &Bytes, general: Option<&Bytes>) -> bool {
        let n = key as usize;
        if self.tails.len() <= n {
            self.tails.resize(n + 1, None);
        }
        match (&mut self.tails[n], general) {
            (waiting @ None, _) => {
                *waiting = Some(tail.clone());
                self.order.push_back(key);
                return true;
            }
            (Some(waiting), Some(general)) if waiting != tail => *waiting = general.clone(),
            _ => {}
        }
        false
    }

    /// The next frame, as its two pieces.
    pub(crate) fn pop(&mut self) -> Option<(Bytes, Bytes)> {
        let key = self.order.pop_front()?;
        let tail = self.tails[key as usize].take()?;
        if self.order.is_empty() && self.tails.len() > KEPT {
            self.tails = Vec::new();
            self.order = VecDeque::new();
        }
        Some((self.head.clone(), tail))
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
