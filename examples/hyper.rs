//! The layer over a plain `tower` service, served by hyper alone.
//!
//! ```text
//! cargo run --example hyper
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use mcp_channel::{
    AllowedHosts, Channel, McpChannelLayer, Message, Reply, RequestBody, RpcError, ServerInfo,
};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let layer = McpChannelLayer::new()
        .server_info(ServerInfo::new("hyper-example", env!("CARGO_PKG_VERSION")))
        .allowed_hosts(AllowedHosts::loopback());
    let service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(serve));
    let service = TowerToHyperService::new(service);

    let listener = TcpListener::bind("127.0.0.1:3000")
        .await
        .map_err(|why| format!("cannot listen on 127.0.0.1:3000: {why}"))?;
    let address = listener.local_addr()?;
    println!(
        "listening on http://{address}/ until ctrl-c. Try:\n\n{}\n",
        curl(address)
    );
    loop {
        let (socket, _) = listener.accept().await?;
        // A frame is a small packet, and should not wait for the next one.
        let _ = socket.set_nodelay(true);
        let service = service.clone();
        tokio::spawn(async move {
            // HTTP/1.1 or HTTP/2, as the client begins.
            let served = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service)
                .await;
            if let Err(why) = served {
                eprintln!("a connection failed: {why}");
            }
        });
    }
}

/// A command that calls the tool, and shows its progress.
fn curl(address: SocketAddr) -> String {
    format!(
        r#"curl -N http://{address}/ \
  -H 'Content-Type: application/json' \
  -H 'Accept: application/json, text/event-stream' \
  -H 'MCP-Protocol-Version: 2026-07-28' \
  -H 'Mcp-Method: tools/call' \
  -H 'Mcp-Name: sum' \
  -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"sum","arguments":{{"numbers":[1,2.5]}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":"p"}}}}}}'"#
    )
}

/// The service. Without axum, the channel and the message are in the request's extensions.
async fn serve(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    // Both are there, or the service was put together without the layer.
    let extensions = request.extensions();
    let channel: &Channel = extensions.get().expect("a McpChannelLayer around it");
    let message: &Message = extensions.get().expect("a McpChannelLayer around it");
    Ok(match answer(channel, message).await {
        Ok(reply) => reply.into(),
        Err(error) => error.into(),
    })
}

async fn answer(channel: &Channel, message: &Message) -> Result<Reply, RpcError> {
    match message.method() {
        "server/discover" => Ok(Reply::result(json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        "tools/list" => Ok(Reply::result(json!({
            "tools": [{
                "name": "sum",
                "description": "Adds numbers, one after the other.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
                    "required": ["numbers"],
                },
            }],
            "ttlMs": 60_000,
            "cacheScope": "public",
        }))),
        "tools/call" => match message.name().as_deref() {
            Some("sum") => sum(channel, message).await,
            other => Err(RpcError::unknown_tool(other.unwrap_or_default())),
        },
        other => Err(RpcError::method_not_found(other)),
    }
}

async fn sum(channel: &Channel, message: &Message) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Arguments {
        numbers: Vec<f64>,
    }
    let Arguments { numbers } = message.arguments()?;
    let mut sum = 0.0;
    for (n, number) in numbers.iter().enumerate() {
        sum += number;
        // An error means that the client wants no progress, which is as good.
        let _ = channel.send_progress((n + 1, numbers.len())).await;
    }
    Ok(Reply::result(json!({
        "content": [{"type": "text", "text": sum.to_string()}],
        "structuredContent": {"sum": sum},
    })))
}
