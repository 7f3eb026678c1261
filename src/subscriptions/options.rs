//! The options of [`Subscriptions`](crate::subscriptions::Subscriptions), and the relay's trait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::change::Change;
use super::filter::SubscriptionFilter;
use super::matching::ResourceMatch;
use crate::protocol::reply::rpc_error::RpcError;

/// Carries changes to the other nodes of a server.
///
/// Clients are connected to any of the nodes, so a change on one must reach all. A relay hands what
/// it receives from the other nodes to
/// [`Subscriptions::deliver`](crate::subscriptions::Subscriptions::deliver). When it may have
/// missed something, it calls
/// [`Subscriptions::deliver_all`](crate::subscriptions::Subscriptions::deliver_all): subscribers
/// may be notified too often, but never too rarely.
pub trait Relay: Send + Sync + 'static {
    /// Takes a change for the other nodes. It must not wait: keep the change, and send it from a
    /// task.
    fn publish(&self, change: &Change);
}

/// Options of [`Subscriptions`](crate::subscriptions::Subscriptions).
///
/// ```
/// use mcp_channel::subscriptions::{ResourceMatch, Subscriptions};
///
/// let subscriptions = Subscriptions::builder()
///     .prompts(false)
///     .resource_match(ResourceMatch::parts())
///     .limit(10_000)
///     .build();
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Builder {
    pub(super) options: Options,
}

pub(crate) struct Options {
    pub(crate) honoured: Honoured,
    pub(crate) resource_match: ResourceMatch,
    pub(crate) limit: usize,
    pub(crate) resource_limit: usize,
    busy: Option<Duration>,
    pub(crate) relay: Option<Arc<dyn Relay>>,
}

/// Which kinds of change the server honours.
#[derive(Debug)]
pub(crate) struct Honoured {
    tools: bool,
    prompts: bool,
    resources: bool,
    resource_subscriptions: bool,
}

impl Honoured {
    pub(crate) fn reduce(&self, filter: &mut SubscriptionFilter) {
        filter.tools_list_changed &= self.tools;
        filter.prompts_list_changed &= self.prompts;
        filter.resources_list_changed &= self.resources;
        if !self.resource_subscriptions {
            filter.resource_subscriptions = None;
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            honoured: Honoured {
                tools: true,
                prompts: true,
                resources: true,
                resource_subscriptions: true,
            },
            resource_match: ResourceMatch::default(),
            limit: usize::MAX,
            resource_limit: 10_000,
            busy: None,
            relay: None,
        }
    }
}

impl Options {
    /// The error for a subscriber over the limit.
    pub(crate) fn too_many(&self) -> RpcError {
        let error = RpcError::internal(format!(
            "the server has its limit of {} open subscriptions: close one, or listen again later",
            self.limit
        ));
        match self.busy {
            None => error,
            Some(after) => error
                .with_status(StatusCode::SERVICE_UNAVAILABLE)
                .with_retry_after(after),
        }
    }
}

impl Builder {
    /// Whether subscribers are notified of changes to the list of tools. Default: yes.
    pub fn tools(mut self, honoured: bool) -> Self {
        self.options.honoured.tools = honoured;
        self
    }

    /// Whether subscribers are notified of changes to the list of prompts. Default: yes.
    pub fn prompts(mut self, honoured: bool) -> Self {
        self.options.honoured.prompts = honoured;
        self
    }

    /// Whether subscribers are notified of changes to the list of resources. Default: yes.
    pub fn resources(mut self, honoured: bool) -> Self {
        self.options.honoured.resources = honoured;
        self
    }

    /// Whether subscribers are notified of updates of the resources that they name. Default: yes.
    pub fn resource_subscriptions(mut self, honoured: bool) -> Self {
        self.options.honoured.resource_subscriptions = honoured;
        self
    }

    /// Which subscriptions the update of a resource concerns. Default: those to exactly its URI.
    pub fn resource_match(mut self, matching: ResourceMatch) -> Self {
        self.options.resource_match = matching;
        self
    }

    /// How many subscriptions may be open on this node at a time. One more is refused with -32603
    /// and HTTP status 200, since clients show such an error. Default: no limit.
    pub fn limit(mut self, open: usize) -> Self {
        self.options.limit = open;
        self
    }

    /// How many resources one subscription may name. One that names more is refused with -32602.
    /// Each costs about 200 bytes for as long as the subscription is open. Default: 10,000.
    pub fn resource_limit(mut self, uris: usize) -> Self {
        self.options.resource_limit = uris;
        self
    }

    /// Refuses subscriptions over the limit with HTTP status 503 and a `Retry-After` of this long,
    /// rounded up to whole seconds, for load balancers that then try another node. Default: off.
    pub fn busy(mut self, retry_after: Duration) -> Self {
        self.options.busy = Some(retry_after);
        self
    }

    /// Carries changes to the server's other nodes. Default: none.
    pub fn relay(mut self, relay: impl Relay) -> Self {
        self.options.relay = Some(Arc::new(relay));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("honoured", &self.honoured)
            .field("resource_match", &self.resource_match)
            .field("limit", &self.limit)
            .field("resource_limit", &self.resource_limit)
            .field("busy", &self.busy)
            .field("relay", &self.relay.is_some())
            .finish()
    }
}
