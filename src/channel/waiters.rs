//! The wakers of what waits for a channel: for room, for its end, or until everything was handed
//! out.

use std::collections::VecDeque;
use std::task::Waker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// There is room for another frame. First come, first served.
    Room,
    /// What was sent has been handed to the server.
    Flushed,
    /// The channel is closed.
    Closed,
}

/// The place of a waiter in its line. The waiter keeps it, so that it can be found again.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<(Event, u64)>);

impl Ticket {
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    waker: Waker,
}

/// A line for each event, in the order of arrival.
///
/// There is rarely more than one waiter in a line, but a handler may wait for thousands of sends at
/// once. Numbers grow along a line, so a waiter is found by binary search, and the first and the
/// last leave without moving the others.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Option<Box<Lines>>);

/// Allocated when something waits for the first time. Most channels never need it.
#[derive(Debug, Default)]
struct Lines {
    last: u64,
    lines: [VecDeque<Waiter>; 3],
}

impl Waiters {
    /// Puts a waiter into the line of `event`, or renews its waker if it is there already. Returns
    /// a waker that is not needed any more, to be dropped after unlocking.
    pub(crate) fn wait(
        &mut self,
        ticket: &mut Ticket,
        event: Event,
        waker: &Waker,
    ) -> Option<Waker> {
        let place = self.find(ticket);
        let lines = self.0.get_or_insert_default();
        let line = &mut lines.lines[event as usize];
        if let Some(n) = place {
            let current = &mut line[n].waker;
            return (!current.will_wake(waker)).then(|| std::mem::replace(current, waker.clone()));
        }
        lines.last += 1;
        ticket.0 = Some((event, lines.last));
        line.push_back(Waiter {
            number: lines.last,
            waker: waker.clone(),
        });
        None
    }

    /// Whether a sender with this ticket goes first: nothing else waits for room before it.
    pub(crate) fn goes_first(&self, ticket: &Ticket) -> bool {
        self.first_for_room()
            .is_none_or(|first| Some((Event::Room, first.number)) == ticket.0)
    }

    /// Takes a waiter out of its line. Returns its waker, to be dropped after unlocking.
    pub(crate) fn leave(&mut self, ticket: &mut Ticket) -> Option<Waker> {
        let place = self.find(ticket);
        let (event, _) = ticket.0.take()?;
        let line = &mut self.0.as_mut()?.lines[event as usize];
        Some(line.remove(place?)?.waker)
    }

    /// The waker of the first in line for room.
    pub(crate) fn next_for_room(&self) -> Option<Waker> {
        self.first_for_room().map(|w| w.waker.clone())
    }

    /// The wakers of everything that waits for `event`. They stay in line.
    pub(crate) fn all(&self, event: Event) -> Vec<Waker> {
        let line = self.line(event).into_iter().flatten();
        line.map(|w| w.waker.clone()).collect()
    }

    /// Empties the lines and returns all wakers, since nothing will be waited for any more.
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        let Some(waiting) = self.0.take() else {
            return Vec::new();
        };
        let lines = waiting.lines.into_iter().flatten();
        lines.map(|w| w.waker).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|lines| lines.lines.iter().all(VecDeque::is_empty))
    }

    fn first_for_room(&self) -> Option<&Waiter> {
        self.line(Event::Room)?.front()
    }

    fn line(&self, event: Event) -> Option<&VecDeque<Waiter>> {
        Some(&self.0.as_ref()?.lines[event as usize])
    }

    /// The position of a waiter in its line.
    fn find(&self, ticket: &Ticket) -> Option<usize> {
        let (event, number) = ticket.0?;
        self.line(event)?
            .binary_search_by_key(&number, |w| w.number)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finds_its_place_whoever_leaves() {
        let mut waiters = Waiters::default();
        let events = [Event::Room, Event::Closed, Event::Flushed];
        let mut tickets: Vec<_> = (0..30)
            .map(|n| {
                let mut ticket = Ticket::default();
                let stale = waiters.wait(&mut ticket, events[n % 3], Waker::noop());
                assert!(stale.is_none());
                ticket
            })
            .collect();
        for n in [0, 29, 15, 1, 2, 3, 28, 14] {
            assert!(waiters.leave(&mut tickets[n]).is_some(), "{n}");
            assert!(waiters.leave(&mut tickets[n]).is_none(), "{n}");
        }
        // 0, 3 and 15 are gone from the line for room.
        for (n, ticket) in tickets.iter().enumerate() {
            assert_eq!(waiters.goes_first(ticket), n == 6, "{n}");
        }
        assert_eq!(waiters.all(Event::Room).len(), 7);
        assert_eq!(waiters.all(Event::Closed).len(), 8);
        assert_eq!(waiters.all(Event::Flushed).len(), 7);
        assert_eq!(waiters.take_all().len(), 22);
        assert!(waiters.is_empty() && waiters.goes_first(&Ticket::default()));
        assert!(waiters.leave(&mut tickets[6]).is_none());
    }
}
