//! `rmcp`'s `StreamableHttpService`, called by hyper without a router between: no sessions, JSON replies where they
//! suffice, the handler's `call_tool` written out instead of its macros' router. That is the cheapest set-up we found.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use harness::Context;
use harness::wire::Arguments;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use tokio::time::Instant;

#[derive(Clone)]
struct Tools(Arc<Context>);

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let arguments = serde_json::Value::Object(request.arguments.unwrap_or_default());
        let arguments: Arguments = serde_json::from_value(arguments).map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let text = match &*request.name {
            "echo" => arguments.text,
            "progress" => {
                let message = arguments.text_of_message();
                let pause = Duration::from_millis(arguments.pause_ms);
                let mut pauses = (!pause.is_zero()).then(|| tokio::time::interval_at(Instant::now() + pause, pause));
                for step in 1..=arguments.steps {
                    progress(&context, step, arguments.steps, message.clone()).await?;
                    if let Some(pauses) = &mut pauses {
                        pauses.tick().await;
                    }
                }
                "done".to_owned()
            }
            "hold" => {
                let _guard = self.0.guard();
                progress(&context, 1, 1, None).await?;
                std::future::pending().await
            }
            "fan" => {
                let mut beats = self.0.beats();
                for step in 1.. {
                    progress(&context, step, step, None).await?;
                    beats.changed().await.expect("the context outlives its requests");
                }
                String::new()
            }
            _ => return Err(ErrorData::invalid_params("unknown tool", None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn progress(context: &RequestContext<RoleServer>, progress: u64, total: u64, message: Option<String>) -> Result<(), ErrorData> {
    let token = context.meta.get_progress_token().ok_or_else(|| ErrorData::invalid_params("no progress token", None))?;
    let mut params = ProgressNotificationParam::new(token, progress as f64).with_total(total as f64);
    params.message = message;
    context.peer.notify_progress(params).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn main() -> ExitCode {
    harness::main(false, |context| {
        let tools = Tools(context);
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config)
    })
}
