//! Content blocks, and results made of them.

use mcp_channel::Reply;
use serde::Serialize;
use serde_json::{Value, json};

/// A red pixel.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No samples at 8 kHz.
pub const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

pub fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

pub fn audio() -> Value {
    json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
}

pub fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}})
}

/// The result of a tool that answers with content.
pub fn blocks(content: impl IntoIterator<Item = Value>) -> Reply {
    let content: Vec<Value> = content.into_iter().collect();
    Reply::result(json!({"content": content}))
}

/// The result of a tool that answers with a text.
pub fn said(words: impl Into<String>) -> Reply {
    blocks([text(words)])
}

/// What a tool answers with data: for programs, and as a text for models.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Structured<T> {
    content: [Value; 1],
    structured_content: T,
}

impl<T: Serialize> Structured<T> {
    pub fn new(data: T) -> Self {
        let words = serde_json::to_string(&data).unwrap_or_default();
        Self {
            content: [text(words)],
            structured_content: data,
        }
    }
}

/// The result of a tool that answers with data.
pub fn structured(data: impl Serialize) -> Reply {
    Reply::result(Structured::new(data))
}
