//! Accepts a `subscriptions/listen` request: acknowledges and registers it.

use super::change;
use super::filter::SubscriptionFilter;
use super::hub::{Hub, Subscriptions};
use super::registry::Id;
use crate::channel::sync::{Arc, lock};
use crate::channel::{Channel, Handle, Slots};
use crate::handler::reply::Deferred;
use crate::protocol::notification::types::SubscriptionsAcknowledged;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::message::Message;
use crate::shutdown::shutting_down;

/// Removes a subscriber when its channel ends.
struct Registration {
    hub: Arc<Hub>,
    id: Id,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let handle = lock(&self.hub.registry).remove(self.id);
        drop(handle);
    }
}

impl Subscriptions {
    /// Accepts a `subscriptions/listen` request: acknowledges the part of it that is honoured, and
    /// notifies the client of changes from now on. The handler has to return what this returns.
    ///
    /// The acknowledgement is the first message, and nothing that is published after this call is
    /// missed. The subscription ends when the client goes away, with
    /// [`Channel::close`] on a clone of its channel, or with [`close_all`](Self::close_all).
    ///
    /// # Errors
    ///
    /// An error comes before any stream is opened: -32600 when the message is a notification,
    /// -32602 for a filter that is malformed or names too many resources, -32603 when the server is
    /// shutting down or the limit of open subscriptions is reached, and when the channel is not
    /// that of a `subscriptions/listen` request, was accepted before, or has ended.
    pub fn accept(&self, channel: Channel, message: &Message) -> Result<Deferred, RpcError> {
        self.accept_with(channel, message, |_| ())
    }

    /// As [`accept`](Self::accept), but `reduce` may take kinds and resources out of the filter
    /// before it is acknowledged, for instance those that this caller may not see.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn accept_with(
        &self,
        channel: Channel,
        message: &Message,
        reduce: impl FnOnce(&mut SubscriptionFilter),
    ) -> Result<Deferred, RpcError> {
        if message.is_notification() {
            return Err(RpcError::invalid_request(
                "`subscriptions/listen` is a request: give it an `id`",
            ));
        }
        let mut filter = SubscriptionFilter::from_message(message)?;
        let options = &self.hub.options;
        options.honoured.reduce(&mut filter);
        if filter.uris().len() > options.resource_limit {
            return Err(RpcError::invalid_params(format!(
                "`params.notifications.resourceSubscriptions` names {} resources: at most {} may be",
                filter.uris().len(),
                options.resource_limit
            )));
        }
        reduce(&mut filter);

        // Keyed frames wait for the acknowledgement, so listening may begin before it is sent:
        // nothing is missed, and nothing comes before it.
        let stream = channel.shared();
        let slots = channel.request_id().map(|id| Slots::new(change::own(id)));
        let handle = channel
            .handle()
            .filter(|_| slots.is_some_and(|slots| stream.take_keyed(slots)));
        let Some(handle) = handle else {
            return Err(RpcError::internal(
                "only the open channel of a subscriptions/listen request is accepted, and only once",
            ));
        };
        let registration = self.register(handle, &filter).inspect_err(|_| {
            stream.refuse_keyed();
        })?;
        stream.on_end(Box::new(registration));
        let acknowledgement = SubscriptionsAcknowledged {
            notifications: &filter,
        };
        match channel.try_send_notification(acknowledgement) {
            // The channel may have ended meanwhile; then nobody sees what is returned.
            Ok(()) => Ok(Deferred),
            Err(error) if error.is_closed() => Ok(Deferred),
            Err(error) => Err(RpcError::internal(error.to_string())),
        }
    }

    fn register(
        &self,
        handle: Handle,
        filter: &SubscriptionFilter,
    ) -> Result<Registration, RpcError> {
        let mut registry = lock(&self.hub.registry);
        if registry.closing {
            return Err(shutting_down());
        }
        if registry.len() >= self.hub.options.limit {
            return Err(self.hub.options.too_many());
        }
        let id = registry.insert(handle, filter);
        let hub = Arc::clone(&self.hub);
        Ok(Registration { hub, id })
    }
}
