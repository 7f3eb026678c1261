//! Three nodes of one server, joined by Redis: a change on one reaches the subscribers of all, also
//! after Redis was gone for a while.
//!
//! Needs `redis-server` in the path; it is started, killed and started again here.
//!
//! ```text
//! cargo run --example cluster --features axum,redis
//! ```

#[allow(dead_code, reason = "the tests use more of it")]
mod redis_server;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcp_channel::relay::RedisRelay;
use mcp_channel::subscriptions::Subscriptions;
use mcp_channel::{Channel, McpChannelLayer, Message};
use redis_server::RedisServer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

type BoxError = Box<dyn Error + Send + Sync>;

const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCE: &str = "notifications/resources/updated";

/// How long a subscriber may take to hear of a change.
const PATIENCE: Duration = Duration::from_secs(20);

/// One node: its subscriptions, where it listens, and its relay to the others.
struct Node {
    name: &'static str,
    subscriptions: Subscriptions,
    address: SocketAddr,
    relay: RedisRelay,
}

impl Node {
    async fn start(name: &'static str, redis: &str) -> Result<Self, BoxError> {
        let relay = RedisRelay::new(redis)?.channel("example:mcp:changes");
        let subscriptions = Subscriptions::builder().relay(relay.outbox()).build();

        let hub = subscriptions.clone();
        let listen = async move |channel: Channel, message: Message| hub.accept(channel, &message);
        let app = Router::new().route("/mcp", post(listen).layer(McpChannelLayer::new()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self {
            name,
            subscriptions,
            address,
            relay,
        })
    }

    /// Joins the other nodes. Those who subscribed before are told what they may have missed.
    fn join(self) -> Subscriptions {
        tokio::spawn(self.relay.run(self.subscriptions.clone()));
        self.subscriptions
    }
}

/// A client that listens to one node.
struct Client {
    node: &'static str,
    stream: Incoming,
    unread: String,
}

impl Client {
    async fn listen(node: &Node) -> Result<Self, BoxError> {
        let connection = TcpStream::connect(node.address).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(connection)).await?;
        tokio::spawn(connection);
        let method = "subscriptions/listen";
        let version = "2026-07-28";
        let body = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {
                "notifications": {
                    "toolsListChanged": true,
                    "resourceSubscriptions": ["file:///report"],
                },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": version,
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        let request = Request::post("/mcp")
            .header("host", node.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version)
            .header("mcp-method", method)
            .body(Full::new(Bytes::from(body.to_string())))?;
        let response = sender.send_request(request).await?;
        if response.status() != 200 {
            return Err(format!("{} answered {}", node.name, response.status()).into());
        }
        Ok(Self {
            node: node.name,
            stream: response.into_body(),
            unread: String::new(),
        })
    }

    /// Reads until a notification of this method comes.
    async fn hear(&mut self, method: &str) -> Result<(), BoxError> {
        timeout(PATIENCE, self.read_until(method))
            .await
            .map_err(|_| format!("the subscriber of {} was not told of {method}", self.node))?
    }

    async fn read_until(&mut self, method: &str) -> Result<(), BoxError> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let data = event.split_once("data: ").map_or("null", |(_, data)| data);
                let message: Value = serde_json::from_str(data)?;
                let found = message["method"] == method;
                self.unread = rest.to_owned();
                if found {
                    println!("  the subscriber of {} hears {method}", self.node);
                    return Ok(());
                }
            }
            let frame = self.stream.frame().await.ok_or("the stream ended")??;
            let data = frame.into_data().unwrap_or_default();
            self.unread.push_str(std::str::from_utf8(&data)?);
        }
    }
}

async fn all_hear(clients: &mut [Client], method: &str) -> Result<(), BoxError> {
    for client in clients {
        client.hear(method).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut redis = RedisServer::start().await?;
    println!("Redis runs at {}", redis.url());
    let mut nodes = Vec::new();
    let mut clients = Vec::new();
    for name in ["node A", "node B", "node C"] {
        let node = Node::start(name, &redis.url()).await?;
        let mut client = Client::listen(&node).await?;
        client
            .hear("notifications/subscriptions/acknowledged")
            .await?;
        nodes.push(node.join());
        client.hear(TOOLS).await?;
        client.hear(RESOURCE).await?;
        clients.push(client);
    }

    println!("The tools change on node A:");
    nodes[0].tools_list_changed();
    all_hear(&mut clients, TOOLS).await?;

    println!("A resource changes on node B:");
    nodes[1].resource_updated("file:///report");
    all_hear(&mut clients, RESOURCE).await?;

    println!("Redis is killed, the resource changes on node C, and Redis comes back:");
    redis.kill()?;
    nodes[2].resource_updated("file:///report");
    clients[2].hear(RESOURCE).await?;
    redis.restart().await?;
    // All that may have been missed, so that of other kinds, too.
    all_hear(&mut clients, TOOLS).await?;
    all_hear(&mut clients, RESOURCE).await?;

    println!("The tools change on node B:");
    nodes[1].tools_list_changed();
    all_hear(&mut clients, TOOLS).await?;
    println!("Every subscriber was told.");
    Ok(())
}
