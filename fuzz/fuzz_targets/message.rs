//! Whatever the bytes are, reading them as a message ends without a panic, and what passes is what
//! serde_json reads, too.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_channel::notification::Notification;
use mcp_channel::subscriptions::SubscriptionFilter;
use mcp_channel::{Message, codes};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let message = match Message::parse(Bytes::copy_from_slice(bytes)) {
        Ok(message) => message,
        Err(error) => {
            let codes = [codes::PARSE_ERROR, codes::INVALID_REQUEST];
            assert!(codes.contains(&error.code()), "{error}");
            return;
        }
    };
    let _ = (message.name(), format!("{message:?} {:?}", message.meta()));
    let _ = SubscriptionFilter::from_message(&message);
    let params = message.params::<Value>();
    // Halves of surrogate pairs pass here, and serde_json has no form for them.
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    assert_eq!(value["jsonrpc"], "2.0");
    assert_eq!(value["method"], message.method());
    assert_eq!(value.get("id").is_none(), message.is_notification());
    if let Some(id) = message.id() {
        if let Some(text) = value["id"].as_str() {
            assert_eq!(id.as_str().as_deref(), Some(text));
        } else if let Some(integer) = value["id"].as_i64() {
            assert!(id.as_i64() == Some(integer));
        }
    }
    match value.get("params") {
        Some(read) => assert_eq!(params.expect("an object"), *read),
        None => assert!(message.raw_params().is_none()),
    }
    // A message is a notification to send if it has no id and no reply in it.
    let sendable = Notification::new(&value);
    let members = ["id", "result", "error"];
    if members.iter().any(|member| value.get(member).is_some()) {
        assert!(sendable.is_err());
    } else if let Ok(notification) = sendable {
        let id = 1.into();
        let stamped = notification.copy_subscription_id(Some(&id));
        let stamped: Value = serde_json::from_str(stamped.as_str()).expect("JSON");
        assert_eq!(stamped["method"], value["method"]);
    }
});
