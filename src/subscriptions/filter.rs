//! [`SubscriptionFilter`]: the changes that a client asks to be notified of.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::json::raw::RawJson;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::message::Message;

/// The changes that a `subscriptions/listen` request asks for, or that a server honours of it.
///
/// Its JSON is that of the request's `notifications`: kinds that are not asked for are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Whether to notify the client when the list of tools changes.
    #[serde(skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    /// Whether to notify the client when the list of prompts changes.
    #[serde(skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    /// Whether to notify the client when the list of resources changes.
    #[serde(skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    /// The URIs of the resources whose updates to notify the client of. None when the request does
    /// not have this member.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub resource_subscriptions: Option<Vec<String>>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Reads a member that is there. It must have a value: null is refused.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl SubscriptionFilter {
    /// Reads the filter of a `subscriptions/listen` request. A resource that is named twice counts
    /// once, and kinds that this revision does not know are left out.
    ///
    /// # Errors
    ///
    /// -32602, naming the field that is malformed.
    pub fn from_message(message: &Message) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            notifications: &'a RawValue,
        }
        let Params { notifications } = message.params()?;
        let notifications = notifications.get();
        // serde would take an array for the fields in their order.
        if !notifications.starts_with('{') {
            return Err(RpcError::invalid_params(
                "`params.notifications` must be an object, as in {\"toolsListChanged\": true}",
            ));
        }
        let mut filter: Self = RawJson::new(notifications).parse_as("params.notifications")?;
        if let Some(uris) = &mut filter.resource_subscriptions {
            let mut seen = std::collections::HashSet::new();
            uris.retain(|uri| seen.insert(uri.clone()));
        }
        Ok(filter)
    }

    /// The URIs, which may be none.
    pub(crate) fn uris(&self) -> &[String] {
        self.resource_subscriptions.as_deref().unwrap_or_default()
    }
}
