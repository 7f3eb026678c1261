//! rmcp's client against a running server. Usage: `rmcp URL`

// Logging is deprecated in this revision; that it still works is what is checked.
#![allow(deprecated)]

use std::{process::ExitCode, time::Instant};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, LoggingLevel,
        LoggingMessageNotificationParam, NumberOrString, ProgressNotificationParam,
        ProtocolVersion, RequestMetaObject, ServerNotification, ServerResult, SubscriptionFilter,
    },
    service::{NotificationContext, PeerRequestOptions, RequestHandle, SubscriptionEnd},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use rust_clients::{Checks, Outcome, REVISION, Seen, Stats, WATCHED, need, reason, until, within};
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Handler {
    progress: Seen<f64>,
    logs: Seen<LoggingLevel>,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.push(params.progress);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logs.push(params.level);
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }
}

type Client = Peer<RoleClient>;

fn request(tool: &'static str, arguments: Value) -> ClientRequest {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    let mut meta = RequestMetaObject::new();
    meta.set_log_level(LoggingLevel::Info);
    params.meta = Some(meta);
    ClientRequest::CallToolRequest(CallToolRequest::new(params))
}

async fn start(
    client: &Client,
    tool: &'static str,
    arguments: Value,
) -> Result<RequestHandle<RoleClient>, String> {
    client
        .send_cancellable_request(request(tool, arguments), PeerRequestOptions::no_options())
        .await
        .map_err(reason)
}

async fn call(
    client: &Client,
    tool: &'static str,
    arguments: Value,
) -> Result<rmcp::model::CallToolResult, String> {
    match start(client, tool, arguments)
        .await?
        .await_response()
        .await
        .map_err(reason)?
    {
        ServerResult::CallToolResult(result) => Ok(result),
        other => Err(format!("`{tool}` was answered with {other:?}")),
    }
}

async fn stats(client: &Client) -> Result<Stats, String> {
    Stats::read(
        call(client, "stats", json!({}))
            .await?
            .structured_content
            .as_ref(),
    )
}

async fn discovers(client: &Client) -> Outcome {
    let version = client
        .peer_info()
        .map(|info| info.protocol_version.to_string());
    need(version.as_deref() == Some(REVISION), || {
        format!("negotiated {version:?}")
    })?;
    let tools = client.list_all_tools().await.map_err(reason)?;
    need(tools.iter().any(|tool| tool.name == "slow"), || {
        "tools/list has no `slow`".into()
    })
}

async fn calls(client: &Client, handler: &Handler) -> Outcome {
    let result = call(client, "slow", json!({"steps": 4, "delayMs": 200})).await?;
    let end = Instant::now();
    let values = handler.progress.values();
    need(values == [1.0, 2.0, 3.0, 4.0], || {
        format!("progress was {values:?}")
    })?;
    let levels = handler.logs.values();
    need(
        levels.iter().all(|level| *level == LoggingLevel::Info),
        || format!("logs: {levels:?}"),
    )?;
    handler.progress.live("progress", end, 4)?;
    handler.logs.live("logs", end, 4)?;
    let text = result.content.first().and_then(|content| content.as_text());
    need(text.is_some_and(|text| text.text == "slow done"), || {
        format!("result was {result:?}")
    })
}

fn everything() -> SubscriptionFilter {
    SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .resource_subscriptions(vec![WATCHED.to_string()])
        .build()
}

async fn hears(client: &Client) -> Outcome {
    let mut subscription = within(5, "the acknowledgement", client.listen(everything()))
        .await?
        .map_err(reason)?;
    // Its ids are numbers: an event stamped with anything else is an error of `next`.
    let id = subscription.id().clone();
    need(matches!(id, NumberOrString::Number(_)), || {
        format!("its own id is {id:?}")
    })?;
    need(*subscription.acknowledged() == everything(), || {
        format!("acknowledged {:?}", subscription.acknowledged())
    })?;
    call(client, "touch", json!({})).await?;
    let mut heard = Vec::new();
    while heard.len() < 4 {
        let event = within(
            5,
            &format!("hearing four kinds (heard {heard:?})"),
            subscription.next(),
        )
        .await?
        .map_err(reason)?;
        let kind = match event {
            Some(ServerNotification::ToolListChangedNotification(_)) => "tools",
            Some(ServerNotification::PromptListChangedNotification(_)) => "prompts",
            Some(ServerNotification::ResourceListChangedNotification(_)) => "resources",
            Some(ServerNotification::ResourceUpdatedNotification(update)) => {
                need(update.params.uri == WATCHED, || {
                    format!("update of {}", update.params.uri)
                })?;
                "resource"
            }
            other => return Err(format!("heard {other:?}")),
        };
        need(!heard.contains(&kind), || format!("heard {kind} twice"))?;
        heard.push(kind);
    }
    subscription.cancel().await.map_err(reason)
}

async fn ends_gracefully(client: &Client) -> Outcome {
    let mut subscription = client.listen(everything()).await.map_err(reason)?;
    call(client, "close_subscriptions", json!({})).await?;
    let event = within(5, "the end of the subscription", subscription.next())
        .await?
        .map_err(reason)?;
    need(event.is_none(), || {
        format!("heard {event:?} instead of the end")
    })?;
    let end = subscription.end();
    need(matches!(end, Some(SubscriptionEnd::Graceful(_))), || {
        format!("it ended as {end:?}")
    })
}

async fn ends_itself(client: &Client) -> Outcome {
    let mut subscription = client.listen(everything()).await.map_err(reason)?;
    let before = stats(client).await?.subscriptions;
    subscription.cancel().await.map_err(reason)?;
    until(
        "the server's forgetting the subscription",
        || stats(client),
        |now| now.subscriptions == before - 1,
    )
    .await
}

async fn cancels(client: &Client, stream: bool) -> Outcome {
    let before = stats(client).await?;
    let running = start(client, "hold", json!({"ms": 20_000, "stream": stream})).await?;
    until(
        "the start of the call",
        || stats(client),
        |now| now.started == before.started + 1,
    )
    .await?;
    running
        .cancel(Some("not needed any more".into()))
        .await
        .map_err(reason)?;
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
    let url = std::env::args().nth(1).expect("usage: rmcp URL");
    let handler = Handler::default();
    let mut checks = Checks::default();
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let transport = StreamableHttpClientTransport::from_config(
        StreamableHttpClientTransportConfig::with_uri(url),
    );
    let connecting = handler.clone().serve_with_lifecycle(transport, lifecycle);
    let client = match within(10, "connecting", connecting).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            checks
                .run("discovers the revision", async { Err(reason(error)) })
                .await;
            return checks.status();
        }
        Err(late) => {
            checks
                .run("discovers the revision", async { Err(late) })
                .await;
            return checks.status();
        }
    };
    let peer = client.peer();
    checks.run("discovers the revision", discovers(peer)).await;
    checks
        .run(
            "progress and logs arrive while the tool runs, then the result",
            calls(peer, &handler),
        )
        .await;
    checks
        .run(
            "listens and hears four kinds of change with an id of its own type",
            hears(peer),
        )
        .await;
    checks
        .run(
            "reads the server's end of the subscription as graceful",
            ends_gracefully(peer),
        )
        .await;
    checks
        .run("ends a subscription of its own accord", ends_itself(peer))
        .await;
    checks
        .run(
            "cancels a streaming call in flight and the work stops",
            cancels(peer, true),
        )
        .await;
    checks
        .run(
            "cancels a silent call in flight and the work stops",
            cancels(peer, false),
        )
        .await;
    checks.status()
}
