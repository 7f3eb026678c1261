//! What the two clients share: named checks, waiting, and what "live" means.

use std::{
    fmt::Display,
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The resource whose updates the clients subscribe to.
pub const WATCHED: &str = "test://watched-resource";
/// The revision both clients must agree on with the server.
pub const REVISION: &str = "2026-07-28";

/// What a check says when it does not hold.
pub type Outcome = Result<(), String>;

/// Prints each check's outcome as one line and remembers whether one failed.
#[derive(Default)]
pub struct Checks {
    failed: bool,
}

impl Checks {
    /// Runs one check, bounded, and reports it. A failure does not stop the program.
    pub async fn run(&mut self, name: &str, check: impl Future<Output = Outcome>) {
        let outcome = within(20, "the whole check", check).await.flatten();
        match outcome {
            Ok(()) => println!("ok - {name}"),
            Err(reason) => {
                self.failed = true;
                println!("not ok - {name}: {}", reason.replace('\n', " "));
            }
        }
    }

    /// The process's exit status.
    pub fn status(&self) -> std::process::ExitCode {
        u8::from(self.failed).into()
    }
}

/// Turns a condition into an outcome.
pub fn need(condition: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(otherwise()) }
}

/// An error of the client as a check's reason.
pub fn reason(error: impl Display) -> String {
    error.to_string()
}

/// Bounds a wait.
pub async fn within<T>(
    seconds: u64,
    what: &str,
    future: impl Future<Output = T>,
) -> Result<T, String> {
    tokio::time::timeout(Duration::from_secs(seconds), future)
        .await
        .map_err(|_| format!("{what} did not happen within {seconds} s"))
}

/// The numbers of the server's `stats` tool that the checks look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub started: i64,
    pub completed: i64,
    pub cancelled: i64,
    pub subscriptions: i64,
}

impl Stats {
    /// Reads them from the tool's structured content.
    pub fn read(content: Option<&serde_json::Value>) -> Result<Self, String> {
        let number = |pointer: &str| {
            content
                .and_then(|content| content.pointer(pointer))
                .and_then(serde_json::Value::as_i64)
                .ok_or_else(|| format!("`stats` has no {pointer}: {content:?}"))
        };
        Ok(Self {
            started: number("/held/started")?,
            completed: number("/held/completed")?,
            cancelled: number("/held/cancelled")?,
            subscriptions: number("/subscriptions")?,
        })
    }
}

/// Asks for the counters until they are as wanted.
pub async fn until<F>(what: &str, stats: impl Fn() -> F, wanted: impl Fn(Stats) -> bool) -> Outcome
where
    F: Future<Output = Result<Stats, String>>,
{
    within(5, what, async {
        loop {
            if wanted(stats().await?) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await?
}

/// When events of one kind came, and what they carried.
pub struct Seen<T>(Arc<Mutex<Vec<(Instant, T)>>>);

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Seen<T> {
    /// Notes an event now.
    pub fn push(&self, value: T) {
        self.0.lock().unwrap().push((Instant::now(), value));
    }

    /// What came so far.
    pub fn values(&self) -> Vec<T> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// Holds that `count` events came one by one while the tool ran, and not in one lump before its result.
    pub fn live(&self, what: &str, end: Instant, count: usize) -> Outcome {
        let seen = self.0.lock().unwrap();
        need(seen.len() == count, || {
            format!("{} {what} instead of {count}", seen.len())
        })?;
        let (first, last) = (seen[0].0, seen[count - 1].0);
        need(end - first >= Duration::from_millis(400), || {
            format!(
                "{what} came {:?} before the result: in one lump at the end",
                end - first
            )
        })?;
        need(last - first >= Duration::from_millis(300), || {
            format!("{what} came within {:?}: in one lump", last - first)
        })
    }
}
