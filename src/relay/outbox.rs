//! The changes that wait to be sent to the other nodes, each once, and those that come from them.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use serde::{Deserialize, Serialize};

use crate::channel::sync::{Arc, Mutex, lock};
use crate::subscriptions::{Change, Relay, Subscriptions};

/// Beyond this many changes, or this many bytes of URIs, "anything may have changed" replaces them.
const MOST_CHANGES: usize = 1024;
const MOST_BYTES: usize = 64 * 1024;
/// How many bytes of URIs go into one message, unless a single one is larger. Engines limit the
/// size of messages.
const MESSAGE_BYTES: usize = 4 * 1024;

/// The changes that a node has to send to the others: a [`Relay`] for any engine.
///
/// Handles are cheap to clone, and all clones share the same changes. Equal changes that wait are
/// merged into one. More than a thousand different ones, or URIs of more than 64 KiB, are replaced
/// by one that says "anything may have changed": every subscriber of the other nodes is then
/// notified of everything that it subscribed to. So the memory of a node that is cut off is
/// bounded, and nothing is lost.
///
/// See the [module](crate::relay) for how to build a relay with it.
#[derive(Clone)]
pub struct Outbox {
    /// The name by which this node recognizes its own messages.
    node: StdArc<str>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// In the order of arrival, each once.
    changes: VecDeque<StdArc<Change>>,
    known: HashSet<StdArc<Change>>,
    bytes: usize,
    /// Anything may have changed; then nothing else waits.
    anything: bool,
    sender: Option<Waker>,
}

/// A message between nodes.
#[derive(Debug, Serialize, Deserialize)]
struct Letter<N, C> {
    node: N,
    changes: C,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    anything: bool,
}

impl Outbox {
    /// An empty outbox, of a new node.
    #[must_use]
    pub fn new() -> Self {
        // Being random is enough: two nodes never share it.
        let random = || RandomState::new().hash_one("node");
        Self {
            node: format!("{:016x}{:016x}", random(), random()).into(),
            waiting: Arc::new(Mutex::new(Waiting::default())),
        }
    }

    /// Waits until there is something to send, and returns the next message for the other nodes:
    /// one JSON text of a few KiB at most, unless a single URI is larger.
    ///
    /// Only one task should wait at a time: of several, only the last one is woken.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn next(&self) -> Batch {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Batch> {
        let (changes, anything, stale) = {
            let mut waiting = lock(&self.waiting);
            let (changes, anything) = waiting.take();
            let mut stale = None;
            if changes.is_empty() && !anything {
                stale = waiting.sender.replace(cx.waker().clone());
            }
            (changes, anything, stale)
        };
        drop(stale);
        if changes.is_empty() && !anything {
            return Poll::Pending;
        }
        let letter = Letter {
            node: &*self.node,
            changes: changes.iter().map(|change| &**change).collect::<Vec<_>>(),
            anything,
        };
        Poll::Ready(Batch {
            json: to_json(&letter),
            changes,
            anything,
            outbox: self.clone(),
        })
    }

    /// A message without changes, to see whether messages get through.
    #[must_use]
    pub fn heartbeat(&self) -> String {
        to_json(&Letter {
            node: &*self.node,
            changes: [(); 0],
            anything: false,
        })
    }

    /// Notifies the subscribers of this node of the changes in a message from another node.
    /// Messages of this node itself are skipped. Returns whether it was one of those.
    ///
    /// A message that cannot be read is from a newer version, or not from this crate. Anything may
    /// have changed then.
    pub fn receive(&self, message: &[u8], subscriptions: &Subscriptions) -> bool {
        match serde_json::from_slice::<Letter<String, Vec<Change>>>(message) {
            Ok(letter) if *letter.node == *self.node => return true,
            Ok(letter) if letter.anything => subscriptions.deliver_all(),
            Ok(letter) => letter.changes.iter().for_each(|change| {
                subscriptions.deliver(change);
            }),
            Err(error) => {
                crate::trace::debug!(%error, "another node's message is not understood");
                subscriptions.deliver_all();
            }
        }
        false
    }

    fn put(&self, changes: impl Iterator<Item = StdArc<Change>>, anything: bool) {
        let sender = {
            let mut waiting = lock(&self.waiting);
            if anything {
                waiting.give_up();
            }
            changes.for_each(|change| waiting.add(change));
            waiting.sender.take()
        };
        sender.into_iter().for_each(Waker::wake);
    }
}

impl Relay for Outbox {
    fn publish(&self, change: &Change) {
        self.put(std::iter::once(StdArc::new(change.clone())), false);
    }
}

impl Waiting {
    fn add(&mut self, change: StdArc<Change>) {
        if self.anything || !self.known.insert(StdArc::clone(&change)) {
            return;
        }
        self.bytes += size(&change);
        self.changes.push_back(change);
        if self.changes.len() > MOST_CHANGES || self.bytes > MOST_BYTES {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let sender = self.sender.take();
        *self = Self {
            anything: true,
            sender,
            ..Self::default()
        };
    }

    /// Takes what goes into one message.
    fn take(&mut self) -> (Vec<StdArc<Change>>, bool) {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(change) = self.changes.front() {
            bytes += size(change);
            if bytes > MESSAGE_BYTES && !taken.is_empty() {
                break;
            }
            let Some(change) = self.changes.pop_front() else {
                break;
            };
            self.known.remove(&change);
            self.bytes -= size(&change);
            taken.push(change);
        }
        (taken, std::mem::take(&mut self.anything))
    }
}

/// About how many bytes a change has as JSON.
fn size(change: &Change) -> usize {
    match change {
        Change::Resource(uri) => uri.len() + 16,
        _ => 16,
    }
}

fn to_json(letter: &impl Serialize) -> String {
    // Strings and booleans always serialize.
    serde_json::to_string(letter).unwrap_or_default()
}

/// A message for the other nodes, with the changes in it.
///
/// Call [`sent`](Self::sent) when it was sent. If a batch is dropped before that, its changes go
/// back into the [`Outbox`], so that a failed send or a cancelled task loses none.
#[must_use = "a batch that is dropped goes back into its outbox"]
pub struct Batch {
    json: String,
    changes: Vec<StdArc<Change>>,
    anything: bool,
    outbox: Outbox,
}

impl Batch {
    /// The message: one JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.json
    }

    /// Says that the engine has taken the message.
    pub fn sent(mut self) {
        self.changes.clear();
        self.anything = false;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.anything || !self.changes.is_empty() {
            self.outbox.put(self.changes.drain(..), self.anything);
        }
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = lock(&self.waiting);
        f.debug_struct("Outbox")
            .field("node", &self.node)
            .field("changes", &waiting.changes.len())
            .field("anything", &waiting.anything)
            .finish()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Batch").field(&self.json).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(outbox: &Outbox) -> Option<Batch> {
        match outbox.poll_next(&Context::from_waker(Waker::noop())) {
            Poll::Ready(batch) => Some(batch),
            Poll::Pending => None,
        }
    }

    fn told(batch: &Batch) -> (usize, bool) {
        let letter: Letter<String, Vec<Change>> = serde_json::from_str(batch.as_str()).unwrap();
        (letter.changes.len(), letter.anything)
    }

    #[test]
    fn equal_changes_that_wait_are_told_once() {
        let outbox = Outbox::new();
        for change in [Change::Tools, Change::Resource("a".into()), Change::Tools] {
            outbox.publish(&change);
        }
        let batch = taken(&outbox).unwrap();
        assert!(
            batch
                .as_str()
                .contains(r#""changes":["tools",{"resource":"a"}]"#)
        );
        // One that comes while the first is under way is told again.
        outbox.publish(&Change::Tools);
        batch.sent();
        assert_eq!(told(&taken(&outbox).unwrap()), (1, false));
    }

    #[test]
    fn what_was_not_sent_goes_back() {
        let outbox = Outbox::new();
        outbox.publish(&Change::Tools);
        outbox.publish(&Change::Prompts);
        drop(taken(&outbox).unwrap());
        let batch = taken(&outbox).unwrap();
        assert_eq!(told(&batch), (2, false));
        batch.sent();
        assert!(taken(&outbox).is_none());
    }

    #[test]
    fn too_many_changes_become_one_that_says_all() {
        for (many, long) in [(MOST_CHANGES + 1, 1), (9, MOST_BYTES / 8)] {
            let outbox = Outbox::new();
            for n in 0..many {
                outbox.publish(&Change::Resource(format!("{n}{}", "x".repeat(long))));
            }
            drop(taken(&outbox).unwrap());
            let batch = taken(&outbox).unwrap();
            assert_eq!(told(&batch), (0, true));
            outbox.publish(&Change::Tools);
            batch.sent();
            assert_eq!(told(&taken(&outbox).unwrap()), (1, false));
        }
    }

    #[test]
    fn a_message_is_a_few_kib() {
        let outbox = Outbox::new();
        let uri = |n| format!("{n}{}", "x".repeat(1000));
        (0..20).for_each(|n| outbox.publish(&Change::Resource(uri(n))));
        let mut all = 0;
        while let Some(batch) = taken(&outbox) {
            assert!(batch.as_str().len() < MESSAGE_BYTES + 512);
            all += told(&batch).0;
            batch.sent();
        }
        assert_eq!(all, 20);
    }

    #[test]
    fn a_node_knows_its_own_messages() {
        let (one, other) = (Outbox::new(), Outbox::new());
        let subscriptions = Subscriptions::new();
        one.publish(&Change::Tools);
        let batch = taken(&one).unwrap();
        for message in [batch.as_str(), &one.heartbeat()] {
            assert!(one.receive(message.as_bytes(), &subscriptions));
            assert!(!other.receive(message.as_bytes(), &subscriptions));
        }
        assert!(!one.receive(b"\xff", &subscriptions));
    }
}
