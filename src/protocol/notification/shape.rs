//! What kind of notification a value is, and what the protocol asks of that kind.

use serde::Serialize;
use serde::ser::Serializer;

use super::level::LogLevel;
use crate::error::SendError;
use crate::protocol::id::{ProgressToken, RequestId};
use crate::protocol::json::{JsonError, Kind, Span, Value};
use crate::protocol::reply::members::{SUBSCRIPTION_ID, add_member, find, stamp};
use crate::protocol::reply::sse;

pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub(crate) const PROGRESS: &str = "notifications/progress";
pub(crate) const CANCELLED: &str = "notifications/cancelled";
pub(crate) const MESSAGE: &str = "notifications/message";
pub(crate) const TOOLS: &str = "notifications/tools/list_changed";
pub(crate) const PROMPTS: &str = "notifications/prompts/list_changed";
pub(crate) const RESOURCES: &str = "notifications/resources/list_changed";
pub(crate) const UPDATED: &str = "notifications/resources/updated";

/// Whether notifications of this method must carry a subscription id: the three `list_changed`,
/// `resources/updated` and `subscriptions/acknowledged`.
///
/// A [`Channel`](crate::Channel) stamps them when it sends them, so this is rarely called.
///
/// ```
/// use mcp_channel::notification::requires_subscription_id;
///
/// assert!(requires_subscription_id("notifications/resources/updated"));
/// assert!(!requires_subscription_id("notifications/message"));
/// ```
#[must_use]
pub fn requires_subscription_id(method: &str) -> bool {
    matches!(method, TOOLS | PROMPTS | RESOURCES | UPDATED | ACKNOWLEDGED)
}

/// A notification in wire form.
///
/// It is made from anything that serializes to an object with a `method`. A
/// [`Channel`](crate::Channel) makes it by itself, so this type is only for code that looks at a
/// notification, or stamps it, before it is sent. It serializes to its own JSON.
#[derive(Clone, Debug)]
pub struct Notification {
    json: Vec<u8>,
    shape: Shape,
}

/// What the channel must know about a notification.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Acknowledgement,
    /// A log record of this level.
    Log(LogLevel),
    /// Progress under this token, with its amount as a double.
    Progress(ProgressToken, f64),
    Cancelled,
    /// One that must carry a subscription id.
    Subscription,
    Other,
}

impl Notification {
    /// Encodes `notification`.
    ///
    /// # Errors
    ///
    /// An error that says what is wrong: the value does not serialize, is not an object, has no
    /// string `method`, has a `jsonrpc` other than "2.0" or `params` that are not an object, or has
    /// an `id`, `result` or `error`, so that it would be a request or a response.
    pub fn new(notification: &impl Serialize) -> Result<Self, SendError> {
        let mut json = Vec::new();
        match write(&mut json, notification) {
            Ok(shape) => Ok(Self { json, shape }),
            Err(why) => Err(SendError::invalid(why)),
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.json).unwrap_or_default()
    }

    /// Whether a subscription id must be in it; see [`requires_subscription_id`].
    #[must_use]
    pub fn requires_subscription_id(&self) -> bool {
        matches!(self.shape, Shape::Subscription | Shape::Acknowledgement)
    }

    /// Writes the id of the `subscriptions/listen` request into `params._meta`, so that the client
    /// can tell its streams apart.
    ///
    /// A subscription id that is there and not null stays, and so does the rest of `_meta`. Without
    /// a request id nothing changes.
    #[must_use]
    pub fn copy_subscription_id(mut self, request_id: Option<&RequestId>) -> Self {
        if let Some(id) = request_id {
            // It was scanned before, so it scans again.
            let stamped = stamp_subscription_id(&mut self.json, id);
            debug_assert!(stamped.is_ok(), "{stamped:?}");
        }
        self
    }
}

impl Serialize for Notification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(self.as_str()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Writes `notification` to `out`, which is empty, in wire form and with its `jsonrpc`.
///
/// # Errors
///
/// What is wrong with it, for the sender to read; `out` then holds a part of it.
pub(crate) fn write(out: &mut Vec<u8>, notification: &impl Serialize) -> Result<Shape, String> {
    sse::encode(out, notification)
        .map_err(|e| format!("the notification does not serialize: {e}"))?;
    let text = std::str::from_utf8(out).map_err(|e| e.to_string())?;
    if !text.starts_with('{') {
        return Err("a notification is a JSON object".to_owned());
    }
    let no_json = |e| format!("the notification is no JSON: {e}");
    let whole = Span::new(0, text.len()).map_err(no_json)?;
    let [jsonrpc, method, params, id, result, error] = find(
        text,
        whole,
        ["jsonrpc", "method", "params", "id", "result", "error"],
    )
    .map_err(no_json)?;

    for (name, member) in [("id", id), ("result", result), ("error", error)] {
        if member.is_some() {
            return Err(format!(
                "a notification has no `{name}`: a server sends no requests on a stream, and its reply with send_result or send_error"
            ));
        }
    }
    let method = method
        .and_then(Value::as_text)
        .and_then(|method| method.decode(text))
        .ok_or("a notification has a `method` that is a string")?;
    if jsonrpc.is_some_and(|v| v.span.of(text) != r#""2.0""#) {
        return Err(r#"the `jsonrpc` of a notification is "2.0", or left out"#.to_owned());
    }
    if params.is_some_and(|p| p.kind != Kind::Object) {
        return Err("the `params` of a notification are an object, or left out".to_owned());
    }

    let param = |key| match params {
        Some(params) => find(text, params.span, [key]).map(|[m]| m).map_err(no_json),
        None => Ok(None),
    };
    let shape = match &*method {
        ACKNOWLEDGED => Shape::Acknowledgement,
        PROGRESS => Shape::Progress(
            param("progressToken")?
                .and_then(|m| serde_json::from_str(m.span.of(text)).ok())
                .ok_or("notifications/progress has a `params.progressToken` that is a string or an integer")?,
            param("progress")?
                .filter(|m| m.kind == Kind::Number)
                .and_then(|m| m.span.of(text).parse().ok())
                .filter(|amount: &f64| amount.is_finite())
                .ok_or("notifications/progress has a `params.progress` that is a number")?,
        ),
        CANCELLED => Shape::Cancelled,
        UPDATED if param("uri")?.is_none_or(|m| m.kind != Kind::String) => {
            return Err(
                "notifications/resources/updated has a `params.uri` that is a string".to_owned(),
            );
        }
        MESSAGE => {
            let level = param("level")?
                .and_then(|m| serde_json::from_str(m.span.of(text)).ok())
                .ok_or("notifications/message has a `params.level` that is one of the eight log levels")?;
            param("data")?.ok_or("notifications/message has a `params.data`")?;
            Shape::Log(level)
        }
        method if requires_subscription_id(method) => Shape::Subscription,
        _ => Shape::Other,
    };
    if jsonrpc.is_none() {
        add_member(out, whole, "jsonrpc", &[br#""2.0""#]);
    }
    Ok(shape)
}

/// Writes the subscription id into the `params._meta` of the notification that `json` is.
pub(crate) fn stamp_subscription_id(json: &mut Vec<u8>, id: &RequestId) -> Result<(), String> {
    let text = std::str::from_utf8(json).map_err(|e| e.to_string())?;
    let no_json = |e: JsonError| e.to_string();
    let whole = Span::new(0, text.len()).map_err(no_json)?;
    let mut value = Vec::with_capacity(40);
    id.write_json(&mut value);
    let [params] = find(text, whole, ["params"]).map_err(no_json)?;
    if let Some(params) = params {
        let [meta] = find(text, params.span, ["_meta"]).map_err(no_json)?;
        stamp(json, params.span, meta, SUBSCRIPTION_ID, &value).map_err(no_json)
    } else {
        let parts: [&[u8]; 5] = [
            b"{\"_meta\":{\"",
            SUBSCRIPTION_ID.as_bytes(),
            b"\":",
            &value,
            b"}}",
        ];
        add_member(json, whole, "params", &parts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stamped(notification: Value, id: RequestId) -> Value {
        let notification = Notification::new(&notification).unwrap();
        serde_json::from_str(notification.copy_subscription_id(Some(&id)).as_str()).unwrap()
    }

    #[test]
    fn jsonrpc_is_added_when_absent() {
        let made = Notification::new(&json!({"method": "m"})).unwrap();
        assert_eq!(made.as_str(), r#"{"method":"m","jsonrpc":"2.0"}"#);
        let made = Notification::new(&json!({"jsonrpc": "2.0", "method": "m"})).unwrap();
        assert_eq!(made.as_str(), r#"{"jsonrpc":"2.0","method":"m"}"#);
    }

    #[test]
    fn what_is_no_notification_is_refused_with_its_reason() {
        for (bad, names) in [
            (json!([]), "object"),
            (json!("x"), "object"),
            (json!({}), "`method`"),
            (json!({"method": 1}), "`method`"),
            (json!({"method": "m", "id": 1}), "`id`"),
            (json!({"method": "m", "id": null}), "`id`"),
            (json!({"method": "m", "result": {}}), "`result`"),
            (json!({"method": "m", "error": {}}), "`error`"),
            (json!({"method": "m", "params": []}), "`params`"),
            (json!({"method": "m", "params": null}), "`params`"),
            (json!({"method": "m", "jsonrpc": "1.0"}), "`jsonrpc`"),
            (
                json!({"method": MESSAGE, "params": {"level": "loud"}}),
                "level",
            ),
            (json!({"method": MESSAGE}), "level"),
            (
                json!({"method": MESSAGE, "params": {"level": "info"}}),
                "data",
            ),
            (json!({"method": UPDATED}), "uri"),
            (json!({"method": UPDATED, "params": {"uri": 1}}), "uri"),
            (
                json!({"method": PROGRESS, "params": {"progressToken": 1, "progress": "1"}}),
                "`params.progress`",
            ),
            (
                json!({"method": PROGRESS, "params": {"progress": 1}}),
                "`params.progressToken`",
            ),
        ] {
            let error = Notification::new(&bad).unwrap_err();
            assert!(error.is_invalid_message(), "{bad}");
            assert!(error.to_string().contains(names), "{bad}: {error}");
        }
    }

    #[test]
    fn a_stamp_goes_into_meta_and_keeps_its_neighbours() {
        const KEY: &str = SUBSCRIPTION_ID;
        for (params, want) in [
            (json!({}), json!({"_meta": {KEY: "s"}})),
            (json!({"a": 1}), json!({"a": 1, "_meta": {KEY: "s"}})),
            (
                json!({"_meta": {"k": 1}}),
                json!({"_meta": {"k": 1, KEY: "s"}}),
            ),
            (
                json!({"_meta": {KEY: null, "k": 1}}),
                json!({"_meta": {KEY: "s", "k": 1}}),
            ),
            (
                json!({"_meta": {KEY: "mine", "k": 1}}),
                json!({"_meta": {KEY: "mine", "k": 1}}),
            ),
        ] {
            let got = stamped(json!({"method": TOOLS, "params": params}), "s".into());
            assert_eq!(got["params"], want);
        }
        let got = stamped(json!({"method": TOOLS}), 7.into());
        assert_eq!(got["params"], json!({"_meta": {KEY: 7}}));
    }

    #[test]
    fn no_request_id_no_stamp() {
        let made = Notification::new(&json!({"method": TOOLS})).unwrap();
        assert!(made.requires_subscription_id());
        let json = made.as_str().to_owned();
        assert_eq!(made.copy_subscription_id(None).as_str(), json);
    }

    #[test]
    fn five_methods_require_a_subscription_id() {
        for method in [TOOLS, PROMPTS, RESOURCES, UPDATED, ACKNOWLEDGED] {
            assert!(requires_subscription_id(method));
        }
        for method in [
            PROGRESS,
            MESSAGE,
            "notifications/cancelled",
            "notifications/tools",
        ] {
            assert!(!requires_subscription_id(method));
        }
    }
}
