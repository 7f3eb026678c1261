//! What the wire looks like: ids and numbers as they came, and every message on one line.

mod support;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use mcp_channel::notification::{ResourceUpdated, SubscriptionsAcknowledged, ToolListChanged};
use mcp_channel::{
    Channel, LogLevel, McpChannelLayer, Message, Outlet, Reply, RpcError, ServerInfo,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use support::by_hand::{bytes_sent, channel, channel_of};
use support::request::{Call, Reply as Got, served, served_by};
use support::sse;
use tower::ServiceExt;

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

// Ids and tokens

/// Each with how it comes back.
const IDS: [(&str, &str); 14] = [
    ("0", "0"),
    ("-0", "-0"),
    ("1", "1"),
    ("\"1\"", "\"1\""),
    ("-9223372036854775808", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    ("9223372036854775808", "9223372036854775808"),
    ("36893488147419103233", "36893488147419103233"),
    ("-36893488147419103233", "-36893488147419103233"),
    ("\"\"", "\"\""),
    ("\"a b\\\"\\\\\"", "\"a b\\\"\\\\\""),
    ("\"\\u00e9\u{1f600}\"", "\"é\u{1f600}\""),
    ("\"\\ud800\"", "\"\\ud800\""),
    ("\"\\ud800\u{2028}\"", "\"\\ud800\\u2028\""),
];

/// A message with this JSON as its id and its progress token.
fn with_id(call: &Call, json: &str) -> String {
    let call = call.clone().id("@id").token("@id");
    call.message.to_string().replace("\"@id\"", json)
}

#[test]
fn ids_and_tokens_come_back_digit_for_digit() {
    for (id, back) in IDS {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let of_reply = |outlet: &mut Outlet| text(outlet.try_reply().unwrap().1.to_vec());
        let whole = format!(r#"{{"jsonrpc":"2.0","id":{back},"#);

        let (channel, mut outlet) = channel_of(&with_id(&Call::tool("x"), id));
        channel.send_result(json!({})).unwrap();
        let reply = of_reply(&mut outlet);
        assert!(reply.starts_with(&whole), "{id}: {reply}");

        let (channel, mut outlet) = channel_of(&with_id(&Call::tool("x"), id));
        channel.send_error(RpcError::internal("")).unwrap();
        let reply = of_reply(&mut outlet);
        assert!(reply.starts_with(&whole), "{id}: {reply}");

        let (channel, mut outlet) = channel_of(&with_id(&Call::tool("x"), id));
        channel.try_send_progress(1).unwrap();
        channel.try_send_notification(ToolListChanged).unwrap();
        channel.send_result(json!({})).unwrap();
        let sent = text(bytes_sent(&mut outlet));
        assert!(
            sent.contains(&format!(r#""progressToken":{back},"#)),
            "{id}: {sent}"
        );
        assert!(
            sent.contains(&format!(r#""{SUBSCRIPTION_ID}":{back}}}"#)),
            "{id}: {sent}"
        );
        assert!(sent.contains(&whole), "{id}: {sent}");
        assert_eq!(channel.request_id().unwrap().to_string(), back);
        assert_eq!(channel.progress_token().unwrap().to_string(), back);
    }
}

#[tokio::test]
async fn ids_come_back_digit_for_digit_through_the_layer() {
    let service = served(|_, message: Message| async move {
        match message.name().as_deref() {
            Some("result") => Reply::result(json!({"content": []})),
            _ => Reply::error(RpcError::internal("")),
        }
    });
    for (id, back) in IDS {
        // The last is rejected before it reaches the handler.
        for call in [
            Call::tool("result"),
            Call::tool("error"),
            Call::tool("x").header("mcp-name", "y"),
        ] {
            let body = Full::<Bytes>::from(with_id(&call, id));
            let response = service.clone().oneshot(call.with_body(body));
            let body = response.await.unwrap().into_body().collect();
            let text = String::from_utf8(body.await.unwrap().to_bytes().to_vec()).unwrap();
            assert!(text.contains(&format!(r#""id":{back},"#)), "{id}: {text}");
        }
    }
}

// Line ends

/// Everything that some reader takes for a line end, its neighbours, and what JSON escapes.
const NASTY: &str = "a\0b\u{85}c\u{2028}d\u{2029}e\rf\ng\r\nh\tq\"\\\u{1}\u{1f}\u{7f}\u{80}\u{86}\u{2027}\u{202a}\u{feff}é😀";

/// [`NASTY`] as a client might write it: as much of it unescaped as JSON allows, with white space
/// around.
fn nasty_raw() -> Box<RawValue> {
    let string: String = NASTY
        .chars()
        .map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\0'..='\u{1f}' => format!("\\u{:04x}", u32::from(c)),
            _ => c.to_string(),
        })
        .collect();
    RawValue::from_string(format!(
        "{{\r\n \"k\u{2028}\" :\n\t\"{string}\" ,\r\"l\": [\n1\r]}}"
    ))
    .unwrap()
}

/// What [`nasty_raw`] says.
fn nasty_value() -> Value {
    serde_json::from_str(nasty_raw().get()).unwrap()
}

/// That no reader sees a line end within a message.
fn assert_one_line(json: &str) {
    for (name, c) in [
        ("CR", '\r'),
        ("LF", '\n'),
        ("NUL", '\0'),
        ("U+0085", '\u{85}'),
        ("U+2028", '\u{2028}'),
        ("U+2029", '\u{2029}'),
    ] {
        assert!(!json.contains(c), "{name} in {json:?}");
    }
}

/// The messages of a stream, each of which is exactly one event of three lines.
fn one_line_messages(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let frames: Vec<&str> = text.split_terminator("\n\n").collect();
    assert!(text.is_empty() || text.ends_with("\n\n"));
    for frame in &frames {
        let data = frame.strip_prefix("event: message\ndata: ");
        assert_one_line(data.unwrap_or_else(|| panic!("{frame:?}")));
    }
    // An independent reader sees the same.
    let events = sse::events(stream);
    assert_eq!(events.len(), frames.len());
    let parse = |event: &sse::Event| serde_json::from_str(&event.data).unwrap();
    events.iter().map(parse).collect()
}

fn debugged(call: Call) -> Call {
    call.meta("logLevel", "debug").token(NASTY).id(NASTY)
}

#[test]
fn a_log_record_is_one_line() {
    let (channel, mut outlet) = channel(&debugged(Call::tool("x")));
    let level = LogLevel::Info;
    channel.try_send_log(level, NASTY).unwrap();
    channel
        .try_send_log_from(NASTY, level, json!({NASTY: [NASTY]}))
        .unwrap();
    channel.try_send_log(level, nasty_raw()).unwrap();
    channel.try_send_log(level, [nasty_raw()]).unwrap();
    channel.try_send_log(level, '\u{2028}').unwrap();
    let messages = one_line_messages(&bytes_sent(&mut outlet));
    let data: Vec<_> = messages.iter().map(|m| &m["params"]["data"]).collect();
    assert_eq!(*data[0], NASTY);
    assert_eq!(*data[1], json!({NASTY: [NASTY]}));
    assert_eq!(messages[1]["params"]["logger"], NASTY);
    assert_eq!(*data[2], nasty_value());
    assert_eq!(*data[3], json!([nasty_value()]));
    assert_eq!(*data[4], "\u{2028}");
}

#[test]
fn progress_is_one_line() {
    let (channel, mut outlet) = channel(&debugged(Call::tool("x")));
    channel.try_send_progress((1, 2, NASTY)).unwrap();
    let messages = one_line_messages(&bytes_sent(&mut outlet));
    assert_eq!(messages[0]["params"]["message"], NASTY);
    assert_eq!(messages[0]["params"]["progressToken"], NASTY);
}

#[test]
fn a_notification_is_one_line() {
    let (channel, mut outlet) = channel(&debugged(Call::tool("x")));
    let whole = format!(
        "{{\r\n\"method\" :\r\"notifications/tools/list_changed\"\n, \"params\": {{ \"raw\" :\n{} \r}}\n}}",
        nasty_raw()
    );
    channel
        .try_send_notification(RawValue::from_string(whole).unwrap())
        .unwrap();
    channel
        .try_send_notification(json!({"method": NASTY, "params": {NASTY: NASTY}}))
        .unwrap();
    channel
        .try_send_notification(ResourceUpdated { uri: NASTY })
        .unwrap();
    channel
        .try_send_notification(SubscriptionsAcknowledged {
            notifications: nasty_raw(),
        })
        .unwrap();
    let messages = one_line_messages(&bytes_sent(&mut outlet));
    assert_eq!(messages[0]["params"]["raw"], nasty_value());
    assert_eq!(messages[0]["params"]["_meta"][SUBSCRIPTION_ID], NASTY);
    assert_eq!(messages[0]["jsonrpc"], "2.0");
    assert_eq!(messages[1]["method"], NASTY);
    assert_eq!(messages[1]["params"][NASTY], NASTY);
    assert_eq!(messages[2]["params"]["uri"], NASTY);
    assert_eq!(messages[3]["params"]["notifications"], nasty_value());
}

/// What a handler may do, by tool: each gives a reply that is full of line ends.
async fn nasty(channel: Channel, message: Message) -> Response<Full<Bytes>> {
    let result = || json!({"content": [], NASTY: NASTY, "raw": nasty_value()});
    let error = || RpcError::new(7, NASTY);
    let raw = || RawValue::from_string(format!("{{\n\"content\" : [],\r\"raw\":{}}}", nasty_raw()));
    match message.name().as_deref().unwrap() {
        "send_result" => channel.send_result(result()).unwrap(),
        "send_raw_result" => channel.send_result(raw().unwrap()).unwrap(),
        "return_result" => return Reply::result(result()).into(),
        "return_raw_result" => return Reply::result(raw().unwrap()).into(),
        "send_error" => channel
            .send_error(error().with_data(nasty_value()))
            .unwrap(),
        "return_error" => return error().with_data(nasty_value()).into(),
        "return_raw_error" => return error().with_data(nasty_raw()).into(),
        "body" => {
            let id = serde_json::to_string(NASTY).unwrap();
            let raw = nasty_raw();
            let body = format!(
                "\r\n{{\n\"jsonrpc\":\"2.0\",\r\"id\":{id},\n\"result\":{{\"resultType\":\r\"complete\",\"raw\":{raw}}}}}\n\r\n"
            );
            return Response::new(body.into());
        }
        tool => panic!("{tool}"),
    }
    Response::default()
}

#[tokio::test]
async fn every_reply_is_one_line() {
    for stream in [false, true] {
        let layer = McpChannelLayer::new().server_info(ServerInfo::new(NASTY, NASTY).title(NASTY));
        let service = served_by(
            layer,
            move |channel: Channel, message: Message| async move {
                if stream {
                    channel.start_stream().unwrap();
                }
                nasty(channel, message).await
            },
        );
        for tool in [
            "send_result",
            "send_raw_result",
            "return_result",
            "return_raw_result",
            "send_error",
            "return_error",
            "return_raw_error",
            "body",
        ] {
            if tool == "body" && !stream {
                // It passes untouched.
                continue;
            }
            let reply = debugged(Call::tool(tool)).send(service.clone()).await;
            let message = if stream {
                one_line_messages(&reply.body).remove(0)
            } else {
                assert_one_line(std::str::from_utf8(&reply.body).unwrap());
                reply.json().clone()
            };
            assert_eq!(message["id"], NASTY, "{tool}");
            if tool.ends_with("error") {
                assert_eq!(message["error"]["message"], NASTY, "{tool}");
                assert_eq!(message["error"]["data"], nasty_value(), "{tool}");
            } else {
                assert_eq!(message["result"]["raw"], nasty_value(), "{tool}");
            }
            if tool.ends_with("result") {
                let info = &message["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
                assert_eq!(
                    *info,
                    json!({"name": NASTY, "version": NASTY, "title": NASTY})
                );
            }
        }
    }
}

#[tokio::test]
async fn a_rejection_is_one_line() {
    let service = served(|_, _| async { Reply::result(json!({})) });
    let mut call = debugged(Call::tool("x"));
    call.message["method"] = NASTY.into();
    let reply = call.send(service.clone()).await;
    assert_one_line(std::str::from_utf8(&reply.body).unwrap());
    assert_eq!(reply.json()["id"], NASTY);
    assert!(
        reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("\u{2028}")
    );

    // The id as the client might write it.
    let text = with_id(
        &Call::tool("x").header("mcp-name", "y"),
        "\"\u{85}\u{2028}\u{2029}\"",
    );
    let body = Full::<Bytes>::from(text);
    let response = service.oneshot(Call::tool("x").header("mcp-name", "y").with_body(body));
    let reply = Got::read(response.await.unwrap()).await;
    assert_one_line(std::str::from_utf8(&reply.body).unwrap());
    assert_eq!(reply.json()["id"], "\u{85}\u{2028}\u{2029}");
}

#[tokio::test]
async fn the_completion_of_a_subscription_is_one_line() {
    let service = served(|channel: Channel, _| async move {
        channel
            .send_notification(SubscriptionsAcknowledged {
                notifications: nasty_raw(),
            })
            .await
            .unwrap();
        channel.close().unwrap();
        Response::<Full<Bytes>>::default()
    });
    let reply = Call::listen().id(NASTY).send(service).await;
    let messages = one_line_messages(&reply.body);
    assert_eq!(messages[0]["params"]["_meta"][SUBSCRIPTION_ID], NASTY);
    assert_eq!(messages[1]["result"]["_meta"][SUBSCRIPTION_ID], NASTY);
}

#[tokio::test]
async fn a_frame_has_its_two_lines_and_nothing_else() {
    let service = served(|channel: Channel, _| async move {
        channel.send_progress((1, 2)).await.unwrap();
        Reply::result(json!({"content": []}))
    });
    let call = Call::tool("x").token("t");
    let response = service.oneshot(call.request()).await.unwrap();
    let headers = response.headers().clone();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        body,
        concat!(
            "event: message\n",
            r#"data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2}}"#,
            "\n\nevent: message\n",
            r#"data: {"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}"#,
            "\n\n"
        )
    );
    let expected = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
    ];
    assert_eq!(headers.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(headers[name], value);
    }
}
