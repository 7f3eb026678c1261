//! The layer over a plain `tower` service, served by hyper alone.
//!
//! ```text
//! cargo run --example hyper
//! ```

use std::convert::Infallible;
use std::error::Error;

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

    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}/", listener.local_addr()?);
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

/// The service. Without axum, the channel and the message are in the request's extensions.
async fn serve(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (Some(channel), Some(message)) = (
        request.extensions().get::<Channel>(),
        request.extensions().get::<Message>(),
    ) else {
        return Ok(RpcError::internal("the McpChannelLayer is missing").into());
    };
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
        "tools/call" if message.name().as_deref() == Some("sum") => sum(channel, message).await,
        "tools/call" => Err(RpcError::invalid_params("the only tool is `sum`")),
        other => Err(RpcError::method_not_found(other)),
    }
}

async fn sum(channel: &Channel, message: &Message) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        arguments: Arguments,
    }
    #[derive(Deserialize)]
    struct Arguments {
        numbers: Vec<f64>,
    }
    let Arguments { numbers } = message.params::<Params>()?.arguments;
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
