//! What every message of an MCP server has to be, whatever its case expects: one of the revision that its client speaks.

use serde_json::Value;

use crate::case::Request;
use crate::legacy;
use crate::response::Reply;
use crate::schema::{validate_reply, validate_server_message};

/// A stream may hold many thousand messages; a report names the first few that are wrong.
const REPORTED: usize = 5;

/// What is wrong with the JSON body or with the events of a reply.
pub(crate) fn problems(request: &Request, reply: &Reply) -> Vec<String> {
    let body = (reply.complete && reply.media_type() == "application/json")
        .then(|| ("body".to_owned(), reply.body.as_slice()));
    let events = reply.stream.events.iter().enumerate();
    let events = events.map(|(n, event)| (format!("events[{n}]"), event.data.as_bytes()));
    let bad = body
        .into_iter()
        .chain(events)
        .filter_map(|(place, message)| {
            let problem = check(request, message).err()?;
            Some(format!("{place} does not meet the schema: {problem}"))
        });
    bad.take(REPORTED).collect()
}

fn check(request: &Request, message: &[u8]) -> Result<(), String> {
    let message: Value = serde_json::from_slice(message).map_err(|error| error.to_string())?;
    let method = request.rpc_method();
    if request.legacy.is_some() {
        return legacy::check(method, &message);
    }
    match method.filter(|method| crate::schema::has_result(method)) {
        Some(method) => validate_reply(method, &message),
        None => validate_server_message(&message),
    }
}
