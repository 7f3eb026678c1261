//! Requests that reach no handler: each with its status, its code, its id, and what it says.

mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody};
use mcp_channel::{AllowedHosts, AllowedOrigins, McpChannelLayer, RequestBody};
use serde_json::{Value, json};
use support::request::{Call, Reply};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Sends a request through the layer. What reaches the handler gets a result.
async fn answer<B>(layer: McpChannelLayer, request: Request<B>) -> Reply
where
    B: Body,
    B::Error: Into<BoxError>,
{
    sent(layer, request).await.0
}

/// Sends a request that must not reach the handler.
async fn refusal<B>(layer: McpChannelLayer, request: Request<B>) -> Reply
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let (reply, called) = sent(layer, request).await;
    assert!(!called, "the handler was called");
    reply
}

async fn sent<B>(layer: McpChannelLayer, request: Request<B>) -> (Reply, bool)
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let called = AtomicBool::new(false);
    let service = layer.layer(service_fn(|_: Request<RequestBody>| async {
        called.store(true, Ordering::Relaxed);
        let reply = mcp_channel::Reply::result(json!({"content": []}));
        Ok::<_, Infallible>(Response::<Full<Bytes>>::from(reply))
    }));
    let response = service.oneshot(request).await.unwrap();
    let reply = Reply::read(response).await;
    (reply, called.into_inner())
}

/// A request as it is built up to have several faults.
#[derive(Clone)]
struct Faulty {
    call: Call,
    method: http::Method,
    layer: McpChannelLayer,
    body: Option<&'static str>,
}

impl Faulty {
    fn request(&self) -> Request<Full<Bytes>> {
        let body = self
            .body
            .map_or_else(|| self.call.message.to_string(), str::to_owned);
        let mut request = self.call.with_body(Full::from(body));
        *request.method_mut() = self.method.clone();
        request
    }
}

/// A fault, and how it is answered alone: status, code, and a word of the message.
struct Rule {
    name: &'static str,
    fault: fn(&mut Faulty),
    status: u16,
    code: i64,
    says: &'static str,
    /// Whether the request's id could be read.
    id: bool,
}

const fn rule(
    name: &'static str,
    status: u16,
    code: i64,
    says: &'static str,
    id: bool,
    fault: fn(&mut Faulty),
) -> Rule {
    Rule {
        name,
        fault,
        status,
        code,
        says,
        id,
    }
}

/// Every fault, in the order in which they are judged. A request that has two is answered for the
/// first.
fn rules() -> Vec<Rule> {
    vec![
        rule(
            "origin",
            403,
            -32600,
            "`Origin` 'https://evil.example'",
            false,
            |f| {
                f.call
                    .headers
                    .insert("origin", "https://evil.example".parse().unwrap());
            },
        ),
        rule("host", 403, -32600, "`Host` 'evil.example'", false, |f| {
            f.call
                .headers
                .insert("host", "evil.example".parse().unwrap());
            f.layer = f.layer.clone().allowed_hosts(AllowedHosts::loopback());
        }),
        rule("method", 405, -32600, "PUT", false, |f| {
            f.method = http::Method::PUT
        }),
        rule("content type", 415, -32600, "`Content-Type`", false, |f| {
            f.call
                .headers
                .insert("content-type", "text/plain".parse().unwrap());
        }),
        rule("charset", 415, -32600, "`charset`", false, |f| {
            f.call.headers.insert(
                "content-type",
                "application/json; charset=utf-16".parse().unwrap(),
            );
        }),
        rule(
            "content encoding",
            415,
            -32600,
            "`Content-Encoding` is 'gzip'",
            false,
            |f| {
                f.call
                    .headers
                    .insert("content-encoding", "gzip".parse().unwrap());
            },
        ),
        rule("accept", 406, -32600, "`Accept`", false, |f| {
            f.call
                .headers
                .insert("accept", "text/html".parse().unwrap());
        }),
        rule("size", 413, -32600, "`body_limit`", false, |f| {
            f.layer = f.layer.clone().body_limit(1);
        }),
        rule("syntax", 400, -32700, "JSON", false, |f| {
            f.body = Some(r#"{"id":1,"#)
        }),
        rule("jsonrpc", 400, -32600, "`jsonrpc`", true, |f| {
            f.call.message["jsonrpc"] = "1.0".into();
        }),
        rule("id", 400, -32600, "`id`", false, |f| {
            f.call.message["id"] = json!([1])
        }),
        rule("method member", 400, -32600, "`method`", true, |f| {
            f.call.message["method"] = json!(1);
        }),
        rule("params", 400, -32600, "`params`", true, |f| {
            f.call.message["params"] = json!([])
        }),
        rule(
            "version header",
            400,
            -32020,
            "`MCP-Protocol-Version`",
            true,
            |f| {
                f.call.headers.remove("mcp-protocol-version");
            },
        ),
        rule("version", 400, -32022, "'2024-11-05'", true, |f| {
            if let Some(version) = f.call.headers.get_mut("mcp-protocol-version") {
                *version = "2024-11-05".parse().unwrap();
            }
            if let Some(meta) = f.call.message["params"]["_meta"].as_object_mut() {
                meta[META_VERSION] = "2024-11-05".into();
            }
        }),
        rule("method header", 400, -32020, "`Mcp-Method`", true, |f| {
            f.call
                .headers
                .insert("mcp-method", "tools/list".parse().unwrap());
        }),
        rule("name header", 400, -32020, "`Mcp-Name`", true, |f| {
            f.call.headers.insert("mcp-name", "other".parse().unwrap());
        }),
        rule("capabilities", 400, -32602, META_CAPABILITIES, true, |f| {
            if let Some(meta) = f.call.message["params"]["_meta"].as_object_mut() {
                meta.remove(META_CAPABILITIES);
            }
        }),
        rule("client info", 400, -32602, "clientInfo", true, |f| {
            if let Some(meta) = f.call.message["params"]["_meta"].as_object_mut() {
                meta.insert("io.modelcontextprotocol/clientInfo".into(), json!("me"));
            }
        }),
        rule("log level", 400, -32602, "logLevel", true, |f| {
            if let Some(meta) = f.call.message["params"]["_meta"].as_object_mut() {
                meta.insert("io.modelcontextprotocol/logLevel".into(), json!("loud"));
            }
        }),
        rule("progress token", 400, -32602, "progressToken", true, |f| {
            if let Some(meta) = f.call.message["params"]["_meta"].as_object_mut() {
                meta.insert("progressToken".into(), json!(1.5));
            }
        }),
    ]
}

fn sound() -> Faulty {
    Faulty {
        call: Call::tool("x").id("i"),
        method: http::Method::POST,
        layer: McpChannelLayer::new(),
        body: None,
    }
}

fn assert_refused(reply: &Reply, rule: &Rule, context: &str) {
    let name = rule.name;
    assert_eq!(
        reply.status.as_u16(),
        rule.status,
        "{name} {context}: {reply:?}"
    );
    assert_eq!(
        reply.headers["content-type"], "application/json",
        "{name} {context}"
    );
    let message = reply.json();
    assert_eq!(
        message["error"]["code"], rule.code,
        "{name} {context}: {message}"
    );
    let text = message["error"]["message"].as_str().unwrap();
    assert!(text.contains(rule.says), "{name} {context}: {text}");
    let id = rule.id.then(|| json!("i"));
    assert_eq!(message.get("id"), id.as_ref(), "{name} {context}");
}

#[tokio::test]
async fn a_sound_request_reaches_the_handler() {
    let sound = sound();
    let reply = answer(sound.layer.clone(), sound.request()).await;
    assert!(reply.json()["result"].is_object());
}

#[tokio::test]
async fn each_fault_has_its_answer() {
    // Clients of earlier revisions make no difference to those of the modern one.
    for (legacy, rule) in [true, false]
        .into_iter()
        .flat_map(|legacy| rules().into_iter().map(move |rule| (legacy, rule)))
    {
        let mut faulty = sound();
        (rule.fault)(&mut faulty);
        faulty.layer = faulty.layer.legacy_clients(legacy);
        let reply = refusal(faulty.layer.clone(), faulty.request()).await;
        assert_refused(&reply, &rule, "alone");
        let allow = reply
            .headers
            .get("allow")
            .map(|value| value.to_str().unwrap());
        assert_eq!(allow, (rule.status == 405).then_some("POST"));
    }
}

#[tokio::test]
async fn the_first_fault_is_answered() {
    let rules = rules();
    for (n, first) in rules.iter().enumerate() {
        for later in &rules[n + 1..] {
            let mut faulty = sound();
            // The later one first, so that its own making cannot hide the other.
            (later.fault)(&mut faulty);
            (first.fault)(&mut faulty);
            let reply = refusal(faulty.layer.clone(), faulty.request()).await;
            // A fault of the id makes it unreadable for all that are judged before it.
            let unreadable = later.name == "id" && first.id;
            let expected = Rule {
                id: first.id && !unreadable,
                ..*first
            };
            assert_refused(&reply, &expected, &format!("before {}", later.name));
        }
    }
}

#[tokio::test]
async fn a_rejection_is_json_whatever_the_client_accepts() {
    for accept in ["text/event-stream", "application/json", "*/*", "text/html"] {
        for rule in rules() {
            let mut faulty = sound();
            faulty
                .call
                .headers
                .insert("accept", accept.parse().unwrap());
            (rule.fault)(&mut faulty);
            let reply = refusal(faulty.layer.clone(), faulty.request()).await;
            if accept != "text/html" {
                assert_refused(&reply, &rule, accept);
            }
            assert_eq!(reply.headers["content-type"], "application/json");
            assert!(!reply.messages.is_empty());
        }
    }
}

// Origins and hosts

async fn with_origins(layer: McpChannelLayer, origins: &[&str]) -> u16 {
    let mut request = Call::tool("x").request();
    for origin in origins {
        request
            .headers_mut()
            .append("origin", origin.parse().unwrap());
    }
    answer(layer, request).await.status.as_u16()
}

#[tokio::test]
async fn an_origin_must_be_allowed() {
    let layer = McpChannelLayer::new;
    let listed = || AllowedOrigins::list(["https://app.example.com".parse().unwrap()]);
    let any = layer().allowed_origins(AllowedOrigins::any());
    let loopback = layer().allowed_origins(AllowedOrigins::loopback());
    let list = layer().allowed_origins(listed());
    let both = layer().allowed_origins(AllowedOrigins::loopback().or(listed()));
    for (layer, origin, status) in [
        (layer(), "http://localhost", 403),
        (layer(), "null", 403),
        (layer(), "", 403),
        (any.clone(), "null", 200),
        (any, "https://evil.example", 200),
        (loopback.clone(), "http://localhost:3000", 200),
        (loopback.clone(), "https://127.0.0.1", 200),
        (loopback.clone(), "http://127.9.9.9:1", 200),
        (loopback.clone(), "http://[::1]:8080", 200),
        (loopback.clone(), "http://localhost.evil.example", 403),
        (loopback.clone(), "http://127.0.0.1.evil.example", 403),
        (loopback.clone(), "http://[::2]", 403),
        (loopback.clone(), "ftp://localhost", 403),
        (loopback, "null", 403),
        (list.clone(), "https://app.example.com", 200),
        (list.clone(), "HTTPS://APP.Example.com:443", 200),
        (list.clone(), "http://app.example.com", 403),
        (list.clone(), "https://app.example.com:444", 403),
        (list.clone(), "https://app.example.com.evil.example", 403),
        (list, "https://app.example.com/", 403),
        (both.clone(), "https://app.example.com", 200),
        (both, "http://localhost", 200),
    ] {
        assert_eq!(with_origins(layer, &[origin]).await, status, "{origin}");
    }
}

#[tokio::test]
async fn several_origins_are_refused_even_where_all_are_allowed() {
    let any = McpChannelLayer::new().allowed_origins(AllowedOrigins::any());
    assert_eq!(
        with_origins(any.clone(), &["http://a", "http://a"]).await,
        403
    );
    assert_eq!(with_origins(any, &[]).await, 200);
}

/// The status for a URI and the `Host` headers.
async fn with_hosts(hosts: AllowedHosts, uri: &str, lines: &[&str]) -> u16 {
    let mut request = Call::tool("x").request();
    *request.uri_mut() = uri.parse().unwrap();
    for line in lines {
        request.headers_mut().append("host", line.parse().unwrap());
    }
    let layer = McpChannelLayer::new().allowed_hosts(hosts);
    answer(layer, request).await.status.as_u16()
}

#[tokio::test]
async fn a_host_must_be_allowed_by_header_and_authority() {
    let list = |host: &str| AllowedHosts::list([host.parse().unwrap()]);
    let loopback = AllowedHosts::loopback();
    for (hosts, uri, lines, status) in [
        (loopback.clone(), "/mcp", &["localhost"] as &[_], 200),
        (loopback.clone(), "/mcp", &["LOCALHOST:3000"], 200),
        (loopback.clone(), "/mcp", &["127.0.0.1:3000"], 200),
        (loopback.clone(), "/mcp", &["[::1]:3000"], 200),
        (loopback.clone(), "/mcp", &["evil.example"], 403),
        (loopback.clone(), "/mcp", &["localhost.evil.example"], 403),
        (loopback.clone(), "/mcp", &[""], 403),
        (loopback.clone(), "/mcp", &[], 403),
        (loopback.clone(), "/mcp", &["localhost", "localhost"], 403),
        // As HTTP/2 brings it.
        (loopback.clone(), "https://localhost/mcp", &[], 200),
        (loopback.clone(), "https://evil.example/mcp", &[], 403),
        // Either may be what a proxy looked at.
        (
            loopback.clone(),
            "https://localhost/mcp",
            &["evil.example"],
            403,
        ),
        (
            loopback.clone(),
            "https://evil.example/mcp",
            &["localhost"],
            403,
        ),
        (list("mcp.example.com"), "/mcp", &["MCP.example.com"], 200),
        (
            list("mcp.example.com"),
            "/mcp",
            &["mcp.example.com:8443"],
            200,
        ),
        (
            list("mcp.example.com:8443"),
            "/mcp",
            &["mcp.example.com:8443"],
            200,
        ),
        (
            list("mcp.example.com:8443"),
            "/mcp",
            &["mcp.example.com"],
            403,
        ),
        (
            list("mcp.example.com:8443"),
            "/mcp",
            &["mcp.example.com:1"],
            403,
        ),
        (AllowedHosts::list([]), "/mcp", &["localhost"], 403),
        (loopback.or(list("a.example")), "/mcp", &["a.example"], 200),
    ] {
        let got = with_hosts(hosts, uri, lines).await;
        assert_eq!(got, status, "{uri} {lines:?}");
    }
}

#[tokio::test]
async fn any_host_is_allowed_by_default() {
    let reply = answer(
        McpChannelLayer::new(),
        Call::tool("x").header("host", "a.example").request(),
    );
    assert_eq!(reply.await.status, 200);
}

#[test]
fn an_option_that_cannot_work_is_an_error_where_it_is_made() {
    for bad in [
        "",
        "localhost",
        "https://",
        "https://a/",
        "https://a b",
        "https://a:x",
        "null",
    ] {
        assert!(bad.parse::<mcp_channel::Origin>().is_err(), "{bad}");
    }
    for bad in ["", "https://a", "a/b", "a:b", "a:70000", "[::1", "a b", "*"] {
        assert!(bad.parse::<mcp_channel::Host>().is_err(), "{bad}");
    }
}

// Content-Type and Accept

#[tokio::test]
async fn the_content_type_is_json() {
    for (value, status) in [
        (Some("application/json"), 200),
        (Some("Application/JSON"), 200),
        (Some("application/json; charset=utf-8"), 200),
        (Some("application/json;charset=utf-8"), 200),
        (Some("application/json-seq"), 415),
        (Some("text/json"), 415),
        (Some(""), 415),
        (None, 415),
    ] {
        let call = match value {
            Some(value) => Call::tool("x").header("content-type", value),
            None => Call::tool("x").without_header("content-type"),
        };
        let reply = answer(McpChannelLayer::new(), call.request()).await;
        assert_eq!(reply.status.as_u16(), status, "{value:?}");
    }
}

/// That a head is refused with 415 and a message in which each of these words is.
async fn assert_unsupported(request: Request<Full<Bytes>>, words: &[&str]) {
    let shown = format!("{:?}", request.headers());
    let reply = refusal(McpChannelLayer::new(), request).await;
    assert_eq!(reply.status, 415, "{shown}");
    assert_eq!(reply.json()["error"]["code"], -32600, "{shown}");
    assert_eq!(reply.json().get("id"), None, "{shown}");
    let said = reply.json()["error"]["message"].as_str().unwrap();
    for word in words {
        assert!(said.contains(word), "{shown}: {said}");
    }
}

#[tokio::test]
async fn json_is_sent_in_utf_8() {
    let sent = |parameters: &str| {
        let value = format!("application/json{parameters}");
        Call::tool("x").header("content-type", &value).request()
    };
    for parameters in [
        "; charset=utf-16",
        ";charset=utf-16",
        r#"; charset="UTF-16LE""#,
        "; charset=utf-16be",
        r#"; charset="utf-32""#,
        "; charset=UTF-32BE",
        "; Charset=utf-16",
        "; CHARSET=UTF-16",
        "; profile=x; charset=utf-16",
        r#"; profile="a;b"; charset=utf-16"#,
    ] {
        let words = ["`Content-Type`", "`charset`", "UTF-8"];
        assert_unsupported(sent(parameters), &words).await;
    }
    for parameters in [
        "; charset=utf-8",
        r#"; charset="utf-8""#,
        "; Charset=UTF-8",
        "; charset=utf8",
        "; charset=us-ascii",
        "; charset=iso-8859-1",
        "; charset=",
        "; charset",
        "; profile=utf-16",
        r#"; profile="charset=utf-16""#,
        r#"; profile=";charset=utf-16""#,
    ] {
        let reply = answer(McpChannelLayer::new(), sent(parameters)).await;
        assert_eq!(reply.status, 200, "{parameters}");
    }
}

#[tokio::test]
async fn a_body_is_sent_as_it_is() {
    let sent = |lines: &[&str]| {
        let mut request = Call::tool("x").request();
        for line in lines {
            let headers = request.headers_mut();
            headers.append("content-encoding", line.parse().unwrap());
        }
        request
    };
    for (lines, shown) in [
        (&["gzip"] as &[_], "'gzip'"),
        (&["br"], "'br'"),
        (&["GZIP"], "'GZIP'"),
        (&["zstd"], "'zstd'"),
        (&["x-gzip"], "'x-gzip'"),
        (&["identity, gzip"], "'identity, gzip'"),
        (&["gzip,identity"], "'gzip,identity'"),
        (&["identity", "gzip"], "'gzip'"),
        (&["gzip", "gzip"], "'gzip'"),
        (&["", "br"], "'br'"),
        (&["identity;q=1"], "'identity;q=1'"),
        (&["identities"], "'identities'"),
        (&["*"], "'*'"),
    ] {
        let words = ["`Content-Encoding`", shown, "`RequestDecompressionLayer`"];
        assert_unsupported(sent(lines), &words).await;
    }
    for lines in [
        &[] as &[_],
        &["identity"],
        &["Identity"],
        &["IDENTITY"],
        &[""],
        &[" , "],
        &["identity, identity"],
        &["identity", ""],
        &["\tidentity ,"],
    ] {
        let reply = answer(McpChannelLayer::new(), sent(lines)).await;
        assert_eq!(reply.status, 200, "{lines:?}");
    }
}

#[tokio::test]
async fn accept_takes_json_or_an_event_stream() {
    for (values, status) in [
        (&[] as &[_], 200),
        (&[""], 200),
        (&["*/*"], 200),
        (&["application/*"], 200),
        (&["text/*"], 200),
        (&["text/html, application/json;q=0.5"], 200),
        (&["text/html", "TEXT/Event-Stream"], 200),
        (&["application/json;q=0"], 406),
        (&["*/*;q=0.000"], 406),
        (&["application/json;q=0, text/event-stream;q=0, */*"], 406),
        (&["text/html"], 406),
        (&["image/*"], 406),
    ] {
        let mut request = Call::tool("x").without_header("accept").request();
        for value in values {
            request
                .headers_mut()
                .append("accept", value.parse().unwrap());
        }
        let reply = answer(McpChannelLayer::new(), request).await;
        assert_eq!(reply.status.as_u16(), status, "{values:?}");
    }
}

#[tokio::test]
async fn a_subscription_needs_a_stream_and_that_is_judged_last() {
    let json_only = |call: Call| call.accept("application/json").id("i");
    let layer = McpChannelLayer::new;
    let reply = refusal(layer(), json_only(Call::listen()).request()).await;
    assert_eq!(reply.status, 406);
    assert_eq!(reply.json()["error"]["code"], -32600);
    assert_eq!(reply.json()["id"], "i");
    let text = reply.json()["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("`Accept`") && text.contains("text/event-stream"),
        "{text}"
    );
    // After the metadata.
    let call = json_only(Call::listen()).token(1.5);
    let reply = refusal(layer(), call.request()).await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["error"]["code"]),
        (400, &json!(-32602))
    );
    // Any other way of accepting a stream is enough.
    for accept in ["text/event-stream", "text/*", "*/*"] {
        let (_, called) = sent(layer(), Call::listen().accept(accept).request()).await;
        assert!(called, "{accept}");
    }
}

// The body

/// Counts how often it is polled.
struct Counting {
    pieces: Vec<Result<Frame<Bytes>, BoxError>>,
    hint: SizeHint,
    polled: Arc<AtomicUsize>,
}

impl Counting {
    fn new(pieces: Vec<Result<Frame<Bytes>, BoxError>>) -> (Self, Arc<AtomicUsize>) {
        let polled = Arc::new(AtomicUsize::new(0));
        let body = Self {
            pieces,
            hint: SizeHint::default(),
            polled: Arc::clone(&polled),
        };
        (body, polled)
    }
}

impl Body for Counting {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.polled.fetch_add(1, Ordering::Relaxed);
        if self.pieces.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(self.pieces.remove(0)))
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

fn pieces(bytes: &[u8], size: usize) -> Vec<Result<Frame<Bytes>, BoxError>> {
    bytes
        .chunks(size)
        .map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))))
        .collect()
}

#[tokio::test]
async fn a_body_passes_at_the_limit_and_not_a_byte_over_it() {
    let call = Call::tool("x");
    let text = call.message.to_string();
    let length = text.len() as u64;
    for (limit, status) in [
        (length, 200),
        (length - 1, 413),
        (length + 1, 200),
        (0, 413),
    ] {
        let layer = McpChannelLayer::new().body_limit(limit);
        // With its length said, without, and in pieces.
        let reply = answer(layer.clone(), call.request()).await;
        assert_eq!(reply.status.as_u16(), status, "{limit}");
        for size in [1, 7, text.len()] {
            let (body, _) = Counting::new(pieces(text.as_bytes(), size));
            let reply = answer(layer.clone(), call.with_body(body)).await;
            assert_eq!(reply.status.as_u16(), status, "{limit} in pieces of {size}");
            if status == 413 {
                assert_eq!(reply.json()["error"]["code"], -32600);
                let said = reply.json()["error"]["message"].as_str().unwrap();
                assert!(said.contains(&limit.to_string()), "{said}");
            }
        }
    }
}

#[tokio::test]
async fn the_rest_of_a_body_that_is_too_large_is_not_read() {
    let call = Call::tool("x");
    let layer = McpChannelLayer::new().body_limit(10);
    let (body, polled) = Counting::new(pieces(&[b' '; 1000], 4));
    assert_eq!(
        refusal(layer.clone(), call.with_body(body)).await.status,
        413
    );
    assert_eq!(polled.load(Ordering::Relaxed), 3);

    let (mut body, polled) = Counting::new(pieces(&[b' '; 1000], 4));
    body.hint = SizeHint::with_exact(1000);
    assert_eq!(
        refusal(layer.clone(), call.with_body(body)).await.status,
        413
    );
    assert_eq!(polled.load(Ordering::Relaxed), 0);

    // A hint that no memory could hold.
    let (mut body, _) = Counting::new(pieces(&[b' '; 1000], 4));
    body.hint = SizeHint::with_exact(u64::MAX);
    assert_eq!(refusal(layer, call.with_body(body)).await.status, 413);
}

#[tokio::test]
async fn a_rejected_head_leaves_the_body_unread() {
    let (body, polled) = Counting::new(pieces(b"{}", 1));
    let call = Call::tool("x").header("content-type", "text/plain");
    assert_eq!(
        refusal(McpChannelLayer::new(), call.with_body(body))
            .await
            .status,
        415
    );
    assert_eq!(polled.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn the_default_limit_is_four_mebibytes() {
    let limit = 4 * 1024 * 1024;
    let call = Call::tool("x");
    let text = call.message.to_string();
    for (length, status) in [(limit, 200), (limit + 1, 413)] {
        let padded = format!("{text}{}", " ".repeat(length - text.len()));
        let reply = answer(
            McpChannelLayer::new(),
            call.with_body(Full::<Bytes>::from(padded)),
        );
        assert_eq!(reply.await.status.as_u16(), status);
    }
}

#[tokio::test]
async fn a_body_that_fails_to_arrive_is_no_fault_of_ours() {
    let mut broken = pieces(br#"{"jsonrpc":"2.0""#, 4);
    broken.push(Err("connection reset".into()));
    let (body, _) = Counting::new(broken);
    let reply = refusal(McpChannelLayer::new(), Call::tool("x").with_body(body)).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["code"], -32600);
    let said = reply.json()["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("body") && said.contains("connection reset"),
        "{said}"
    );
}

#[tokio::test]
async fn an_outer_limit_answers_as_ours() {
    let body = http_body_util::Limited::new(Call::tool("x").request().into_body(), 10);
    let reply = refusal(McpChannelLayer::new(), Call::tool("x").with_body(body)).await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.json()["error"]["code"], -32600);
}

#[tokio::test]
async fn trailers_of_a_request_are_passed_over() {
    let call = Call::tool("x");
    let mut frames = pieces(call.message.to_string().as_bytes(), 50);
    frames.push(Ok(Frame::trailers(http::HeaderMap::new())));
    let (body, _) = Counting::new(frames);
    assert_eq!(
        answer(McpChannelLayer::new(), call.with_body(body))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_waited_for() {
    let call = Call::tool("x");
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    let frames = futures_util::stream::unfold(receive, |mut receive| async {
        Some((receive.recv().await?, receive))
    });
    let request = call.with_body(StreamBody::new(frames));
    let layer = McpChannelLayer::new();
    let mut reply = tokio_test::task::spawn(Box::pin(answer(layer, request)));
    for piece in call.message.to_string().as_bytes().chunks(40) {
        tokio_test::assert_pending!(reply.poll());
        let frame = Ok::<_, BoxError>(Frame::data(Bytes::copy_from_slice(piece)));
        send.send(frame).unwrap();
        assert!(reply.is_woken());
    }
    tokio_test::assert_pending!(reply.poll());
    drop(send);
    assert_eq!(tokio_test::assert_ready!(reply.poll()).status, 200);
}

#[tokio::test]
async fn the_handler_gets_the_bytes_that_the_client_sent() {
    let call = Call::tool("x");
    let text = format!(" \r\n{}\n", call.message);
    for size in [1, 3, 1000] {
        let (body, _) = Counting::new(pieces(text.as_bytes(), size));
        let service =
            McpChannelLayer::new().layer(service_fn(|request: Request<RequestBody>| async {
                let message: &mcp_channel::Message = request.extensions().get().unwrap();
                let message = message.body().clone();
                assert_eq!(
                    request.body().size_hint().exact(),
                    Some(message.len() as u64)
                );
                assert!(!request.body().is_end_stream());
                let body = request.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body, message);
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(body)))
            }));
        let reply = Reply::read(service.oneshot(call.with_body(body)).await.unwrap()).await;
        assert_eq!(reply.body, text);
    }
}

// JSON

/// What a text in the place of the message is answered.
async fn answer_to(text: &[u8]) -> (u16, Value) {
    let body = Full::<Bytes>::from(text.to_vec());
    let reply = refusal(McpChannelLayer::new(), Call::tool("x").with_body(body)).await;
    (reply.status.as_u16(), reply.json().clone())
}

#[tokio::test]
async fn the_body_is_one_json_text_in_utf_8() {
    for text in [
        b"" as &[u8],
        b" ",
        b"{",
        b"{}{}",
        b"{} x",
        b"{'a':1}",
        b"{\"a\":1,}",
        b"{\"a\":01}",
        b"{\"a\":NaN}",
        b"{\"a\":\"\n\"}",
        b"{\"a\":\"\xff\"}",
        b"\xef\xbb\xbf{}",
        b"nul",
    ] {
        let (status, message) = answer_to(text).await;
        let shown = String::from_utf8_lossy(text);
        assert_eq!(
            (status, &message["error"]["code"]),
            (400, &json!(-32700)),
            "{shown}"
        );
        assert_eq!(message.get("id"), None);
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_and_harms_nobody() {
    let depth = 500_000;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let (status, message) = answer_to(text.as_bytes()).await;
    assert_eq!(status, 400, "{message}");
}

#[tokio::test]
async fn the_message_is_a_request_or_a_notification() {
    for (text, says) in [
        ("[]", "batch"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "batch"),
        ("1", "number"),
        ("\"x\"", "string"),
        ("null", "null"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "response"),
        ("{}", "`jsonrpc`"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "`jsonrpc`"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "`method`"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1e2,"method":"m"}"#, "`id`"),
        (r#"{"jsonrpc":"2.0","id":1E2,"method":"m"}"#, "`id`"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            "`params`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
            "`params`",
        ),
    ] {
        let (status, message) = answer_to(text.as_bytes()).await;
        assert_eq!(
            (status, &message["error"]["code"]),
            (400, &json!(-32600)),
            "{text}"
        );
        let said = message["error"]["message"].as_str().unwrap();
        assert!(said.contains(says), "{text}: {said}");
        // Left out where it could not be read, and never null.
        let readable = text.starts_with('{')
            && [r#""id":1,"#, r#""id":1}"#]
                .iter()
                .any(|id| text.contains(id));
        assert_eq!(
            message.get("id"),
            readable.then(|| json!(1)).as_ref(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn what_counts_may_not_be_there_twice() {
    let sound = Call::tool("x").id("i").message.to_string();
    for (from, to, says) in [
        (
            r#""jsonrpc":"2.0""#,
            r#""jsonrpc":"2.0","jsonrpc":"2.0""#,
            "jsonrpc",
        ),
        (r#""id":"i""#, r#""id":"i","\u0069d":"i""#, "'id'"),
        (
            r#""method":"tools/call""#,
            r#""method":"tools/call","meth\u006fd":"x""#,
            "method",
        ),
        (r#""params":{"#, r#""params":{},"params":{"#, "params"),
        (r#""_meta":{"#, r#""\u005fmeta":{},"_meta":{"#, "_meta"),
        (
            r#""name":"x""#,
            r#""name":"x","n\u0061me":"x""#,
            "params.name",
        ),
        (
            r#""_meta":{"#,
            r#""_meta":{"progressToken":1,"progressToken":1,"#,
            "progressToken",
        ),
        (
            r#""_meta":{"#,
            r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{},"#,
            "clientCapabilities",
        ),
        (
            r#""_meta":{"#,
            r#""_meta":{"io.modelcontextprotocol/new":1,"io.modelcontextprotocol/n\u0065w":1,"#,
            "io.modelcontextprotocol/",
        ),
    ] {
        let text = sound.replacen(from, to, 1);
        assert_ne!(text, sound, "{from}");
        let (status, message) = answer_to(text.as_bytes()).await;
        assert_eq!(
            (status, &message["error"]["code"]),
            (400, &json!(-32600)),
            "{text}"
        );
        let said = message["error"]["message"].as_str().unwrap();
        assert!(said.contains(says) && said.contains("once"), "{said}");
        assert_eq!(message.get("id").is_some(), says != "'id'");
    }
    // What does not count may be.
    let text = sound.replacen(
        r#""arguments":{}"#,
        r#""arguments":{},"arguments":{},"uri":1,"uri":1"#,
        1,
    );
    assert_ne!(text, sound);
    let body = Full::<Bytes>::from(text);
    assert_eq!(
        answer(McpChannelLayer::new(), Call::tool("x").with_body(body))
            .await
            .status,
        200
    );
}

// Mirrored headers

async fn code_of(call: &Call) -> Option<i64> {
    code_in(call.request()).await
}

async fn code_in(request: Request<Full<Bytes>>) -> Option<i64> {
    let reply = answer(McpChannelLayer::new(), request).await;
    reply.json()["error"]["code"].as_i64()
}

#[tokio::test]
async fn the_version_header_is_that_of_the_metadata_and_served() {
    let version = "mcp-protocol-version";
    for (header, meta, code) in [
        ("2026-07-28", json!("2026-07-28"), None),
        (" 2026-07-28 ", json!("2026-07-28"), None),
        ("2026-07-28", json!("2025-06-18"), Some(-32020)),
        ("2025-06-18", json!("2026-07-28"), Some(-32020)),
        ("2025-06-18", json!("2025-06-18"), Some(-32022)),
        ("2025-06-18", json!(null), Some(-32022)),
        ("2025-06-18", json!(1), Some(-32022)),
        ("2026-07-28", json!(1), Some(-32602)),
        ("", json!("2026-07-28"), Some(-32020)),
    ] {
        let call = Call::tool("x")
            .header(version, header)
            .meta("protocolVersion", meta.clone());
        assert_eq!(code_of(&call).await, code, "{header} {meta}");
    }
    let call = Call::tool("x")
        .header(version, "1999-01-01")
        .meta("protocolVersion", "1999-01-01");
    let reply = refusal(McpChannelLayer::new(), call.request()).await;
    assert_eq!(
        reply.json()["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "1999-01-01"})
    );
}

#[tokio::test]
async fn the_method_header_is_the_method() {
    for (header, code) in [
        ("tools/call", None),
        ("  tools/call\t", None),
        ("Tools/Call", Some(-32020)),
        ("tools/list", Some(-32020)),
        ("", Some(-32020)),
    ] {
        let call = Call::tool("x").header("mcp-method", header);
        assert_eq!(code_of(&call).await, code, "{header:?}");
    }
    assert_eq!(
        code_of(&Call::tool("x").without_header("mcp-method")).await,
        Some(-32020)
    );
}

#[tokio::test]
async fn the_name_header_is_the_parameter_that_it_mirrors() {
    let named = |method: &str, field: &str, value: Value, header: &str| {
        Call::new(method)
            .param(field, value)
            .header("mcp-name", header)
    };
    for (call, code) in [
        (named("tools/call", "name", json!("x"), "x"), None),
        (named("prompts/get", "name", json!("x"), "x"), None),
        (
            named("resources/read", "uri", json!("a://b"), "a://b"),
            None,
        ),
        (
            named("resources/read", "uri", json!("a://b"), "a://c"),
            Some(-32020),
        ),
        (named("tools/call", "uri", json!("x"), "x"), Some(-32020)),
        (named("tools/call", "name", json!("x"), "X"), Some(-32020)),
        (named("tools/call", "name", json!(1), "1"), Some(-32020)),
        (named("tools/call", "name", json!(null), "x"), Some(-32020)),
        (Call::new("tools/call").param("name", "x"), Some(-32020)),
        (
            named("tools/call", "name", json!("é"), "=?base64?w6k=?="),
            None,
        ),
        (
            named("tools/call", "name", json!("é"), "=?base64?w6k?="),
            Some(-32020),
        ),
        (
            named("tools/call", "name", json!("é"), "=?base64?/w==?="),
            Some(-32020),
        ),
        (
            named("tools/call", "name", json!("é"), "=?base64?!!?="),
            Some(-32020),
        ),
        (
            named("tools/call", "name", json!("é"), "=?BASE64?w6k=?="),
            Some(-32020),
        ),
        (
            named(
                "tools/call",
                "name",
                json!("=?base64?w6k="),
                "=?base64?w6k=",
            ),
            None,
        ),
        (named("tools/call", "name", json!("x y"), " x y "), None),
        // On other methods it says nothing.
        (named("tools/list", "name", json!("x"), "y"), None),
        (named("completion/complete", "name", json!("x"), "y"), None),
    ] {
        assert_eq!(code_of(&call).await, code, "{call:?}");
    }
}

#[tokio::test]
async fn repeated_headers_must_be_equal() {
    for (name, same, other) in [
        ("mcp-protocol-version", "2026-07-28", "2025-06-18"),
        ("mcp-method", "tools/call", "tools/list"),
        ("mcp-name", "x", "y"),
    ] {
        for (value, code) in [(same, None), (other, Some(-32020))] {
            let mut request = Call::tool("x").request();
            request.headers_mut().append(name, value.parse().unwrap());
            assert_eq!(code_in(request).await, code, "{name}: {value}");
        }
    }
}

#[tokio::test]
async fn bytes_outside_visible_ascii_are_a_mismatch() {
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let mut request = Call::tool("é").request();
        let value = http::HeaderValue::from_bytes("é".as_bytes()).unwrap();
        request.headers_mut().insert(name, value);
        let reply = refusal(McpChannelLayer::new(), request).await;
        assert_eq!(reply.json()["error"]["code"], -32020, "{name}");
        let said = reply.json()["error"]["message"].as_str().unwrap();
        assert!(said.to_lowercase().contains(name), "{said}");
    }
}

// Metadata

#[tokio::test]
async fn the_metadata_is_complete_and_well_formed() {
    let capabilities = "clientCapabilities";
    for (call, code) in [
        (
            Call::tool("x").meta("protocolVersion", json!(null)),
            Some(-32602),
        ),
        (
            Call::tool("x").meta(capabilities, json!(null)),
            Some(-32602),
        ),
        (Call::tool("x").meta(capabilities, json!([])), Some(-32602)),
        (Call::tool("x").meta("clientInfo", json!({})), None),
        (Call::tool("x").meta("clientInfo", json!("c")), Some(-32602)),
        (
            Call::tool("x").meta("logLevel", json!("Info")),
            Some(-32602),
        ),
        (Call::tool("x").meta("logLevel", json!(1)), Some(-32602)),
        (Call::tool("x").meta("logLevel", json!("info")), None),
        (Call::tool("x").token(json!(null)), Some(-32602)),
        (Call::tool("x").token(json!(true)), Some(-32602)),
        (Call::tool("x").token(json!(1.0)), Some(-32602)),
        (Call::tool("x").token(json!("")), None),
        (Call::tool("x").param("_meta", json!([])), Some(-32602)),
        (Call::tool("x").param("_meta", json!(null)), Some(-32602)),
        (Call::tool("x").meta("traceparent", json!(1)), None),
    ] {
        assert_eq!(code_of(&call).await, code, "{call:?}");
    }
    let mut call = Call::new("tools/list");
    call.message.as_object_mut().unwrap().remove("params");
    assert_eq!(code_of(&call).await, Some(-32602));
}

// Notifications

#[tokio::test]
async fn a_notification_is_judged_less() {
    let sound = || Call::notification("notifications/cancelled");
    for (call, status) in [
        (sound(), 202),
        (sound().without_header("mcp-protocol-version"), 202),
        (sound().without_header("mcp-method"), 202),
        (sound().header("mcp-name", "whatever"), 202),
        (sound().param("_meta", json!(null)), 202),
        (sound().meta("logLevel", "loud").token(1.5), 202),
        (sound().header("mcp-method", "notifications/other"), 400),
        (sound().header("mcp-protocol-version", "2025-06-18"), 400),
        (
            sound()
                .header("mcp-protocol-version", "2025-06-18")
                .meta("protocolVersion", "2025-06-18"),
            400,
        ),
        (sound().accept("application/json"), 202),
        (sound().accept("text/html"), 406),
    ] {
        let reply = answer(McpChannelLayer::new(), call.request()).await;
        assert_eq!(reply.status.as_u16(), status, "{call:?}");
        if status != 202 {
            assert_eq!(reply.json().get("id"), None);
        }
    }
    let mut call = sound();
    call.message["params"] = json!([]);
    assert_eq!(code_of(&call).await, Some(-32600));
}

// Old clients

#[tokio::test]
async fn an_old_client_is_served() {
    let mut call = Call::new("initialize")
        .without_header("mcp-protocol-version")
        .without_header("mcp-method");
    call.message = json!({
        "jsonrpc": "2.0", "id": "i", "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
    });
    let service = McpChannelLayer::new().layer(service_fn(|_: Request<RequestBody>| async {
        let reply = mcp_channel::Reply::result(json!({"capabilities": {}}));
        Ok::<_, Infallible>(Response::<Full<Bytes>>::from(reply))
    }));
    // The schema of the modern revision has no such result.
    let response = service.oneshot(call.request()).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(message["id"], "i");
    assert_eq!(message["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn an_old_client_learns_which_version_is_served_where_it_is_not() {
    let strict = || McpChannelLayer::new().legacy_clients(false);
    let old = json!({
        "jsonrpc": "2.0", "id": "i", "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
    });
    let mut call = Call::new("initialize")
        .without_header("mcp-protocol-version")
        .without_header("mcp-method");
    call.message = old;
    for (version, code) in [
        (None, -32020),
        (Some("2025-06-18"), -32022),
        (Some("2026-07-28"), -32020),
    ] {
        let call = match version {
            Some(version) => call.clone().header("mcp-protocol-version", version),
            None => call.clone(),
        };
        let reply = refusal(strict(), call.request()).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.json()["id"], "i");
        assert_eq!(reply.json()["error"]["code"], code);
        let said = reply.json()["error"]["message"].as_str().unwrap();
        assert!(
            said.contains("2026-07-28") && said.contains("handshake"),
            "{said}"
        );
    }
    // With modern metadata it is a method like any, with the same answers.
    let call = Call::new("initialize").header("mcp-method", "ping");
    let reply = refusal(strict(), call.request()).await;
    let said = reply.json()["error"]["message"].as_str().unwrap();
    assert!(!said.contains("handshake"), "{said}");
    let reply = answer(strict(), Call::new("initialize").request()).await;
    assert_eq!(reply.status, 200);
}

// The service

#[tokio::test]
async fn a_rejection_leaves_the_service_ready_for_the_next_request() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut service = McpChannelLayer::new().layer(service_fn(move |_: Request<RequestBody>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Response::<Full<Bytes>>::default()) }
    }));
    for (call, called) in [
        (Call::tool("x").header("mcp-name", "y"), 0),
        (Call::tool("x").accept("text/html"), 0),
        (Call::tool("x"), 1),
    ] {
        let request = call.request();
        let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service)
            .await
            .unwrap();
        ready.call(request).await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), called);
    }
}
