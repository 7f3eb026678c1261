//! Who waits for something of a channel: room, its end, or that all was handed out.

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

/// The place of one that waits. Kept by it, so that it is found again.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<u64>);

impl Ticket {
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    event: Event,
    waker: Waker,
}

/// In the order of arrival. There is rarely more than one, and mostly none ever.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Option<Box<Line>>);

#[derive(Debug, Default)]
struct Line {
    next: u64,
    list: Vec<Waiter>,
}

impl Waiters {
    /// Puts a waiter into the line, or renews the waker of one that stands there. The waker that
    /// is not needed any more comes back, to be dropped after unlocking.
    pub(crate) fn wait(
        &mut self,
        ticket: &mut Ticket,
        event: Event,
        waker: &Waker,
    ) -> Option<Waker> {
        let line = self.0.get_or_insert_default();
        let waiting = ticket
            .0
            .and_then(|t| line.list.iter_mut().find(|w| w.ticket == t));
        if let Some(Waiter { waker: current, .. }) = waiting {
            return (!current.will_wake(waker)).then(|| std::mem::replace(current, waker.clone()));
        }
        line.next += 1;
        ticket.0 = Some(line.next);
        line.list.push(Waiter {
            ticket: line.next,
            event,
            waker: waker.clone(),
        });
        None
    }

    /// Whether one without a place, or with this one, has to let others pass first.
    pub(crate) fn goes_first(&self, ticket: &Ticket) -> bool {
        self.first(Event::Room)
            .is_none_or(|first| Some(first.ticket) == ticket.0)
    }

    /// Takes a waiter out of the line. Its waker comes back, to be dropped after unlocking.
    pub(crate) fn leave(&mut self, ticket: &mut Ticket) -> Option<Waker> {
        let ticket = ticket.0.take()?;
        let list = &mut self.0.as_mut()?.list;
        let n = list.iter().position(|w| w.ticket == ticket)?;
        Some(list.remove(n).waker)
    }

    /// The waker of the first in line for room.
    pub(crate) fn next_for_room(&self) -> Option<Waker> {
        self.first(Event::Room).map(|w| w.waker.clone())
    }

    /// The wakers of all that wait for this; they stay in line.
    pub(crate) fn all(&self, event: Event) -> Vec<Waker> {
        self.list()
            .iter()
            .filter(|w| w.event == event)
            .map(|w| w.waker.clone())
            .collect()
    }

    /// Empties the line: nothing will be waited for any more.
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        let list = self.0.take().map_or_else(Vec::new, |line| line.list);
        list.into_iter().map(|w| w.waker).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    fn first(&self, event: Event) -> Option<&Waiter> {
        self.list().iter().find(|w| w.event == event)
    }

    fn list(&self) -> &[Waiter] {
        self.0.as_ref().map_or(&[], |line| &line.list)
    }
}
