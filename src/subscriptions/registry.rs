//! Who listens to what.
//!
//! The cost of publishing depends only on the listeners concerned, and the cost of joining and
//! leaving does not depend on how many there are.

use std::collections::HashMap;
use std::sync::Arc as StdArc;

use slab::Slab;

use super::change::KINDS;
use super::filter::SubscriptionFilter;
use crate::channel::{Arc, Handle, Shared};

/// A subscriber's number, while it listens.
pub(crate) type Id = u32;

/// The key of a frame in its stream: the number of its list, or [`KINDS`] plus the position of its
/// URI in the filter.
pub(crate) type Key = u32;

#[derive(Default)]
pub(crate) struct Registry {
    entries: Slab<Entry>,
    lists: [Vec<Id>; KINDS],
    resources: HashMap<StdArc<str>, Vec<Listener>>,
    /// Whether new subscribers are refused.
    pub(crate) closing: bool,
}

struct Entry {
    handle: Handle,
    /// Its position in each list, or [`NOWHERE`].
    lists: [u32; KINDS],
    resources: Box<[Place]>,
}

/// No place in a list.
const NOWHERE: u32 = u32::MAX;

/// The position of a subscriber among the listeners of a resource.
#[derive(Debug)]
struct Place {
    uri: StdArc<str>,
    at: u32,
}

/// A listener of a resource.
#[derive(Clone, Copy, Debug)]
struct Listener {
    id: Id,
    /// The position of this resource in its filter.
    nth: u32,
}

impl Registry {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn insert(&mut self, handle: Handle, filter: &SubscriptionFilter) -> Id {
        let id = self.entries.vacant_key() as Id;
        let wanted = [
            filter.tools_list_changed,
            filter.prompts_list_changed,
            filter.resources_list_changed,
        ];
        let mut lists = [NOWHERE; KINDS];
        for ((list, place), wanted) in self.lists.iter_mut().zip(&mut lists).zip(wanted) {
            if wanted {
                *place = list.len() as u32;
                list.push(id);
            }
        }
        let resources = (0..).zip(filter.uris()).map(|(nth, uri)| {
            let uri = match self.resources.get_key_value(uri.as_str()) {
                Some((known, _)) => StdArc::clone(known),
                None => StdArc::from(uri.as_str()),
            };
            let listeners = self.resources.entry(StdArc::clone(&uri)).or_default();
            listeners.push(Listener { id, nth });
            Place {
                uri,
                at: (listeners.len() - 1) as u32,
            }
        });
        let resources = resources.collect();
        self.grow();
        self.entries.insert(Entry {
            handle,
            lists,
            resources,
        });
        id
    }

    /// Removes a subscriber. Returns its handle, to be dropped after unlocking.
    pub(crate) fn remove(&mut self, id: Id) -> Option<Handle> {
        let entry = self.entries.try_remove(id as usize)?;
        for (n, at) in entry.lists.into_iter().enumerate() {
            if at == NOWHERE {
                continue;
            }
            self.lists[n].swap_remove(at as usize);
            if let Some(&moved) = self.lists[n].get(at as usize) {
                self.entries[moved as usize].lists[n] = at;
            }
        }
        for Place { uri, at } in entry.resources {
            let Some(listeners) = self.resources.get_mut(&uri) else {
                continue;
            };
            listeners.swap_remove(at as usize);
            if let Some(&moved) = listeners.get(at as usize) {
                self.entries[moved.id as usize].resources[moved.nth as usize].at = at;
            } else if listeners.is_empty() {
                self.resources.remove(&uri);
            }
        }
        self.shrink();
        Some(entry.handle)
    }

    /// Makes room for one more entry, and for a quarter of those that are there. It does not
    /// double: a server may have very many entries, and they are not small.
    fn grow(&mut self) {
        let open = self.entries.len();
        if open == self.entries.capacity() {
            self.entries.reserve_exact(16.max(open / 4));
        }
    }

    /// Frees room that is not needed any more, since one client may have named very many resources.
    fn shrink(&mut self) {
        const KEPT: usize = 1024;

        let needed = self.resources.len();
        if self.resources.capacity() > KEPT.max(4 * needed) {
            self.resources.shrink_to(2 * needed);
        }
    }

    /// The streams of those that listen to a list.
    pub(crate) fn list(&self, n: usize) -> impl ExactSizeIterator<Item = &Arc<Shared>> {
        self.lists[n].iter().map(|id| self.stream(*id))
    }

    /// The streams of those that listen to a resource, with the frame's key in each.
    pub(crate) fn resource(&self, uri: &str) -> impl Iterator<Item = (Id, &Arc<Shared>, Key)> {
        let listeners = self.resources.get(uri).map(Vec::as_slice);
        listeners
            .unwrap_or_default()
            .iter()
            .map(|l| (l.id, self.stream(l.id), KINDS as Key + l.nth))
    }

    /// The resources that somebody listens to.
    pub(crate) fn uris(&self) -> impl Iterator<Item = &StdArc<str>> {
        self.resources.keys()
    }

    /// All streams.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.entries.iter().map(|(_, entry)| entry.handle.shared())
    }

    fn stream(&self, id: Id) -> &Arc<Shared> {
        self.entries[id as usize].handle.shared()
    }
}
