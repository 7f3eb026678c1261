//! `server/discover`, and what every list and read has in common.

use mcp_channel::{Message, Reply, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Says which versions and capabilities this server has.
pub fn discover() -> Reply {
    Reply::result(Cacheable::new(json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "logging": {},
            "completions": {},
        },
        "instructions": "Every tool shows one thing that a server can do.",
    })))
}

/// A result that clients may keep: for how long, and for whom.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cacheable<T> {
    #[serde(flatten)]
    result: T,
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl<T> Cacheable<T> {
    /// The same for every caller, for a minute.
    pub fn new(result: T) -> Self {
        Self {
            result,
            ttl_ms: 60_000,
            cache_scope: "public",
        }
    }
}

/// Every list here is one page, so no cursor was ever given out.
pub fn refuse_cursor(message: &Message) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Page {
        cursor: Option<String>,
    }
    match message.params::<Page>()?.cursor {
        None => Ok(()),
        Some(cursor) => Err(RpcError::invalid_params(format!(
            "`cursor`: {cursor:?} is none that this server gave out; list from the start"
        ))),
    }
}
