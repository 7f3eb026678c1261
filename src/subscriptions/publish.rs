//! Tells subscribers of a change: those of this node directly, the others through the relay. Equal
//! changes that wait are merged by the channel's slots.

use std::sync::Arc as StdArc;

use super::change::{Change, KINDS};
use super::hub::Subscriptions;
use super::registry::{Id, Key};
use crate::channel::sync::{Arc, lock};
use crate::channel::{Piece, Shared};

/// A subscriber to be notified that a resource changed.
struct Target<'a> {
    id: Id,
    stream: Arc<Shared>,
    key: Key,
    /// What it subscribed to.
    whole: &'a StdArc<str>,
}

impl Subscriptions {
    /// Notifies subscribers that the list of tools changed. Returns how many subscribers on this
    /// node that concerns.
    pub fn tools_list_changed(&self) -> usize {
        self.publish(&Change::Tools)
    }

    /// Notifies subscribers that the list of prompts changed. Returns how many subscribers on this
    /// node that concerns.
    pub fn prompts_list_changed(&self) -> usize {
        self.publish(&Change::Prompts)
    }

    /// Notifies subscribers that the list of resources changed. Returns how many subscribers on
    /// this node that concerns.
    pub fn resources_list_changed(&self) -> usize {
        self.publish(&Change::Resources)
    }

    /// Notifies subscribers that a resource changed. Returns how many subscribers on this node that
    /// concerns.
    ///
    /// The [matching](crate::subscriptions::Builder::resource_match) says which subscriptions it
    /// concerns; by default those to exactly this URI.
    pub fn resource_updated(&self, uri: impl Into<String>) -> usize {
        self.publish(&Change::Resource(uri.into()))
    }

    /// Notifies the subscribers of this node, and through the
    /// [relay](crate::subscriptions::Builder::relay), if there is one, those of the other nodes.
    /// Returns how many subscribers on this node that concerns.
    pub fn publish(&self, change: &Change) -> usize {
        let told = self.deliver(change);
        if let Some(relay) = &self.hub.options.relay {
            relay.publish(change);
        }
        told
    }

    /// Notifies the subscribers of this node only. This is for a change that a relay received from
    /// another node. Returns how many subscribers that concerns.
    pub fn deliver(&self, change: &Change) -> usize {
        match change {
            Change::Tools => self.deliver_list(0),
            Change::Prompts => self.deliver_list(1),
            Change::Resources => self.deliver_list(2),
            Change::Resource(uri) => self.deliver_resource(uri),
        }
    }

    /// Notifies every subscriber of this node of everything that it subscribed to, once. This is
    /// for a relay that may have missed something.
    pub fn deliver_all(&self) {
        for n in 0..KINDS {
            self.deliver_list(n);
        }
        let uris: Vec<_> = lock(&self.hub.registry).uris().cloned().collect();
        for uri in uris {
            self.deliver_to(&uri, &[StdArc::clone(&uri)]);
        }
    }

    fn deliver_list(&self, n: usize) -> usize {
        // Streams are notified after unlocking, so that joining and leaving do not wait for it.
        let streams: Vec<_> = lock(&self.hub.registry).list(n).map(Arc::clone).collect();
        let shared = &self.hub.lists[n];
        streams
            .iter()
            .filter(|stream| stream.put_keyed(n as Key, shared, None))
            .count()
    }

    fn deliver_resource(&self, uri: &str) -> usize {
        let subscribed = || lock(&self.hub.registry).uris().cloned().collect();
        let concerned = self.hub.options.resource_match.concerned(uri, subscribed);
        self.deliver_to(uri, &concerned)
    }

    /// Notifies those that subscribed to any of `concerned` that `uri` changed, each of them once.
    fn deliver_to(&self, uri: &str, concerned: &[StdArc<str>]) -> usize {
        let mut targets = Vec::new();
        {
            let registry = lock(&self.hub.registry);
            for whole in concerned {
                targets.extend(registry.resource(whole).map(|(id, stream, key)| Target {
                    id,
                    stream: Arc::clone(stream),
                    key,
                    whole,
                }));
            }
        }
        if concerned.len() > 1 {
            // The sort is stable: of a subscriber's several targets, the first in the order of
            // `concerned` stays.
            targets.sort_by_key(|target| target.id);
            targets.dedup_by_key(|target| target.id);
            // So that each general form is encoded once.
            targets.sort_by(|a, b| a.whole.cmp(b.whole));
        }

        let shared = Change::Resource(uri.to_owned()).shared();
        let mut told = 0;
        let mut general: Option<(&str, Piece)> = None;
        for target in &targets {
            // Updates of two different parts merge into one of the resource that was subscribed to.
            if self.hub.options.resource_match.is_inexact()
                && general
                    .as_ref()
                    .is_none_or(|(of, _)| **of != **target.whole)
            {
                let change = Change::Resource((**target.whole).to_owned());
                general = Some((target.whole, change.shared()));
            }
            let general = general.as_ref().map(|(_, shared)| shared);
            told += usize::from(target.stream.put_keyed(target.key, &shared, general));
        }
        told
    }
}
