//! `rust-mcp-sdk`'s `McpHttpHandler`, called by hyper without a framework between. It answers either always with JSON or
//! always with a stream, so there are two of its states here, and the header field `Mcp-Name` tells which one a call wants.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::wire::Arguments;
use harness::{Context, Error, RequestBody};
use http::{Request, Response};
use http_body_util::BodyExt;
use rust_mcp_sdk::id_generator::{FastIdGenerator, UuidGenerator};
use rust_mcp_sdk::mcp_http::{DEFAULT_MAX_LISTEN_STREAMS, GenericBody, McpAppState, McpHttpHandler};
use rust_mcp_sdk::mcp_server::{ServerHandler, ToMcpServerHandler};
use rust_mcp_sdk::schema::schema_utils::CallToolError;
use rust_mcp_sdk::schema::{
    CallToolRequestParams, CallToolResult, Implementation, ServerCapabilities, ServerCapabilitiesTools, ServerResult, TextContent,
};
use rust_mcp_sdk::{McpServer, RequestContext, ServerDetails};
use tokio::time::Instant;
use tower::service_fn;

struct Tools(Arc<Context>);

#[async_trait]
impl ServerHandler for Tools {
    async fn handle_call_tool_request(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext,
        runtime: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let arguments = serde_json::Value::Object(params.arguments.unwrap_or_default());
        let arguments: Arguments = serde_json::from_value(arguments).map_err(CallToolError::new)?;
        let text = match params.name.as_str() {
            "echo" => arguments.text,
            "progress" => {
                let message = arguments.text_of_message();
                let pause = Duration::from_millis(arguments.pause_ms);
                let mut pauses = (!pause.is_zero()).then(|| tokio::time::interval_at(Instant::now() + pause, pause));
                for step in 1..=arguments.steps {
                    progress(context, &*runtime, step, arguments.steps, message.clone()).await?;
                    if let Some(pauses) = &mut pauses {
                        pauses.tick().await;
                    }
                }
                "done".to_owned()
            }
            "hold" => {
                let _guard = self.0.guard();
                progress(context, &*runtime, 1, 1, None).await?;
                std::future::pending().await
            }
            "fan" => {
                let mut beats = self.0.beats();
                for step in 1.. {
                    progress(context, &*runtime, step, step, None).await?;
                    beats.changed().await.expect("the context outlives its requests");
                }
                String::new()
            }
            name => return Err(CallToolError::unknown_tool(name.to_owned())),
        };
        Ok(CallToolResult::text_content(vec![TextContent::new(text, None, None)]).into())
    }
}

async fn progress(
    context: &RequestContext,
    runtime: &dyn McpServer,
    progress: u64,
    total: u64,
    message: Option<String>,
) -> Result<(), CallToolError> {
    let token = context.progress_token.clone();
    runtime.report_progress(token, progress as f64, Some(total as f64), message).await.map_err(CallToolError::new)
}

fn state(tools: Tools, json: bool) -> Arc<McpAppState> {
    Arc::new(McpAppState {
        id_generator: Arc::new(UuidGenerator {}),
        stream_id_gen: Arc::new(FastIdGenerator::new(Some("s_"))),
        server_details: Arc::new(ServerDetails {
            server_info: Implementation {
                name: "bench".to_owned(),
                version: "1.0.0".to_owned(),
                title: None,
                description: None,
                icons: Vec::new(),
                website_url: None,
            },
            capabilities: ServerCapabilities { tools: Some(ServerCapabilitiesTools { list_changed: None }), ..Default::default() },
            instructions: None,
            meta: None,
        }),
        handler: tools.to_mcp_server_handler(),
        ping_interval: Duration::from_secs(15),
        transport_options: Arc::default(),
        enable_json_response: json,
        message_observer: None,
        extensions: Arc::default(),
        active_listen_streams: Arc::default(),
        max_listen_streams: DEFAULT_MAX_LISTEN_STREAMS,
    })
}

async fn answer(
    json: Arc<McpAppState>,
    stream: Arc<McpAppState>,
    handler: McpHttpHandler,
    request: Request<RequestBody>,
) -> Result<Response<GenericBody>, Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let state = if parts.headers.get("mcp-name").is_some_and(|name| name == "echo") { json } else { stream };
    let request = Request::from_parts(parts, std::str::from_utf8(&body)?);
    Ok(handler.handle_streamable_http(request, state).await?)
}

fn main() -> ExitCode {
    harness::main(false, |context| {
        let (json, stream) = (state(Tools(context.clone()), true), state(Tools(context), false));
        let handler = McpHttpHandler::new(Vec::new(), None);
        service_fn(move |request| answer(json.clone(), stream.clone(), handler.clone(), request))
    })
}
