//! What a request of an earlier revision asks for: of the handler, or of the layer itself.

use bytes::Bytes;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::Message;
use crate::protocol::era::{DISCOVER, LISTEN, NEWEST_LEGACY, legacy_version};
use crate::protocol::id::RequestId;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::legacy::{Form, write_error};
use crate::protocol::reply::rpc_error::RpcError;

/// Who answers a message, and how.
#[derive(Debug)]
pub(crate) enum Task {
    /// The handler answers this message, in this form.
    Handle(Message, Form),
    /// The response, as JSON.
    Reply(StatusCode, Bytes),
    /// A notification that has nothing to say to a handler.
    Taken,
}

/// Sorts a message of an earlier revision. `uri` is the one that it was posted to.
pub(crate) fn sort(message: Message, uri: &Uri) -> Task {
    let Some(id) = message.id() else {
        return match message.method() {
            // Each request is answered by itself, so there is no handshake to end, and nothing that
            // a client could cancel but by closing the response.
            "notifications/initialized" | "notifications/cancelled" => Task::Taken,
            _ => Task::Handle(message, Form::Legacy { tool: false }),
        };
    };
    let answer = match message.method() {
        "initialize" => match discover(&message, id, uri) {
            Ok(task) => return task,
            Err(error) => Err(error),
        },
        "ping" => Ok(()),
        "logging/setLevel" => set_level(&message),
        method @ (DISCOVER | LISTEN) => Err(RpcError::method_not_found(method)),
        method => {
            let tool = method == "tools/call";
            return Task::Handle(message, Form::Legacy { tool });
        }
    };
    let mut json = Vec::with_capacity(64);
    let status = match answer {
        Ok(()) => {
            json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            id.write_json(&mut json);
            json.extend_from_slice(br#","result":{}}"#);
            StatusCode::OK
        }
        Err(error) => write_error(&error, Form::Legacy { tool: false }, Some(id), &mut json),
    };
    Task::Reply(status, json.into())
}

/// Checks a level. Where clients can be remembered, it is used.
fn set_level(message: &Message) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct SetLevel {
        level: String,
    }
    let SetLevel { level } = message.params()?;
    match level.parse::<LogLevel>() {
        Ok(_) => Ok(()),
        Err(error) => Err(RpcError::invalid_params(format!("`params.level`: {error}"))),
    }
}

/// Turns an `initialize` request into a `server/discover` request for the handler.
fn discover(message: &Message, id: &RequestId, uri: &Uri) -> Result<Task, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, default)]
        client_info: Option<&'a RawValue>,
    }
    let Initialize {
        protocol_version,
        capabilities,
        client_info,
    } = message.params()?;
    let version = legacy_version(protocol_version.as_bytes()).unwrap_or(NEWEST_LEGACY);
    let capabilities = object("capabilities", capabilities)?.unwrap_or("{}");
    let client_info = object("clientInfo", client_info)?;

    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_json(&mut body);
    let mut params = format!(
        r#","method":"{DISCOVER}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
    );
    if let Some(info) = client_info {
        params.push_str(r#","io.modelcontextprotocol/clientInfo":"#);
        params.push_str(info);
    }
    params.push_str("}}}");
    body.extend_from_slice(params.as_bytes());
    // What a client said may nest too deeply for a place that is deeper than where it stood.
    let message = Message::read(body.into(), Some(version), uri)
        .map_err(|error| RpcError::invalid_params(error.message().to_owned()))?;
    Ok(Task::Handle(message, Form::Initialize(version)))
}

fn object<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<&'a str>, RpcError> {
    match value.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(object) if object.starts_with('{') => Ok(Some(object)),
        Some(_) => Err(RpcError::invalid_params(format!(
            "`params.{name}` must be an object"
        ))),
    }
}
