//! One URL for clients of two eras: those of revision 2026-07-28 are served by a handler under
//! `McpChannelLayer`, those of earlier revisions by rmcp, with a session for each.
//!
//! ```text
//! cargo run --manifest-path examples/steer/Cargo.toml
//! ```
//!
//! The layer serves earlier clients as well, but without sessions. Steer them elsewhere if you have a
//! server for them that shall stay, or need what a session is for: to ask a client while its call
//! runs, to tell it things between calls, to let it take up a broken stream.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::post;
use axum::serve::ListenerExt;
use mcp_channel::{
    AllowedHosts, Channel, Era, McpChannelLayer, Message, Reply, RpcError, ServerInfo,
};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ProgressNotificationParam;
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tower::make::Shared;
use tower::steer::Steer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let addr = match &words[..] {
        [] => "127.0.0.1:3000",
        [option, addr] if option == "--addr" => addr,
        _ => return Err("usage: steer [--addr HOST:PORT]".into()),
    };

    // What says nothing of MCP counts as legacy: routes of other kinds belong into that router, and
    // CORS, whose first question says nothing either, around the whole. `Steer` itself cannot be a
    // route, since it is not `Sync` with the requests of axum.
    let pick = |request: &Request, _: &[Router]| match Era::from_headers(request.headers()) {
        Era::Modern => 0,
        Era::Legacy => 1,
    };
    let both = Steer::new([modern(), legacy()], pick);

    let listener = TcpListener::bind(addr)
        .await
        .map_err(|why| format!("cannot listen on {addr}: {why}"))?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    // An event is a small packet, and should not wait for the next one.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, Shared::new(both)).await?;
    Ok(())
}

// The work, which knows of no era.

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// Where to stop.
    to: u32,
}

async fn count<F: Future>(to: u32, report: impl Fn(u32) -> F) -> String {
    for n in 1..=to {
        // That a client wants no reports is no reason to stop.
        let _ = report(n).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    format!("counted to {to}")
}

// The modern era: a handler under the layer.

fn modern() -> Router {
    let layer = McpChannelLayer::new()
        .legacy_clients(false)
        .allowed_hosts(AllowedHosts::loopback())
        .server_info(ServerInfo::new("steer, modern", env!("CARGO_PKG_VERSION")));
    Router::new().route("/mcp", post(answer).layer(layer))
}

async fn answer(channel: Channel, message: Message) -> Result<Reply, RpcError> {
    match (message.method(), message.name().as_deref()) {
        ("server/discover", _) => Ok(Reply::result(json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        ("tools/list", _) => Ok(Reply::result(json!({
            // The same as below.
            "tools": Legacy::tool_router().list_all(),
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        ("tools/call", Some("count")) => {
            let Count { to } = message.arguments()?;
            let text = count(to, |n| channel.send_progress((n, to))).await;
            Ok(Reply::result(
                json!({"content": [{"type": "text", "text": text}]}),
            ))
        }
        ("tools/call", tool) => Err(RpcError::unknown_tool(tool.unwrap_or_default())),
        (method, _) => Err(RpcError::method_not_found(method)),
    }
}

// The legacy era: rmcp, which by default keeps sessions and answers to names of loopback alone.

fn legacy() -> Router {
    let config = StreamableHttpServerConfig::default().enforce_origin_validation();
    let sessions = LocalSessionManager::default().into();
    let service = StreamableHttpService::new(|| Ok(Legacy), sessions, config);
    Router::new().route_service("/mcp", service)
}

struct Legacy;

#[tool_router]
impl Legacy {
    /// Counts, and reports each step.
    #[tool]
    async fn count(
        Parameters(Count { to }): Parameters<Count>,
        context: RequestContext<RoleServer>,
    ) -> String {
        let context = &context;
        let report = |n: u32| async move {
            let token = context.meta.get_progress_token()?;
            let progress = ProgressNotificationParam::new(token, n.into()).with_total(to.into());
            context.peer.notify_progress(progress).await.ok()
        };
        count(to, report).await
    }
}

#[tool_handler(name = "steer, legacy")]
impl ServerHandler for Legacy {}
