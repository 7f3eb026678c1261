//! One function per method of the protocol.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use mcp_channel::{Channel, Message, RpcError};

use crate::app::App;
use crate::tools::Call;
use crate::{completion, discover, prompts, resources};

/// The handler of the MCP route.
pub async fn handle(
    State(app): State<App>,
    channel: Channel,
    headers: HeaderMap,
    message: Message,
) -> Result<Response, RpcError> {
    let reply = match message.method() {
        "server/discover" => discover::discover(),
        "tools/list" => app.tools.list(&message)?,
        "tools/call" => {
            return Call {
                app,
                channel,
                headers,
                message,
            }
            .run()
            .await;
        }
        "resources/list" => resources::list(&message)?,
        "resources/templates/list" => resources::templates(&message)?,
        "resources/read" => resources::read(&message)?,
        "prompts/list" => prompts::list(&message)?,
        "prompts/get" => prompts::get(&message)?,
        "completion/complete" => completion::complete(&message)?,
        "subscriptions/listen" => {
            let accepted = app.subscriptions.accept(channel, &message)?;
            return Ok(accepted.into_response());
        }
        // Also the notifications that nobody here waits for: the layer answers them 202.
        unknown => return Err(RpcError::method_not_found(unknown)),
    };
    Ok(reply.into_response())
}
