//! Nodes that are joined by a real `redis-server`, which is started here and must be in the path.

mod support;

#[path = "../examples/cluster/redis_server.rs"]
mod redis_server;

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use mcp_channel::McpChannelLayer;
use mcp_channel::relay::RedisRelay;
use mcp_channel::subscriptions::Subscriptions;
use redis_server::RedisServer;
use serde_json::json;
use support::listener::Listener;
use support::request::{Call, served_by};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const TOOLS: &str = "tools/list_changed";
const PROMPTS: &str = "prompts/list_changed";
const A: &str = "resources/updated file:///a";
const B: &str = "resources/updated file:///b";

async fn redis() -> RedisServer {
    match RedisServer::start().await {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    }
}

/// A node with one subscriber.
struct Node {
    subscriptions: Subscriptions,
    client: Listener,
    heard: Vec<String>,
    relay: JoinHandle<std::convert::Infallible>,
}

impl Node {
    async fn start(relay: RedisRelay) -> Self {
        let subscriptions = Subscriptions::builder().relay(relay.outbox()).build();
        let hub = subscriptions.clone();
        let service = served_by(McpChannelLayer::new(), move |channel, message| {
            let accepted = hub.accept(channel, &message);
            async move {
                let response: Response<Full<Bytes>> = match accepted {
                    Ok(deferred) => deferred.into(),
                    Err(error) => error.into(),
                };
                response
            }
        });
        let call = Call::new("subscriptions/listen").param(
            "notifications",
            json!({
                "toolsListChanged": true,
                "promptsListChanged": true,
                "resourceSubscriptions": ["file:///a", "file:///b"],
            }),
        );
        let mut client = Listener::open(service, &call).await;
        assert_eq!(client.heard(), ["subscriptions/acknowledged"]);
        let relay = tokio::spawn(relay.run(subscriptions.clone()));
        Self {
            subscriptions,
            client,
            heard: Vec::new(),
            relay,
        }
    }

    /// Waits until the subscriber has heard all of these.
    async fn hears(&mut self, all: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            self.heard.extend(self.client.heard());
            if all.iter().all(|one| self.heard.iter().any(|h| h == one)) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "waits for {all:?}, has heard {:?}",
                self.heard
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn cluster(url: &str, heartbeat: Duration) -> Vec<Node> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let relay = RedisRelay::new(url).unwrap().heartbeat(heartbeat);
        nodes.push(Node::start(relay).await);
    }
    // Once a subscription stands, each is told what it may have missed.
    all_hear(&mut nodes, &[TOOLS, PROMPTS, A, B]).await;
    nodes
}

/// Waits until each has heard all of these, and forgets what they heard.
async fn all_hear(nodes: &mut [Node], all: &[&str]) {
    for node in nodes {
        node.hears(all).await;
        node.heard.clear();
    }
}

#[tokio::test]
async fn a_change_on_one_node_reaches_the_subscribers_of_all_once() {
    let redis = redis().await;
    let mut nodes = cluster(&redis.url(), Duration::from_secs(5)).await;
    nodes[0].subscriptions.tools_list_changed();
    nodes[0].subscriptions.resource_updated("file:///b");
    // Behind those, so that whatever they bring was heard before.
    nodes[0].subscriptions.prompts_list_changed();
    for node in &mut nodes {
        node.hears(&[PROMPTS]).await;
        assert_eq!(node.heard, [TOOLS, B, PROMPTS]);
        node.heard.clear();
    }
    // What a node is told by its own messages would be heard by now, too.
    nodes[1].subscriptions.resource_updated("file:///a");
    all_hear(&mut nodes[..1], &[A]).await;
    nodes[0].subscriptions.resource_updated("file:///b");
    nodes[1].hears(&[B]).await;
    assert_eq!(nodes[1].heard, [A, B]);
}

#[tokio::test]
async fn every_subscriber_is_told_of_a_change_that_was_made_while_redis_was_away() {
    let mut redis = redis().await;
    let mut nodes = cluster(&redis.url(), Duration::from_secs(5)).await;
    redis.kill().unwrap();
    nodes[2].subscriptions.tools_list_changed();
    nodes[2].hears(&[TOOLS]).await;
    assert_eq!(nodes[0].client.heard(), [""; 0]);
    redis.restart().await.unwrap();
    // The change, and whatever else may have been missed.
    all_hear(&mut nodes, &[TOOLS, PROMPTS, A, B]).await;

    sleep(Duration::from_millis(500)).await;
    nodes.iter_mut().for_each(|node| drop(node.client.heard()));
    nodes[1].subscriptions.resource_updated("file:///a");
    all_hear(&mut nodes, &[A]).await;
}

#[tokio::test]
async fn a_change_before_the_first_connection_is_told_when_there_is_one() {
    let mut redis = redis().await;
    redis.kill().unwrap();
    let relay = || RedisRelay::new(&redis.url()).unwrap();
    let mut nodes = vec![Node::start(relay()).await, Node::start(relay()).await];
    nodes[0].subscriptions.tools_list_changed();
    sleep(Duration::from_millis(300)).await;
    redis.restart().await.unwrap();
    all_hear(&mut nodes, &[TOOLS, PROMPTS, A, B]).await;
}

#[tokio::test]
async fn a_connection_on_which_nothing_comes_is_made_anew() {
    let redis = redis().await;
    let mut nodes = cluster(&redis.url(), Duration::from_millis(250)).await;
    let process = redis.process_id().unwrap().to_string();
    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.unwrap().success());
    };
    // Its connections stay open, and nothing comes through them.
    signal("-STOP");
    nodes[0].subscriptions.tools_list_changed();
    sleep(Duration::from_millis(1500)).await;
    signal("-CONT");
    // Not the change alone: all, as whoever connects anew tells.
    all_hear(&mut nodes, &[TOOLS, PROMPTS, A, B]).await;
}

#[tokio::test]
async fn servers_with_channels_of_their_own_do_not_hear_each_other() {
    let redis = redis().await;
    let relay = |name: &str| RedisRelay::new(&redis.url()).unwrap().channel(name);
    let mut nodes = Vec::new();
    for name in ["one", "one", "two"] {
        nodes.push(Node::start(relay(name)).await);
    }
    all_hear(&mut nodes, &[TOOLS, PROMPTS, A, B]).await;
    nodes[0].subscriptions.tools_list_changed();
    nodes[1].hears(&[TOOLS]).await;
    nodes[2].subscriptions.resource_updated("file:///a");
    nodes[2].hears(&[A]).await;
    assert_eq!(nodes[2].heard, [A]);
}
