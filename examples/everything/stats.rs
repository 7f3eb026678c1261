//! Counters that show from outside what became of handlers and tasks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Stats {
    pub held_started: Counter,
    pub held_completed: Counter,
    pub held_cancelled: Counter,
    pub background_started: Counter,
    pub background_completed: Counter,
    pub background_saw_closed: Counter,
    pub worked_after_reply: Counter,
}

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Stats {
    /// The counters, and how many subscriptions are open.
    pub fn to_json(&self, subscriptions: usize) -> Value {
        json!({
            "held": {
                "started": self.held_started.get(),
                "completed": self.held_completed.get(),
                "cancelled": self.held_cancelled.get(),
            },
            "background": {
                "started": self.background_started.get(),
                "completed": self.background_completed.get(),
                "saw_closed": self.background_saw_closed.get(),
            },
            "worked_after_reply": self.worked_after_reply.get(),
            "subscriptions": subscriptions,
        })
    }

    pub fn reset(&self) {
        for counter in [
            &self.held_started,
            &self.held_completed,
            &self.held_cancelled,
            &self.background_started,
            &self.background_completed,
            &self.background_saw_closed,
            &self.worked_after_reply,
        ] {
            counter.0.store(0, Relaxed);
        }
    }

    /// Counts a held call as started now, and as completed or cancelled later.
    pub fn hold(&self) -> Held<'_> {
        self.held_started.increment();
        Held {
            stats: self,
            completed: false,
        }
    }
}

/// A held call. Dropped before [`complete`](Self::complete), it was cancelled: when the client goes
/// away, the layer drops the handler where it waits.
pub struct Held<'a> {
    stats: &'a Stats,
    completed: bool,
}

impl Held<'_> {
    pub fn complete(mut self) {
        self.completed = true;
        self.stats.held_completed.increment();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.completed {
            self.stats.held_cancelled.increment();
        }
    }
}
