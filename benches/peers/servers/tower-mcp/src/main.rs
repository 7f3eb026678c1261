//! `tower-mcp`'s `HttpTransport` with the feature `protocol-2026-07-28`, as its own axum router. Tools take their raw
//! arguments, so that no schema is checked, and no result carries the server's name; the rest is its default, which
//! answers with JSON where that suffices.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use harness::wire::Arguments;
use serde_json::Value;
use tokio::time::Instant;
use tower_mcp::extract::{Context, RawArgs, State};
use tower_mcp::transport::http::HttpTransport;
use tower_mcp::{CallToolResult, McpRouter, ToolBuilder};

fn arguments(value: Value) -> Result<Arguments, tower_mcp::Error> {
    serde_json::from_value(value).map_err(|error| tower_mcp::Error::invalid_params(error.to_string()))
}

/// `report_progress` never waits: a frame that finds 64 others unsent is lost. Yielding after each frame lets the
/// transport take it, so that all arrive.
async fn progress(context: &Context, progress: u64, total: u64, message: Option<&str>) {
    context.report_progress(progress as f64, Some(total as f64), message).await;
    tokio::task::yield_now().await;
}

fn router(shared: Arc<harness::Context>) -> McpRouter {
    let echo = ToolBuilder::new("echo")
        .description("Answers with its text")
        .extractor_handler((), |RawArgs(value): RawArgs| async move { Ok(CallToolResult::text(arguments(value)?.text)) })
        .build();
    let many = ToolBuilder::new("progress")
        .description("Sends progress frames")
        .extractor_handler((), |context: Context, RawArgs(value): RawArgs| async move {
            let arguments = arguments(value)?;
            let message = arguments.text_of_message();
            let pause = Duration::from_millis(arguments.pause_ms);
            let mut pauses = (!pause.is_zero()).then(|| tokio::time::interval_at(Instant::now() + pause, pause));
            for step in 1..=arguments.steps {
                progress(&context, step, arguments.steps, message.as_deref()).await;
                if let Some(pauses) = &mut pauses {
                    pauses.tick().await;
                }
            }
            Ok(CallToolResult::text("done"))
        })
        .build();
    let hold = ToolBuilder::new("hold")
        .description("Sends one progress frame and never ends")
        .extractor_handler(shared.clone(), |State(shared): State<Arc<harness::Context>>, context: Context| async move {
            let _guard = shared.guard();
            progress(&context, 1, 1, None).await;
            std::future::pending::<()>().await;
            Ok(CallToolResult::text("never"))
        })
        .build();
    let fan = ToolBuilder::new("fan")
        .description("Sends a progress frame at every beat")
        .extractor_handler(shared, |State(shared): State<Arc<harness::Context>>, context: Context| async move {
            let mut beats = shared.beats();
            for step in 1.. {
                context.report_progress(step as f64, Some(step as f64), None).await;
                beats.changed().await.expect("the context outlives its requests");
            }
            Ok(CallToolResult::text("never"))
        })
        .build();
    McpRouter::new().server_info("bench", "1.0.0").tool(echo).tool(many).tool(hold).tool(fan)
}

fn main() -> ExitCode {
    harness::main(false, |context| HttpTransport::new(router(context)).stamp_server_info(false).into_router())
}
