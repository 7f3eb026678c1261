//! Who listens to what, so that publishing costs what its listeners cost, and joining and leaving
//! cost the same however many there are.

use std::collections::HashMap;
use std::sync::Arc;

use slab::Slab;

use super::change::KINDS;
use super::filter::SubscriptionFilter;
use crate::channel::Channel;

/// A subscriber's number, for the time that it listens.
pub(crate) type Id = u32;

/// The key of a frame in its stream: the list's number, or that of the URI in the filter behind
/// them.
pub(crate) type Key = u32;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Slab<Entry>,
    lists: [Vec<Id>; KINDS],
    resources: HashMap<Arc<str>, Vec<Listener>>,
    /// No further subscriber is taken.
    pub(crate) closing: bool,
}

#[derive(Debug)]
struct Entry {
    channel: Channel,
    /// Where it stands in each list, or [`NOWHERE`].
    lists: [u32; KINDS],
    resources: Box<[Place]>,
}

/// No place in a list.
const NOWHERE: u32 = u32::MAX;

/// Where a subscriber stands among the listeners of a resource.
#[derive(Debug)]
struct Place {
    uri: Arc<str>,
    at: u32,
}

/// One of those that listen to a resource.
#[derive(Clone, Copy, Debug)]
struct Listener {
    id: Id,
    /// Which of its resources this is.
    nth: u32,
}

impl Registry {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn insert(&mut self, channel: Channel, filter: &SubscriptionFilter) -> Id {
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
                Some((known, _)) => Arc::clone(known),
                None => Arc::from(uri.as_str()),
            };
            let listeners = self.resources.entry(Arc::clone(&uri)).or_default();
            listeners.push(Listener { id, nth });
            Place {
                uri,
                at: (listeners.len() - 1) as u32,
            }
        });
        let resources = resources.collect();
        self.entries.insert(Entry {
            channel,
            lists,
            resources,
        });
        id
    }

    /// Forgets a subscriber. Its channel comes back, to be dropped after unlocking.
    pub(crate) fn remove(&mut self, id: Id) -> Option<Channel> {
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
        Some(entry.channel)
    }

    /// Gives room back that is not needed any more: one client may have named very many resources.
    fn shrink(&mut self) {
        const KEPT: usize = 1024;

        let needed = self.resources.len();
        if self.resources.capacity() > KEPT.max(4 * needed) {
            self.resources.shrink_to(2 * needed);
        }
    }

    /// The channels of those that listen to a list.
    pub(crate) fn list(&self, n: usize) -> impl ExactSizeIterator<Item = &Channel> {
        self.lists[n].iter().map(|id| self.channel(*id))
    }

    /// The channels of those that listen to a resource, with the frame's key in each.
    pub(crate) fn resource(&self, uri: &str) -> impl Iterator<Item = (Id, &Channel, Key)> {
        let listeners = self.resources.get(uri).map(Vec::as_slice);
        listeners
            .unwrap_or_default()
            .iter()
            .map(|l| (l.id, self.channel(l.id), KINDS as Key + l.nth))
    }

    /// The resources that somebody listens to.
    pub(crate) fn uris(&self) -> impl Iterator<Item = &Arc<str>> {
        self.resources.keys()
    }

    /// All channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.entries.iter().map(|(_, entry)| &entry.channel)
    }

    fn channel(&self, id: Id) -> &Channel {
        &self.entries[id as usize].channel
    }
}
