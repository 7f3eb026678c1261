//! What the tools of a server need beside their request.

use std::io::Write;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

/// Nanoseconds on the clock that all processes of the machine share.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Shared by all requests of one server.
#[derive(Debug)]
pub struct Context {
    beat: watch::Sender<u64>,
    tell_drops: bool,
}

impl Context {
    pub(crate) fn new(tell_drops: bool) -> Self {
        Self { beat: watch::Sender::new(0), tell_drops }
    }

    /// What the `fan` tool waits on: one change is one frame.
    pub fn beats(&self) -> watch::Receiver<u64> {
        self.beat.subscribe()
    }

    pub(crate) fn beat(&self) {
        self.beat.send_modify(|beat| *beat += 1);
    }

    /// Kept by the `hold` tool while it runs: tells when it is dropped.
    pub fn guard(&self) -> Guard {
        Guard { tell: self.tell_drops }
    }
}

/// See [`Context::guard`].
#[derive(Debug)]
pub struct Guard {
    tell: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.tell {
            let line = format!("dropped {}\n", monotonic_ns());
            // The driver closes this pipe when it needs no more lines.
            let _ = std::io::stdout().lock().write_all(line.as_bytes());
        }
    }
}
