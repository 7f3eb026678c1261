//! HTTP/1: connections that go on, connections that end, and clients that ask first.

use mcp_channel::{Channel, McpChannelLayer, Message, Reply};
use serde_json::json;

use crate::client::{Raw, bytes_of, head_of};
use crate::net::{Endpoint, both, hyper};
use crate::support::request::{Call, served, served_by};

/// Streams for the tool `stream`, and replies for any other.
fn endpoint() -> Endpoint {
    served_by(McpChannelLayer::new().body_limit(10_000), handler)
}

async fn handler(channel: Channel, message: Message) -> Reply {
    if message.name().as_deref() == Some("stream") {
        for step in 1..=3 {
            channel.send_progress((step, 3)).await.expect("a client");
            tokio::task::yield_now().await;
        }
    }
    Reply::result(json!({"content": [], "tool": message.name()}))
}

fn stream() -> Call {
    Call::tool("stream").token(1)
}

#[tokio::test]
async fn a_connection_goes_on_after_a_stream() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        for id in 1..=3 {
            client.send(&stream().id(id)).await;
            let head = client.head().await;
            assert_eq!(head.status_line, "HTTP/1.1 200 OK");
            assert!(head.is_stream());
            assert_eq!(head.get("transfer-encoding"), Some("chunked"));
            assert_eq!(head.get("connection"), None);
            assert_eq!(head.get("content-length"), None);
            let messages = client.messages().await;
            assert_eq!(messages.len(), 4);
            assert_eq!(messages[3]["id"], id);

            client.send(&Call::tool("plain").id(id)).await;
            let head = client.head().await;
            assert_eq!(head.get("transfer-encoding"), None);
            assert_eq!(client.json(&head).await["id"], id);
        }
    }
}

#[tokio::test]
async fn a_connection_goes_on_after_a_rejection_and_after_a_notification() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        for (call, status) in [
            (
                Call::tool("x").header("origin", "https://evil.example"),
                "403",
            ),
            (Call::tool("x").header("content-type", "text/plain"), "415"),
            (Call::tool("x").without_header("mcp-name"), "400"),
        ] {
            client.send(&call).await;
            let head = client.head().await;
            assert!(head.status_line.contains(status), "{head:?}");
            assert!(client.json(&head).await["error"].is_object());
        }
        client.send(&Call::notification("notifications/x")).await;
        let head = client.head().await;
        assert!(head.status_line.contains("202"), "{head:?}");
        assert_eq!(head.get("content-length"), Some("0"));
        assert_eq!(head.get("content-type"), None);

        client.send(&stream()).await;
        assert!(client.head().await.is_stream());
        assert_eq!(client.messages().await.len(), 4);
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        let mut both = bytes_of(&stream().id("first"), "1.1", "");
        both.extend(bytes_of(&Call::tool("plain").id("second"), "1.1", ""));
        client.write(&both).await;
        assert!(client.head().await.is_stream());
        let messages = client.messages().await;
        assert_eq!(messages[3]["id"], "first");
        let head = client.head().await;
        assert_eq!(client.json(&head).await["id"], "second");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_stream_that_ends_with_the_connection() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        client.write(&bytes_of(&stream(), "1.0", "")).await;
        let head = client.head().await;
        assert_eq!(head.status_line, "HTTP/1.0 200 OK");
        assert!(head.is_stream());
        assert_eq!(head.get("transfer-encoding"), None);
        assert_eq!(head.get("content-length"), None);
        let body = client.rest().await;
        let messages = crate::support::request::messages_of(&body);
        assert_eq!(messages.len(), 4, "{}", String::from_utf8_lossy(&body));

        // A reply has its length, and keeps the connection of a client that asks for it.
        let mut client = Raw::new(server.connect().await);
        for _ in 0..2 {
            let call = Call::tool("plain");
            client
                .write(&bytes_of(&call, "1.0", "connection: keep-alive\r\n"))
                .await;
            let head = client.head().await;
            assert_eq!(head.status_line, "HTTP/1.0 200 OK");
            assert!(client.json(&head).await["result"].is_object());
        }
    }
}

#[tokio::test]
async fn a_client_that_wants_the_connection_closed_gets_all_of_a_stream() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        client
            .write(&bytes_of(&stream(), "1.1", "connection: close\r\n"))
            .await;
        let head = client.head().await;
        assert_eq!(head.get("connection"), Some("close"));
        assert_eq!(client.messages().await.len(), 4);
        assert_eq!(client.rest().await, b"");
    }
}

/// A body in chunks has no length that could be told, and is read all the same.
#[tokio::test]
async fn a_request_may_come_in_chunks_and_in_pieces() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        let call = stream();
        let body = call.message.to_string();
        let head = String::from_utf8(head_of(&call, "1.1", "")).unwrap();
        let length = format!("content-length: {}", body.len());
        client
            .write(
                head.replace(&length, "transfer-encoding: chunked")
                    .as_bytes(),
            )
            .await;
        for piece in body.as_bytes().chunks(50) {
            client
                .write(format!("{:x}\r\n", piece.len()).as_bytes())
                .await;
            client.write(piece).await;
            client.write(b"\r\n").await;
            tokio::task::yield_now().await;
        }
        client.write(b"0\r\n\r\n").await;
        assert!(client.head().await.is_stream());
        assert_eq!(client.messages().await.len(), 4);
    }
}

// Expect: 100-continue

const EXPECT: &str = "expect: 100-continue\r\n";

#[tokio::test]
async fn a_client_that_asks_first_is_told_to_go_on() {
    for server in both(endpoint()) {
        let mut client = Raw::new(server.connect().await);
        let call = stream();
        client.write(&head_of(&call, "1.1", EXPECT)).await;
        assert_eq!(client.head().await.status_line, "HTTP/1.1 100 Continue");
        client.write(call.message.to_string().as_bytes()).await;
        assert!(client.head().await.is_stream());
        assert_eq!(client.messages().await.len(), 4);
    }
}

/// What is refused by its head is not asked for.
#[tokio::test]
async fn a_client_that_asks_first_need_not_send_what_is_refused() {
    let large = Call::tool("x").param("pad", "x".repeat(10_000));
    for (call, status) in [
        (
            Call::tool("x").header("origin", "https://evil.example"),
            "403",
        ),
        (Call::tool("x").header("content-type", "text/plain"), "415"),
        (Call::tool("x").accept("text/html"), "406"),
        (large, "413"),
    ] {
        for server in both(endpoint()) {
            let mut client = Raw::new(server.connect().await);
            client.write(&head_of(&call, "1.1", EXPECT)).await;
            let head = client.head().await;
            assert!(head.status_line.contains(status), "{head:?}");
            assert!(client.json(&head).await["error"].is_object());
        }
    }
}

/// The rest of a body that is too large is not read, whether its length was told or not.
#[tokio::test]
async fn a_body_that_is_too_large_is_answered_before_its_end() {
    for server in both(endpoint()) {
        let call = Call::tool("x");
        let head = String::from_utf8(head_of(&call, "1.1", "")).unwrap();
        let length = format!("content-length: {}", call.message.to_string().len());
        for (how, first) in [
            ("content-length: 1000000000", "{".to_owned()),
            (
                "transfer-encoding: chunked",
                format!("{:x}\r\n{}\r\n", 20_000, "x".repeat(20_000)),
            ),
        ] {
            let mut client = Raw::new(server.connect().await);
            client.write(head.replace(&length, how).as_bytes()).await;
            client.write(first.as_bytes()).await;
            let head = client.head().await;
            assert!(head.status_line.contains("413"), "{how}: {head:?}");
            assert_eq!(client.json(&head).await["error"]["code"], -32600);
        }
    }
}

/// Whatever the layer makes of it, what is no HTTP is answered by the server.
#[tokio::test]
async fn what_is_no_request_reaches_no_handler() {
    let endpoint = served(|_, _| async {
        panic!("no handler is to be called");
        #[allow(unreachable_code, reason = "it says what the handler returns")]
        Reply::result(json!({}))
    });
    let server = hyper(endpoint);
    let mut client = Raw::new(server.connect().await);
    client.write(b"hello\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.status_line.contains("400"), "{head:?}");
}
