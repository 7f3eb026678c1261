//! The notifications that this revision of the protocol defines for servers, as types.
//!
//! Each serializes to the whole notification, for
//! [`Channel::send_notification`](crate::Channel::send_notification). Progress and log records have
//! methods of their own there.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::shape::{ACKNOWLEDGED, CANCELLED, PROMPTS, RESOURCES, TOOLS, UPDATED};
use crate::protocol::id::RequestId;

/// `notifications/tools/list_changed`: the list of tools has changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolListChanged;

/// `notifications/prompts/list_changed`: the list of prompts has changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptListChanged;

/// `notifications/resources/list_changed`: the list of resources has changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceListChanged;

/// `notifications/resources/updated`: the resource at `uri` has changed.
#[derive(Clone, Copy, Debug)]
pub struct ResourceUpdated<'a> {
    /// The resource; it may be a part of one that the client subscribed to.
    pub uri: &'a str,
}

/// `notifications/subscriptions/acknowledged`: what the server honours of a subscription.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionsAcknowledged<N> {
    /// The kinds and resources that the client will be notified of, in the form of the request's
    /// `notifications`.
    pub notifications: N,
}

/// `notifications/cancelled`: a request will not be answered, or its answer will not be read.
///
/// A server sends it only for a `subscriptions/listen` request, so the channels of other requests
/// refuse it. Over HTTP it is not needed: [`Channel::close`](crate::Channel::close) ends a
/// subscription.
#[derive(Clone, Copy, Debug)]
pub struct Cancelled<'a> {
    /// The request.
    pub request_id: &'a RequestId,
    /// Why, for people.
    pub reason: Option<&'a str>,
}

impl Serialize for ToolListChanged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        notification(serializer, TOOLS, None::<&()>)
    }
}

impl Serialize for PromptListChanged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        notification(serializer, PROMPTS, None::<&()>)
    }
}

impl Serialize for ResourceListChanged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        notification(serializer, RESOURCES, None::<&()>)
    }
}

impl Serialize for ResourceUpdated<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Params<'a> {
            uri: &'a str,
        }
        notification(serializer, UPDATED, Some(&Params { uri: self.uri }))
    }
}

impl<N: Serialize> Serialize for SubscriptionsAcknowledged<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Params<'a, N> {
            notifications: &'a N,
        }
        let notifications = &self.notifications;
        notification(serializer, ACKNOWLEDGED, Some(&Params { notifications }))
    }
}

impl Serialize for Cancelled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            request_id: &'a RequestId,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
        }
        let params = Params {
            request_id: self.request_id,
            reason: self.reason,
        };
        notification(serializer, CANCELLED, Some(&params))
    }
}

fn notification<S: Serializer>(
    serializer: S,
    method: &'static str,
    params: Option<&impl Serialize>,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_struct("Notification", 3)?;
    object.serialize_field("jsonrpc", "2.0")?;
    object.serialize_field("method", method)?;
    match params {
        Some(params) => object.serialize_field("params", params)?,
        None => object.skip_field("params")?,
    }
    object.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_serializes_to_the_whole_notification() {
        let id = RequestId::from(3);
        for (got, want) in [
            (
                json!(ToolListChanged),
                json!({"jsonrpc": "2.0", "method": TOOLS}),
            ),
            (
                json!(PromptListChanged),
                json!({"jsonrpc": "2.0", "method": PROMPTS}),
            ),
            (
                json!(ResourceListChanged),
                json!({"jsonrpc": "2.0", "method": RESOURCES}),
            ),
            (
                json!(ResourceUpdated { uri: "a://b" }),
                json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a://b"}}),
            ),
            (
                json!(SubscriptionsAcknowledged {
                    notifications: json!({"toolsListChanged": true})
                }),
                json!({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": {"notifications": {"toolsListChanged": true}}}),
            ),
            (
                json!(Cancelled {
                    request_id: &id,
                    reason: None
                }),
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
            ),
        ] {
            assert_eq!(got, want);
        }
    }
}
