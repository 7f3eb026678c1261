//! The requests that are made of every server, and the check that it answers them rightly.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The progress token of every request.
pub const TOKEN: &str = "t";
/// The request id of every measured request: the bare server knows no other.
pub const ID: u64 = 1;

/// A call of one of the tools that every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// `echo`: answers with the text it is given, which has `text` bytes. One JSON reply.
    Echo { text: usize },
    /// `progress`: sends `steps` progress frames with a message of `message` bytes (none for 0),
    /// `pause_ms` apart, then answers "done".
    Progress { steps: u64, message: usize, pause_ms: u64 },
    /// `hold`: sends one progress frame, then never ends.
    Hold,
    /// `fan`: sends one progress frame, and one more at every beat of the server's clock.
    Fan,
}

/// The arguments of the tools, as the servers read them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Arguments {
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub steps: u64,
    #[serde(default)]
    pub message: usize,
    #[serde(default)]
    pub pause_ms: u64,
}

impl Arguments {
    /// The text that goes with each progress frame.
    pub fn text_of_message(&self) -> Option<String> {
        (self.message > 0).then(|| "m".repeat(self.message))
    }
}

impl Call {
    /// The tool's name.
    pub fn tool(self) -> &'static str {
        match self {
            Call::Echo { .. } => "echo",
            Call::Progress { .. } => "progress",
            Call::Hold => "hold",
            Call::Fan => "fan",
        }
    }

    /// Where the bare server finds what to do, since it parses no body: everybody else serves `/`.
    pub fn bare_path(self) -> String {
        match self {
            Call::Echo { text } => format!("/echo/{text}"),
            Call::Progress { steps, message, pause_ms } => format!("/progress/{steps}/{message}/{pause_ms}"),
            Call::Hold => "/hold".to_owned(),
            Call::Fan => "/fan".to_owned(),
        }
    }

    /// Reads [`Call::bare_path`].
    pub fn from_bare_path(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let tool = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        Some(match tool {
            "echo" => Call::Echo { text: number()? as usize },
            "progress" => Call::Progress { steps: number()?, message: number()? as usize, pause_ms: number()? },
            "hold" => Call::Hold,
            "fan" => Call::Fan,
            _ => return None,
        })
    }

    /// The request's body with this id.
    pub fn body(self, id: &Value) -> String {
        let arguments = match self {
            Call::Echo { text } => json!({ "text": "e".repeat(text) }),
            Call::Progress { steps, message, pause_ms } => json!({ "steps": steps, "message": message, "pause_ms": pause_ms }),
            Call::Hold | Call::Fan => json!({}),
        };
        json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1.0.0" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "progressToken": TOKEN,
                },
                "name": self.tool(),
                "arguments": arguments,
            },
        })
        .to_string()
    }

    /// The request's header fields, `host` and `content-length` aside.
    pub fn headers(self) -> [(&'static str, &'static str); 5] {
        [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", self.tool()),
        ]
    }

    /// Checks a whole reply to this call.
    pub fn verify(self, id: &Value, status: u16, content_type: &str, body: &[u8]) -> Result<(), String> {
        let wrong = |what: String| {
            let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
            Err(format!("{self:?}: {what}; status {status}, content type {content_type:?}, body {shown:?}"))
        };
        if status != 200 {
            return wrong("the status is not 200".to_owned());
        }
        let (media_type, text) = match self {
            Call::Echo { text } => ("application/json", "e".repeat(text)),
            Call::Progress { .. } => ("text/event-stream", "done".to_owned()),
            Call::Hold | Call::Fan => return wrong("a call that never ends has no whole reply".to_owned()),
        };
        if content_type.split(';').next() != Some(media_type) {
            return wrong(format!("the content type is not {media_type}"));
        }
        let mut messages = if media_type == "application/json" { vec![body.to_vec()] } else { events(body) };
        let Some(reply) = messages.pop() else {
            return wrong("there is no message".to_owned());
        };
        if let Call::Progress { steps, message, .. } = self {
            if messages.len() as u64 != steps {
                return wrong(format!("{} frames came, not {steps}", messages.len()));
            }
            for (index, frame) in messages.iter().enumerate() {
                if let Err(what) = verify_progress(frame, index as u64 + 1, steps, message) {
                    return wrong(what);
                }
            }
        }
        match serde_json::from_slice::<Value>(&reply) {
            Ok(reply) if &reply["id"] != id => wrong(format!("the id is {}, not {id}", reply["id"])),
            Ok(reply) if reply["result"]["content"][0]["text"] != *text => wrong("the result is not the expected one".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => wrong(format!("the reply is no JSON: {error}")),
        }
    }
}

fn verify_progress(frame: &[u8], progress: u64, total: u64, message: usize) -> Result<(), String> {
    let frame: Value = serde_json::from_slice(frame).map_err(|error| format!("frame {progress} is no JSON: {error}"))?;
    let params = &frame["params"];
    let right = frame["method"] == "notifications/progress"
        && params["progressToken"] == TOKEN
        && params["progress"].as_f64() == Some(progress as f64)
        && params["total"].as_f64() == Some(total as f64)
        && params["message"].as_str().map_or(0, str::len) == message;
    if right { Ok(()) } else { Err(format!("frame {progress} is wrong: {frame}")) }
}

/// The data of every event of a stream that has any, in order. Slow and plain: it runs outside the clock.
pub fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    for event in text.split("\n\n") {
        let data: Vec<&str> =
            event.lines().filter_map(|line| line.strip_prefix("data:")).map(|data| data.strip_prefix(' ').unwrap_or(data)).collect();
        let data = data.join("\n");
        if !data.is_empty() {
            events.push(data.into_bytes());
        }
    }
    events
}

/// A progress frame as the bare server writes it.
pub fn progress_frame(progress: u64, total: u64, message: usize) -> String {
    let message = if message > 0 { format!(",\"message\":\"{}\"", "m".repeat(message)) } else { String::new() };
    format!(
        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":\"{TOKEN}\",\
         \"progress\":{progress},\"total\":{total}{message}}}}}\n\n"
    )
}

/// A result as the bare server writes it.
pub fn result(text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::Progress { steps: 2, message: 3, pause_ms: 0 };

    fn stream(frames: &[String]) -> Vec<u8> {
        frames.concat().into_bytes()
    }

    fn right() -> Vec<String> {
        vec![
            progress_frame(1, 2, 3),
            ": keep-alive\n\n".to_owned(),
            progress_frame(2, 2, 3),
            format!("event: message\ndata: {}\n\n", result("done")),
        ]
    }

    #[test]
    fn a_right_stream_is_taken() {
        assert_eq!(CALL.verify(&json!(1), 200, "text/event-stream", &stream(&right())), Ok(()));
    }

    #[test]
    fn a_lost_swapped_or_foreign_frame_is_found() {
        for spoil in [
            (|f: &mut Vec<String>| drop(f.remove(0))) as fn(&mut Vec<String>),
            |f| f.swap(0, 2),
            |f| f[0] = progress_frame(1, 2, 4),
            |f| f[3] = format!("data: {}\n\n", result("other")),
            |f| drop(f.pop()),
        ] {
            let mut frames = right();
            spoil(&mut frames);
            assert!(CALL.verify(&json!(1), 200, "text/event-stream", &stream(&frames)).is_err(), "{frames:?}");
        }
    }

    #[test]
    fn a_wrong_id_status_or_media_type_is_found() {
        let body = result("eeeee").into_bytes();
        let call = Call::Echo { text: 5 };
        assert_eq!(call.verify(&json!(1), 200, "application/json", &body), Ok(()));
        assert!(call.verify(&json!("1"), 200, "application/json", &body).is_err());
        assert!(call.verify(&json!(1), 202, "application/json", &body).is_err());
        assert!(call.verify(&json!(1), 200, "text/event-stream", &body).is_err());
    }

    #[test]
    fn the_bare_path_tells_the_call() {
        for call in [Call::Echo { text: 7 }, CALL, Call::Hold, Call::Fan] {
            assert_eq!(Call::from_bare_path(&call.bare_path()), Some(call));
        }
    }
}
