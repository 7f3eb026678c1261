//! [`Change`]: what subscribers are notified of, and the frames for it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::channel::Piece;
use crate::protocol::id::RequestId;
use crate::protocol::notification::shape::{PROMPTS, RESOURCES, TOOLS, UPDATED};
use crate::protocol::reply::members::SUBSCRIPTION_ID;
use crate::protocol::reply::sse;

/// Something that changed on the server.
///
/// Its JSON is for relays between nodes: `"tools"`, `"prompts"`, `"resources"` or
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

/// How many lists there are: each has its own kind of change.
pub(crate) const KINDS: usize = 3;

impl Change {
    /// The lists, in the order of their keys.
    pub(crate) const LISTS: [Change; KINDS] = [Change::Tools, Change::Prompts, Change::Resources];

    /// The part of the notification that is the same for all subscribers. An [`own`] part follows.
    pub(crate) fn shared(&self) -> Piece {
        let mut shared = Vec::with_capacity(192);
        let (method, uri) = match self {
            Self::Tools => (TOOLS, None),
            Self::Prompts => (PROMPTS, None),
            Self::Resources => (RESOURCES, None),
            Self::Resource(uri) => (UPDATED, Some(uri)),
        };
        shared.extend_from_slice(sse::EVENT);
        shared.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
        shared.extend_from_slice(method.as_bytes());
        shared.extend_from_slice(br#"","params":{"#);
        if let Some(uri) = uri {
            shared.extend_from_slice(br#""uri":"#);
            let written = sse::encode(&mut shared, uri);
            debug_assert!(written.is_ok(), "a string serializes");
            shared.push(b',');
        }
        shared.extend_from_slice(br#""_meta":{""#);
        shared.extend_from_slice(SUBSCRIPTION_ID.as_bytes());
        shared.extend_from_slice(b"\":");
        Piece::new(shared.into())
    }
}

/// The part of each notification that is one subscriber's own: the id of its request, and the
/// event's end.
pub(crate) fn own(id: &RequestId) -> Bytes {
    let mut own = Vec::with_capacity(32);
    id.write_json(&mut own);
    own.extend_from_slice(b"}}}");
    own.extend_from_slice(sse::END);
    own.into_boxed_slice().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn both_parts_make_one_event() {
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
            let event = [&change.shared()[..], &own(&RequestId::from("s\"1"))].concat();
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
