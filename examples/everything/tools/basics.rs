//! Tools that answer at once: what came in, what the server knows, who is told.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use mcp_channel::subscriptions::Change;
use mcp_channel::{Reply, RpcError, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Call, Tool, nothing, object};
use crate::content::{said, structured};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "echo",
            "Answers with the value it was given.",
            object(json!({"value": {}}), &["value"]),
            echo,
        ),
        Tool::new(
            "whoami",
            "Answers with what the channel knows of the request.",
            nothing(),
            whoami,
        ),
        Tool::new(
            "passthrough",
            "Answers with an HTTP response that never touches the channel.",
            object(
                json!({
                    "status": {"type": "integer", "minimum": 200, "maximum": 599},
                    "content_type": {"type": "string"},
                    "body": {"type": "string"},
                }),
                &["status", "content_type", "body"],
            ),
            passthrough,
        ),
        Tool::new(
            "touch",
            "Tells the subscribers of a change: all four kinds when none is named.",
            object(
                json!({
                    "kind": {"enum": ["tools", "prompts", "resources", "resource"]},
                    "uri": {"type": "string", "default": WATCHED},
                }),
                &[],
            ),
            touch,
        ),
        Tool::new(
            "close_subscriptions",
            "Ends every open subscription gracefully.",
            nothing(),
            close_subscriptions,
        ),
        Tool::new(
            "stats",
            "Answers with the counters of the other tools.",
            nothing(),
            stats,
        ),
        Tool::new("reset_stats", "Zeroes the counters.", nothing(), reset),
    ]
}

const WATCHED: &str = "test://watched-resource";

async fn echo(call: Call) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        /// As the client wrote it: numbers keep their digits.
        value: Box<RawValue>,
    }
    let Args { value } = call.message.arguments()?;
    Ok(structured(json_object("value", &value)))
}

/// An object with one member, whose value is not read.
fn json_object<'a>(name: &'a str, value: &'a RawValue) -> impl serde::Serialize + use<'a> {
    std::collections::BTreeMap::from([(name, value)])
}

async fn whoami(call: Call) -> Result<Reply, RpcError> {
    let channel = &call.channel;
    let meta = channel.meta();
    Ok(structured(json!({
        "request_id": channel.request_id(),
        "progress_token": channel.progress_token(),
        "log_level": channel.log_level(),
        "protocol_version": meta.protocol_version(),
        "client_info": meta.client_info(),
        "client_capabilities": meta.client_capabilities(),
        "status": match channel.status() {
            Status::Open => "open",
            Status::Closed => "closed",
        },
    })))
}

async fn passthrough(call: Call) -> Result<Response, RpcError> {
    #[derive(Deserialize)]
    struct Args {
        status: u16,
        content_type: String,
        body: String,
    }
    let args: Args = call.message.arguments()?;
    let mut response = Response::new(Body::from(args.body));
    *response.status_mut() = final_status(args.status)?;
    let content_type = HeaderValue::try_from(&args.content_type).map_err(|_| {
        RpcError::invalid_params("`arguments.content_type` is not a value that a header can have")
    })?;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// A status that ends an exchange; those below 200 come before the final one.
pub(super) fn final_status(status: u16) -> Result<StatusCode, RpcError> {
    match StatusCode::from_u16(status) {
        Ok(code) if (200..600).contains(&status) => Ok(code),
        _ => Err(RpcError::invalid_params(format!(
            "`arguments.status`: {status} is not an HTTP status from 200 to 599"
        ))),
    }
}

async fn touch(call: Call) -> Result<Reply, RpcError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Args {
        kind: Option<Kind>,
        uri: Option<String>,
    }
    #[derive(Clone, Copy, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Tools,
        Prompts,
        Resources,
        Resource,
    }
    let Args { kind, uri } = call.message.arguments()?;
    let uri = uri.unwrap_or_else(|| WATCHED.into());
    let change = |kind| match kind {
        Kind::Tools => Change::Tools,
        Kind::Prompts => Change::Prompts,
        Kind::Resources => Change::Resources,
        Kind::Resource => Change::Resource(uri.clone()),
    };
    let kinds = match &kind {
        Some(one) => std::slice::from_ref(one),
        None => &[Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Resource],
    };
    let subscriptions = &call.app.subscriptions;
    let delivered: usize = kinds
        .iter()
        .map(|kind| subscriptions.publish(&change(*kind)))
        .sum();
    Ok(structured(json!({"delivered": delivered})))
}

async fn close_subscriptions(call: Call) -> Result<Reply, RpcError> {
    call.app.subscriptions.close_all();
    Ok(said("closed"))
}

async fn stats(call: Call) -> Result<Reply, RpcError> {
    let stats: Value = call.app.stats.to_json(call.app.subscriptions.len());
    Ok(structured(stats))
}

async fn reset(call: Call) -> Result<Reply, RpcError> {
    call.app.stats.reset();
    Ok(said("reset"))
}
