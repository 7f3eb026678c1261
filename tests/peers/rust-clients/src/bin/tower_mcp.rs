//! tower-mcp's client against a running server. Usage: `tower_mcp URL`

use std::{process::ExitCode, sync::Arc, time::Instant};

use rust_clients::{Checks, Outcome, REVISION, Seen, Stats, WATCHED, need, reason, until, within};
use serde_json::{Value, json};
use tower_mcp::{
    client::{ClientHandler, HttpClientTransport, McpClient, ServerNotification},
    protocol::{LogLevel, RequestId, SubscriptionFilter},
};

#[derive(Clone, Default)]
struct Handler {
    progress: Seen<f64>,
    logs: Seen<LogLevel>,
    changes: Seen<(RequestId, &'static str)>,
}

#[async_trait::async_trait]
impl ClientHandler for Handler {
    async fn on_notification(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::Progress(params) => self.progress.push(params.progress),
            ServerNotification::LogMessage(params) => self.logs.push(params.level),
            ServerNotification::Subscription {
                subscription_id,
                notification,
            } => {
                let kind = match *notification {
                    ServerNotification::ToolsListChanged => "tools",
                    ServerNotification::PromptsListChanged => "prompts",
                    ServerNotification::ResourcesListChanged => "resources",
                    ServerNotification::ResourceUpdated { uri } if uri == WATCHED => "resource",
                    _ => "something else",
                };
                self.changes.push((subscription_id, kind));
            }
            _ => {}
        }
    }
}

async fn call(
    client: &McpClient,
    tool: &str,
    arguments: Value,
) -> Result<tower_mcp::CallToolResult, String> {
    client.call_tool(tool, arguments).await.map_err(reason)
}

async fn stats(client: &McpClient) -> Result<Stats, String> {
    Stats::read(
        call(client, "stats", json!({}))
            .await?
            .structured_content
            .as_ref(),
    )
}

async fn discovers(client: &McpClient) -> Outcome {
    within(
        10,
        "discovering",
        client.discover("peer-tower-mcp", "1.0.0"),
    )
    .await?
    .map_err(reason)?;
    let version = client.selected_protocol_version().await;
    need(version.as_deref() == Some(REVISION), || {
        format!("negotiated {version:?}")
    })?;
    let tools = client.list_all_tools().await.map_err(reason)?;
    need(tools.iter().any(|tool| tool.name == "slow"), || {
        "tools/list has no `slow`".into()
    })
}

async fn calls(client: &McpClient, handler: &Handler) -> Outcome {
    client.set_request_log_level(Some(LogLevel::Info)).await;
    let result = call(client, "slow", json!({"steps": 4, "delayMs": 200})).await?;
    let end = Instant::now();
    client.set_request_log_level(None).await;
    let values = handler.progress.values();
    need(values == [1.0, 2.0, 3.0, 4.0], || {
        format!("progress was {values:?}")
    })?;
    let levels = handler.logs.values();
    need(levels.iter().all(|level| *level == LogLevel::Info), || {
        format!("logs: {levels:?}")
    })?;
    handler.progress.live("progress", end, 4)?;
    handler.logs.live("logs", end, 4)?;
    need(result.all_text() == "slow done", || {
        format!("result was {result:?}")
    })
}

fn everything() -> SubscriptionFilter {
    SubscriptionFilter {
        tools_list_changed: Some(true),
        prompts_list_changed: Some(true),
        resources_list_changed: Some(true),
        resource_subscriptions: Some(vec![WATCHED.to_string()]),
        ..SubscriptionFilter::default()
    }
}

async fn hears(client: &McpClient, handler: &Handler) -> Outcome {
    let mut subscription = client
        .listen_subscriptions(everything())
        .await
        .map_err(reason)?;
    let id = subscription.id().clone();
    need(matches!(id, RequestId::Number(_)), || {
        format!("its own id is {id:?}")
    })?;
    let honoured = within(5, "the acknowledgement", subscription.acknowledged())
        .await?
        .map_err(reason)?;
    // The filter type has no equality of its own.
    let json = |filter: &SubscriptionFilter| serde_json::to_value(filter).map_err(reason);
    need(json(&honoured)? == json(&everything())?, || {
        format!("acknowledged {honoured:?}")
    })?;
    call(client, "touch", json!({})).await?;
    within(5, "hearing four kinds", async {
        while handler.changes.values().len() < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await
    .map_err(|late| format!("{late}: heard {:?}", handler.changes.values()))?;
    let mut heard = handler.changes.values();
    need(heard.iter().all(|(theirs, _)| *theirs == id), || {
        format!("of {id:?}, heard {heard:?}")
    })?;
    heard.sort_by_key(|(_, kind)| *kind);
    let kinds: Vec<_> = heard.iter().map(|(_, kind)| *kind).collect();
    need(
        kinds == ["prompts", "resource", "resources", "tools"],
        || format!("heard {kinds:?}"),
    )?;
    subscription.cancel().await.map_err(reason)
}

async fn ends_gracefully(client: &McpClient) -> Outcome {
    let mut subscription = client
        .listen_subscriptions(everything())
        .await
        .map_err(reason)?;
    within(5, "the acknowledgement", subscription.acknowledged())
        .await?
        .map_err(reason)?;
    call(client, "close_subscriptions", json!({})).await?;
    // Only the completion result, with this subscription's id, is `Ok` here.
    within(5, "the end of the subscription", subscription.wait())
        .await?
        .map_err(reason)?;
    Ok(())
}

async fn ends_itself(client: &McpClient) -> Outcome {
    let mut subscription = client
        .listen_subscriptions(everything())
        .await
        .map_err(reason)?;
    within(5, "the acknowledgement", subscription.acknowledged())
        .await?
        .map_err(reason)?;
    let before = stats(client).await?.subscriptions;
    subscription.cancel().await.map_err(reason)?;
    until(
        "the server's forgetting the subscription",
        || stats(client),
        |now| now.subscriptions == before - 1,
    )
    .await
}

async fn cancels(client: &Arc<McpClient>, stream: bool) -> Outcome {
    let before = stats(client).await?;
    let task = tokio::spawn({
        let client = client.clone();
        async move {
            client
                .call_tool("hold", json!({"ms": 20_000, "stream": stream}))
                .await
        }
    });
    until(
        "the start of the call",
        || stats(client),
        |now| now.started == before.started + 1,
    )
    .await?;
    // Dropping the call's future is this client's way to cancel it.
    task.abort();
    until(
        "the handler's cancellation",
        || stats(client),
        |now| now.cancelled == before.cancelled + 1,
    )
    .await?;
    let after = stats(client).await?;
    need(after.completed == before.completed, || {
        "the handler completed".into()
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    let url = std::env::args().nth(1).expect("usage: tower_mcp URL");
    let handler = Handler::default();
    let mut checks = Checks::default();
    let connected = McpClient::builder()
        .request_progress()
        .connect(HttpClientTransport::new(url), handler.clone())
        .await;
    let client = match connected {
        Ok(client) => Arc::new(client),
        Err(error) => {
            checks
                .run("discovers the revision", async { Err(reason(error)) })
                .await;
            return checks.status();
        }
    };
    checks
        .run("discovers the revision", discovers(&client))
        .await;
    checks
        .run(
            "progress and logs arrive while the tool runs, then the result",
            calls(&client, &handler),
        )
        .await;
    checks
        .run(
            "listens and hears four kinds of change with an id of its own type",
            hears(&client, &handler),
        )
        .await;
    checks
        .run(
            "reads the server's end of the subscription as graceful",
            ends_gracefully(&client),
        )
        .await;
    checks
        .run(
            "ends a subscription of its own accord",
            ends_itself(&client),
        )
        .await;
    checks
        .run(
            "cancels a streaming call in flight and the work stops",
            cancels(&client, true),
        )
        .await;
    checks
        .run(
            "cancels a silent call in flight and the work stops",
            cancels(&client, false),
        )
        .await;
    checks.status()
}
