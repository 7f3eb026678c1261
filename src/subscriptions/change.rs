//! A change that subscribers hear of.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::protocol::id::RequestId;
use crate::protocol::notification::{PROMPTS, RESOURCES, TOOLS, UPDATED};
use crate::protocol::{members::SUBSCRIPTION_ID, sse};

/// Something that changed on the server.
///
/// Its JSON is for relays between nodes, and reads `"tools"`, `"prompts"`, `"resources"` or
/// `{"resource":"file:///a"}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource of this URI.
    Resource(String),
}

/// How many kinds of change have a list of their own.
pub(crate) const KINDS: usize = 3;

impl Change {
    /// The lists, in the order of their keys.
    pub(crate) const LISTS: [Change; KINDS] = [Change::Tools, Change::Prompts, Change::Resources];

    /// The part of the notification that is the same for all subscribers; it follows a [`head`].
    pub(crate) fn tail(&self) -> Bytes {
        match self {
            Self::Tools => list_tail(TOOLS),
            Self::Prompts => list_tail(PROMPTS),
            Self::Resources => list_tail(RESOURCES),
            Self::Resource(uri) => {
                let mut tail = br#"},"uri":"#.to_vec();
                let written = sse::encode(&mut tail, uri);
                debug_assert!(written.is_ok(), "a string serializes");
                tail.extend_from_slice(br#"},"method":""#);
                tail.extend_from_slice(UPDATED.as_bytes());
                tail.extend_from_slice(b"\"}");
                tail.extend_from_slice(sse::END);
                tail.into()
            }
        }
    }
}

fn list_tail(method: &str) -> Bytes {
    [br#"}},"method":""#, method.as_bytes(), b"\"}", sse::END]
        .concat()
        .into()
}

/// The part of each notification that is one subscriber's own: the event's begin, and the id of its
/// request.
pub(crate) fn head(id: &RequestId) -> Bytes {
    let mut head = Vec::with_capacity(128);
    head.extend_from_slice(sse::EVENT);
    head.extend_from_slice(br#"{"jsonrpc":"2.0","params":{"_meta":{""#);
    head.extend_from_slice(SUBSCRIPTION_ID.as_bytes());
    head.extend_from_slice(b"\":");
    id.write_json(&mut head);
    head.into_boxed_slice().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn head_and_tail_make_one_event() {
        for (change, method, uri) in [
            (Change::Tools, TOOLS, None),
            (Change::Prompts, PROMPTS, None),
            (Change::Resources, RESOURCES, None),
            (
                Change::Resource("a://\"\u{2028}".into()),
                UPDATED,
                Some("a://\"\u{2028}"),
            ),
        ] {
            let event = [head(&RequestId::from("s\"1")), change.tail()].concat();
            let event = String::from_utf8(event).unwrap();
            let data = event.strip_prefix("event: message\ndata: ").unwrap();
            assert!(data.ends_with("\n\n") && !data.contains('\u{2028}'));
            let value: Value = serde_json::from_str(data).unwrap();
            let mut params = json!({"_meta": {SUBSCRIPTION_ID: "s\"1"}});
            if let Some(uri) = uri {
                params["uri"] = uri.into();
            }
            assert_eq!(
                value,
                json!({"jsonrpc": "2.0", "method": method, "params": params})
            );
        }
    }

    #[test]
    fn a_change_travels_as_json() {
        for (change, text) in [
            (Change::Tools, r#""tools""#),
            (
                Change::Resource("file:///a".into()),
                r#"{"resource":"file:///a"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&change).unwrap(), text);
            assert_eq!(serde_json::from_str::<Change>(text).unwrap(), change);
        }
    }
}
