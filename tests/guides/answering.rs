use mcp_channel::{Channel, Message, Reply, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};

async fn handler(channel: Channel, message: Message) -> Result<Reply, RpcError> {
    match message.method() {
        "server/discover" => Ok(Reply::result(json!({
            "supportedVersions": [mcp_channel::PROTOCOL_VERSION],
            "capabilities": {"tools": {}},
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        "tools/list" => Ok(Reply::result(json!({
            "tools": [bake_tool()],
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        "tools/call" => match message.name().as_deref() {
            Some("bake") => Ok(bake(&channel, &message).await),
            name => Err(RpcError::unknown_tool(name.unwrap_or_default())),
        },
        // Notifications come here, too: the layer answers them 202.
        method => Err(RpcError::method_not_found(method)),
    }
}

fn bake_tool() -> Value {
    json!({
        "name": "bake",
        "description": "Bakes bread, at most 12 loaves at a time.",
        "inputSchema": {
            "type": "object",
            "properties": {"loaves": {"type": "integer", "minimum": 1, "maximum": 12}},
            "required": ["loaves"],
        },
    })
}

async fn bake(channel: &Channel, message: &Message) -> Reply {
    #[derive(Deserialize)]
    struct Arguments {
        loaves: u32,
    }

    let loaves = match message.arguments() {
        Ok(Arguments { loaves }) => loaves,
        Err(error) => return failed(error.message()),
    };
    if !(1..=12).contains(&loaves) {
        return failed("`loaves`: the oven takes 1 to 12 at a time; bake the rest after them");
    }
    for n in 1..=loaves {
        // A client that wants no progress is no reason to stop.
        let _ = channel.send_progress((n, loaves)).await;
    }
    let text = format!("{loaves} loaves are on the shelf.");
    Reply::result(json!({"content": [{"type": "text", "text": text}]}))
}

/// A tool's own failure: a result, which the model is shown.
fn failed(why: &str) -> Reply {
    Reply::result(json!({"content": [{"type": "text", "text": why}], "isError": true}))
}
