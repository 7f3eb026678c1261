//! From a case's request to the bytes that go to the server.

use std::iter::once;

use crate::case::{Request, header_lines};
use crate::json::Json;
use crate::server::Target;

const VERSION: &str = "2026-07-28";
const PREFIX: &str = "io.modelcontextprotocol/";
/// Keys of `_meta` that the protocol leaves without its prefix.
const BARE_META: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];

/// The whole request, head and body.
pub(crate) fn bytes(request: &Request, target: &Target) -> Vec<u8> {
    let (body, message) = body(request);
    let headers = headers(request, message.as_ref());
    let has = |name: &str| {
        headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };

    let method = request.method.as_deref().unwrap_or("POST");
    let mut head = format!(
        "{method} {} HTTP/1.1\r\n",
        request.path.as_deref().unwrap_or(&target.path)
    );
    let mut line = |key: &str, value: &str| head.extend([key, ": ", value, "\r\n"]);
    if !has("host") {
        line("Host", &target.authority);
    }
    if request.chunked.is_some() {
        line("Transfer-Encoding", "chunked");
    } else if !has("content-length") && (!body.is_empty() || method == "POST") {
        line("Content-Length", &body.len().to_string());
    }
    if !request.keep_alive {
        line("Connection", "close");
    }
    for (key, value) in &headers {
        line(key, value);
    }
    head.push_str("\r\n");

    let mut bytes = head.into_bytes();
    match request.chunked {
        None => bytes.extend(body),
        Some(size) => {
            for chunk in body.chunks(size) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        }
    }
    bytes
}

/// The body, and the message in it where the case gives one as JSON.
fn body(request: &Request) -> (Vec<u8>, Option<Json>) {
    let message = match request {
        Request {
            raw: Some(text), ..
        } => return (text.clone().into_bytes(), None),
        Request {
            raw_hex: Some(hex), ..
        } => return (hex.0.clone(), None),
        Request {
            repeat: Some(parts),
            ..
        } => {
            return (
                parts
                    .iter()
                    .map(|(text, times)| text.repeat(*times))
                    .collect::<String>()
                    .into_bytes(),
                None,
            );
        }
        Request {
            body: Some(message),
            ..
        } => message.clone(),
        Request {
            rpc: Some((method, params)),
            ..
        } => call(request, method, params),
        _ => return (Vec::new(), None),
    };
    (message.to_string().into_bytes(), Some(message))
}

/// A whole JSON-RPC message from the short form.
fn call(request: &Request, method: &str, params: &Json) -> Json {
    let mut params = match params {
        Json::Object(members) => members.clone(),
        _ => Vec::new(),
    };
    match (&request.legacy, &request.meta) {
        (Some(_), _) | (None, Some(Json::Null)) => {}
        (None, changes) => set(&mut params, "_meta", meta(changes.as_ref())),
    }
    let id = request
        .id
        .clone()
        .unwrap_or_else(|| Json::Number("1".into()));
    let members = once(("jsonrpc", Json::String("2.0".into())))
        .chain((!request.notification).then_some(("id", id)))
        .chain([
            ("method", Json::String(method.into())),
            ("params", Json::Object(params)),
        ]);
    object(members)
}

/// The `_meta` of a well-behaved client, and the case's changes to it: null takes a key out.
fn meta(changes: Option<&Json>) -> Json {
    let text = |text: &str| Json::String(text.into());
    let mut meta = vec![
        (format!("{PREFIX}protocolVersion"), text(VERSION)),
        (
            format!("{PREFIX}clientInfo"),
            object([("name", text("wire")), ("version", text("1.0.0"))]),
        ),
        (format!("{PREFIX}clientCapabilities"), object([])),
    ];
    let Some(Json::Object(changes)) = changes else {
        return Json::Object(meta);
    };
    for (key, value) in changes {
        let whole = BARE_META.contains(&key.as_str()) || key.contains('/');
        let key = if whole {
            key.clone()
        } else {
            format!("{PREFIX}{key}")
        };
        match value {
            Json::Null => meta.retain(|(k, _)| *k != key),
            value => set(&mut meta, &key, value.clone()),
        }
    }
    Json::Object(meta)
}

/// The header lines: those of a well-behaved client, then the case's changes to them.
fn headers(request: &Request, message: Option<&Json>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: &str| headers.push((key.into(), value.into()));
    if !request.bare {
        add("Content-Type", "application/json");
        add("Accept", "application/json, text/event-stream");
        let version = match &request.legacy {
            Some(legacy) => legacy.version.as_deref(),
            None => Some(VERSION),
        };
        if let Some(version) = version {
            add("MCP-Protocol-Version", version);
        }
        let message = message.filter(|_| request.legacy.is_none());
        if let Some((method, message)) = message.and_then(|m| Some((m.get("method")?.as_str()?, m)))
        {
            add("Mcp-Method", method);
            if let Some(name) = mirrored(method, message) {
                add("Mcp-Name", name);
            }
        }
    }
    if let Some(Json::Object(changes)) = &request.headers {
        for (key, value) in changes {
            headers.retain(|(k, _)| !k.eq_ignore_ascii_case(key));
            let lines = header_lines(value).unwrap_or_default();
            headers.extend(lines.into_iter().map(|line| (key.clone(), line.to_owned())));
        }
    }
    headers
}

/// What `Mcp-Name` repeats from the body, where it can go into a header as it is.
fn mirrored<'a>(method: &str, message: &'a Json) -> Option<&'a str> {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    message
        .get("params")?
        .get(field)?
        .as_str()
        .filter(|name| name.bytes().all(|b| b.is_ascii_graphic()))
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(
        members
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn set(members: &mut Vec<(String, Json)>, key: &str, value: Json) {
    match members.iter_mut().find(|(k, _)| k == key) {
        Some((_, old)) => *old = value,
        None => members.push((key.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, bytes};
    use crate::case::{self, Request, Step};

    fn sent(request: &str) -> String {
        let case = format!(r#"[{{"id":"a","why":"w","request":{request}}}]"#);
        let mut cases = case::parse(&case).unwrap();
        let Some(Step::Exchange(exchange)) = cases.remove(0).steps.pop() else {
            panic!("no request")
        };
        let request: Request = exchange.request;
        String::from_utf8(bytes(
            &request,
            &Target::parse("http://127.0.0.1:1/mcp").unwrap(),
        ))
        .unwrap()
    }

    #[test]
    fn a_call_carries_standard_headers_and_metadata() {
        let body = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"#,
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1.0.0"},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: echo\r\n\r\n",
            body.len()
        );
        assert_eq!(
            sent(r#"{"rpc":["tools/call",{"name":"echo"}]}"#),
            head + body
        );
    }

    #[test]
    fn a_case_changes_what_it_names() {
        let changed = sent(
            r#"{"rpc":["x",null],"meta":{"clientInfo":null,"clientCapabilities":null,"progressToken":12,"logLevel":"info"},
                "id":36893488147419103233,"headers":{"accept":null,"mcp-method":["a","b"]},"method":"PUT","path":"/p","keep_alive":true}"#,
        );
        let body = concat!(
            r#"{"jsonrpc":"2.0","id":36893488147419103233,"method":"x","params":{"_meta":{"#,
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":12,"io.modelcontextprotocol/logLevel":"info"}}}"#,
        );
        let head = format!(
            "PUT /p HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nmcp-method: a\r\nmcp-method: b\r\n\r\n",
            body.len()
        );
        assert_eq!(changed, head + body);
        assert!(
            sent(r#"{"rpc":["n",{}],"meta":null,"notification":true}"#)
                .ends_with(r#"{"jsonrpc":"2.0","method":"n","params":{}}"#)
        );
    }

    #[test]
    fn a_client_of_an_earlier_revision_sends_no_metadata_and_mirrors_nothing() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
        let head = |version: &str| {
            format!(
                "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: {}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{version}\r\n",
                body.len()
            )
        };
        let call = r#""rpc":["tools/call",{"name":"echo"}]"#;
        assert_eq!(
            sent(&format!(r#"{{{call},"legacy":"2025-11-25"}}"#)),
            head("MCP-Protocol-Version: 2025-11-25\r\n") + body
        );
        assert_eq!(
            sent(&format!(r#"{{{call},"legacy":null}}"#)),
            head("") + body
        );
        assert_eq!(
            sent(&format!(
                r#"{{"body":{body},"legacy":null,"headers":{{"Mcp-Name":"x"}}}}"#
            )),
            head("Mcp-Name: x\r\n") + body
        );
    }

    #[test]
    fn bodies_go_out_as_they_are_given() {
        let bare = |form: &str| sent(&format!(r#"{{"bare":true,{form}}}"#));
        let head = |headers: &str| {
            format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\n{headers}Connection: close\r\n\r\n")
        };
        assert_eq!(bare(r#""raw":"{""#), head("Content-Length: 1\r\n") + "{");
        assert_eq!(
            bare(r#""raw_hex":"7b7d""#),
            head("Content-Length: 2\r\n") + "{}"
        );
        assert_eq!(
            bare(r#""repeat":[["ab",2],["c",1]]"#),
            head("Content-Length: 5\r\n") + "ababc"
        );
        assert_eq!(
            bare(r#""body":null"#),
            head("Content-Length: 4\r\n") + "null"
        );
        assert_eq!(
            bare(r#""raw":"abcde","chunked":3"#),
            head("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        );
        assert_eq!(
            bare(r#""method":"GET""#),
            "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n"
        );
    }
}
