//! The timers of a response: the keep-alive of a quiet stream, and `stream_after` for a late reply.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

/// A timer that is made when it is first polled.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// The waker that it wakes when it fires.
    asked: Option<Waker>,
}

impl Timer {
    /// Resolves at the time that `deadline` gives, which is called when the timer is first polled.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        deadline: impl FnOnce() -> Instant,
    ) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline())));
        let knows = |asked: &Waker| asked.will_wake(cx.waker());
        let known = self.asked.as_ref().is_some_and(knows);
        // A timer that has not fired still wakes the waker that it knows. Polling it at each frame
        // would cost more than the frame.
        if known && !sleep.is_elapsed() {
            return Poll::Pending;
        }
        // Whatever the handler has left of the task's budget: a timer that has none would not take
        // note of whom to wake.
        let sleeping = poll_fn(|cx| sleep.as_mut().poll(cx));
        let fired = pin!(unconstrained(sleeping)).poll(cx);
        if fired.is_ready() {
            self.asked = None;
        } else if !known {
            self.asked = Some(cx.waker().clone());
        }
        fired
    }

    fn reset(&mut self, deadline: Instant) {
        self.asked = None;
        if let Some(sleep) = &mut self.sleep {
            sleep.as_mut().reset(deadline);
        }
    }
}

/// Says when a stream was silent for an interval.
///
/// A frame only sets a flag, and the clock is read when there is nothing more to hand out. When the
/// timer fires before the stream was silent for long enough, it is set again for the rest.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    interval: Option<Duration>,
    last: Instant,
    /// Whether a frame was handed out after `last`.
    noted: bool,
    timer: Timer,
}

impl KeepAlive {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self {
            interval,
            last: Instant::now(),
            noted: false,
            timer: Timer::default(),
        }
    }

    /// A frame was handed out.
    pub(crate) fn frame(&mut self) {
        self.noted = true;
    }

    /// Ready when a comment is due.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(interval) = self.interval else {
            return Poll::Pending;
        };
        if std::mem::take(&mut self.noted) {
            self.last = Instant::now();
        }
        loop {
            let due = self.last + interval;
            ready!(self.timer.poll(cx, || due));
            let now = Instant::now();
            if now >= due {
                self.last = now;
                self.timer.reset(now + interval);
                return Poll::Ready(());
            }
            self.timer.reset(due);
        }
    }
}
