//! How long a relay waits before it connects again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from attempt to attempt, up to a few seconds, with jitter so that the nodes of a server
/// do not come back all at once.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    random: RandomState,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self {
            next: FIRST,
            random: RandomState::new(),
        }
    }

    /// To be called when a session ended that lasted this long. After one that lasted longer than
    /// any wait, the waits start again from the first.
    pub(super) fn lasted(&mut self, session: Duration) {
        if session > LONGEST {
            self.next = FIRST;
        }
    }

    /// The next wait: half of it is fixed, the rest is random.
    pub(super) fn next(&mut self) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(LONGEST);
        let chance = self.random.hash_one(most.as_nanos()) as u32;
        most / 2 + most.mul_f64(f64::from(chance) / f64::from(u32::MAX) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_begin_anew() {
        let mut backoff = Backoff::new();
        let mut most = FIRST;
        for _ in 0..20 {
            let wait = backoff.next();
            assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
            most = (most * 2).min(LONGEST);
        }
        assert_eq!(most, LONGEST);
        backoff.lasted(Duration::from_secs(1));
        assert!(backoff.next() >= LONGEST / 2);
        backoff.lasted(Duration::from_secs(60));
        assert!(backoff.next() <= FIRST);
    }
}
