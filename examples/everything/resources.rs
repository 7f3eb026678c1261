//! `resources/list`, `resources/templates/list` and `resources/read`.

use mcp_channel::{Message, Reply, RpcError};
use serde_json::{Value, json};

use crate::content::PNG;
use crate::discover::{Cacheable, refuse_cursor};

pub fn list(message: &Message) -> Result<Reply, RpcError> {
    refuse_cursor(message)?;
    Ok(Reply::result(Cacheable::new(json!({
        "resources": [
            {"uri": "test://static-text", "name": "A text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "An image", "mimeType": "image/png"},
            {
                "uri": "test://watched-resource",
                "name": "What the `touch` tool touches",
                "mimeType": "text/plain",
            },
        ],
    }))))
}

pub fn templates(message: &Message) -> Result<Reply, RpcError> {
    refuse_cursor(message)?;
    Ok(Reply::result(Cacheable::new(json!({
        "resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data",
            "name": "Data by id",
            "mimeType": "application/json",
        }],
    }))))
}

pub fn read(message: &Message) -> Result<Reply, RpcError> {
    let uri = message.name().unwrap_or_default();
    match contents(&uri) {
        Some(contents) => Ok(Reply::result(Cacheable::new(
            json!({"contents": [contents]}),
        ))),
        None => Err(RpcError::resource_not_found(&uri)),
    }
}

fn contents(uri: &str) -> Option<Value> {
    let text =
        |mime_type: &str, text: &str| json!({"uri": uri, "mimeType": mime_type, "text": text});
    Some(match uri {
        "test://static-text" => text(
            "text/plain",
            "This is the content of the static text resource.",
        ),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => text("text/plain", "Whenever it is touched, it is the same."),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")
                .filter(|id| !id.is_empty() && !id.contains('/'))?;
            let data = json!({
                "id": id,
                "templateTest": true,
                "data": format!("Data for ID: {id}"),
            });
            text("application/json", &data.to_string())
        }
    })
}
