//! What the handler does, and what the client sees: a test for each row of the table.

mod support;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use mcp_channel::notification::SubscriptionsAcknowledged;
use mcp_channel::{
    Channel, CloseReason, Deferred, McpChannelLayer, Message, Reply, RequestBody, RpcError,
    ServerInfo, Status,
};
use serde_json::json;
use support::request::{Call, served, served_by};
use tower::{BoxError, Layer, ServiceBuilder, service_fn};

type Plain = Response<Full<Bytes>>;

fn plain(status: u16, body: &str) -> Plain {
    let mut response = Response::new(Full::from(body.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn nothing() -> Plain {
    plain(200, "")
}

// send_result

#[tokio::test]
async fn a_result_with_nothing_streamed_is_one_json() {
    let service = served(|channel: Channel, _| async move {
        channel.send_result(json!({"content": [], "a": 1})).unwrap();
        nothing()
    });
    let reply = Call::tool("x").id("i").send(service).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        *reply.json(),
        json!({"jsonrpc": "2.0", "id": "i", "result": {"content": [], "a": 1, "resultType": "complete"}})
    );
}

#[tokio::test]
async fn a_result_on_a_stream_is_its_last_event() {
    let service = served(|channel: Channel, _| async move {
        channel.send_progress((1, 2)).await.unwrap();
        channel.send_result(json!({"content": []})).unwrap();
        nothing()
    });
    let reply = Call::tool("x").token("t").send(service).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["cache-control"], "no-cache, no-transform");
    assert_eq!(reply.headers["x-accel-buffering"], "no");
    let [progress, result] = reply.events() else {
        panic!("{reply:?}")
    };
    assert_eq!(
        progress["params"],
        json!({"progressToken": "t", "progress": 1, "total": 2})
    );
    assert_eq!(result["result"]["resultType"], "complete");
}

#[tokio::test]
async fn the_server_is_named_where_the_layer_knows_it() {
    let layer = McpChannelLayer::new().server_info(ServerInfo::new("s", "1").title("S"));
    let service = served_by(layer, |channel: Channel, _| async move {
        channel.send_result(json!({"content": []})).unwrap();
        nothing()
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(
        reply.json()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"],
        json!({"name": "s", "version": "1", "title": "S"})
    );
}

#[tokio::test]
async fn the_first_reply_is_the_reply() {
    for stream in [false, true] {
        let service = served(move |channel: Channel, _| async move {
            if stream {
                channel.start_stream().unwrap();
            }
            channel.send_result(json!({"content": [], "n": 1})).unwrap();
            assert_eq!(channel.status(), Status::Closed);
            assert!(channel.send_result(json!({})).unwrap_err().is_closed());
            assert!(
                channel
                    .send_error(RpcError::internal(""))
                    .unwrap_err()
                    .is_closed()
            );
            assert!(channel.send_progress(1).await.unwrap_err().is_closed());
            assert!(channel.start_stream().unwrap_err().is_closed());
            assert!(channel.close().unwrap_err().is_closed());
            assert_eq!(channel.closed().await, CloseReason::Replied);
            Reply::result(json!({"content": [], "n": 2}))
        });
        let reply = Call::tool("x").token(1).send(service).await;
        assert_eq!(reply.messages.len(), 1);
        assert_eq!(reply.last()["result"]["n"], 1);
    }
}

// send_error

#[tokio::test]
async fn an_error_with_nothing_streamed_has_its_status() {
    for (error, status) in [
        (RpcError::method_not_found("m"), 404),
        (RpcError::invalid_params("p"), 200),
        (RpcError::invalid_request("r"), 400),
        (RpcError::missing_capability(json!({"sampling": {}})), 400),
        (RpcError::internal("i"), 200),
        (RpcError::new(7, "seven"), 200),
        (
            RpcError::new(7, "seven").with_status(StatusCode::IM_A_TEAPOT),
            418,
        ),
    ] {
        let code = error.code();
        let service = served(move |channel: Channel, _| {
            let error = error.clone();
            async move {
                channel.send_error(error).unwrap();
                nothing()
            }
        });
        let reply = Call::tool("x").send(service).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.json()["error"]["code"], code);
        assert_eq!(reply.json()["id"], 1);
    }
}

#[tokio::test]
async fn an_error_on_a_stream_is_its_last_event() {
    let service = served(|channel: Channel, _| async move {
        channel.start_stream().unwrap();
        channel.send_error(RpcError::method_not_found("m")).unwrap();
        nothing()
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.events()[0]["error"]["code"], -32601);
}

// Returned responses

#[tokio::test]
async fn a_response_with_the_channel_unused_passes_untouched() {
    let service = served(|channel: Channel, _| async move {
        // Filtered, so nothing was sent.
        channel
            .send_log(mcp_channel::LogLevel::Error, "x")
            .await
            .unwrap();
        let mut response = plain(418, "short and stout");
        response
            .headers_mut()
            .insert("x-mine", "1".parse().unwrap());
        response
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 418);
    assert_eq!(reply.headers["x-mine"], "1");
    assert_eq!(reply.headers.len(), 1);
    assert_eq!(reply.body, "short and stout");
}

#[tokio::test]
async fn a_response_after_streaming_is_the_last_event_if_it_answers_the_request() {
    let answer = r#"{"jsonrpc":"2.0","id":1,
        "result":{"resultType":"complete","content":[]}}"#;
    for (body, code) in [
        (answer, None),
        ("hello", Some(-32603)),
        ("", Some(-32603)),
        (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, Some(-32603)),
    ] {
        let service = served(move |channel: Channel, _| async move {
            channel.send_progress(1).await.unwrap();
            plain(200, body)
        });
        let reply = Call::tool("x").token(1).send(service).await;
        assert_eq!(reply.events().len(), 2);
        assert_eq!(reply.last()["error"]["code"].as_i64(), code, "{body}");
        assert_eq!(reply.last()["id"], 1);
    }
}

#[tokio::test]
async fn a_response_that_ends_a_subscription_names_it_and_comes_after_its_acknowledgement() {
    const ID: &str = "io.modelcontextprotocol/subscriptionId";
    for (acknowledged, body, code) in [
        (
            true,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#,
            None,
        ),
        (
            false,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#,
            Some(-32603),
        ),
        (
            false,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}"#,
            Some(7),
        ),
    ] {
        let service = served(move |channel: Channel, _| async move {
            channel.start_stream().unwrap();
            if acknowledged {
                let notifications = json!({"toolsListChanged": true});
                channel
                    .send_notification(SubscriptionsAcknowledged { notifications })
                    .await
                    .unwrap();
            }
            plain(200, body)
        });
        let reply = Call::listen().send(service).await;
        assert_eq!(reply.last()["error"]["code"].as_i64(), code);
        if code.is_none() {
            assert_eq!(reply.last()["result"]["_meta"][ID], 1);
        }
    }
}

#[tokio::test]
async fn a_response_after_streaming_is_bounded() {
    let layer = McpChannelLayer::new().body_limit(1000);
    let service = served_by(layer, |channel: Channel, _| async move {
        channel.start_stream().unwrap();
        let pad = "x".repeat(1000);
        plain(
            200,
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","pad":"{pad}"}}}}"#
            ),
        )
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.events()[0]["error"]["code"], -32603);
}

#[tokio::test]
async fn a_response_after_the_reply_gives_its_headers_only() {
    let service = served(|channel: Channel, _| async move {
        channel.send_result(json!({"content": []})).unwrap();
        let mut response = plain(500, "dropped unread");
        for (name, value) in [
            ("x-mine", "1"),
            ("content-type", "text/plain"),
            ("content-length", "14"),
            ("content-encoding", "br"),
            ("etag", "\"x\""),
        ] {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["x-mine"], "1");
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers.len(), 2, "{:?}", reply.headers);
    assert!(reply.json()["result"].is_object());
}

#[tokio::test]
async fn a_reply_as_a_value_says_the_same() {
    for stream in [false, true] {
        let service = served(move |channel: Channel, message: Message| async move {
            if stream {
                channel.start_stream().unwrap();
            }
            match message.name().as_deref() {
                Some("result") => Reply::result(json!({"content": []})),
                _ => Reply::error(RpcError::method_not_found("no such tool")),
            }
        });
        let reply = Call::tool("result").send(service.clone()).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.last()["result"]["resultType"], "complete");
        assert_eq!(reply.is_stream(), stream);
        let reply = Call::tool("error").send(service).await;
        assert_eq!(reply.status, if stream { 200 } else { 404 });
        assert_eq!(reply.last()["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn a_result_that_is_no_object_or_does_not_serialize_is_our_failure() {
    let unserializable = || std::collections::BTreeMap::from([((1, 2), 3)]);
    let service = served(move |channel: Channel, message: Message| async move {
        let error = channel.send_result(json!([1])).unwrap_err();
        assert!(error.is_invalid_message() && error.to_string().contains("object"));
        assert!(
            channel
                .send_result(unserializable())
                .unwrap_err()
                .is_invalid_message()
        );
        assert_eq!(channel.status(), Status::Open);
        match message.name().as_deref() {
            Some("list") => Reply::result([1]),
            _ => Reply::result(unserializable()),
        }
    });
    for tool in ["list", "map"] {
        let reply = Call::tool(tool).send(service.clone()).await;
        assert_eq!(reply.json()["error"]["code"], -32603);
        assert_eq!(reply.status, 500);
    }
}

// Deferred

#[tokio::test]
async fn a_deferred_reply_is_waited_for() {
    for stream in [false, true] {
        let service = served(move |channel: Channel, _| async move {
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                if stream {
                    channel.send_progress(1).await.unwrap();
                    tokio::task::yield_now().await;
                }
                channel.send_result(json!({"content": []})).unwrap();
            });
            Deferred
        });
        let reply = Call::tool("x").token(1).send(service).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.messages.len(), 1 + usize::from(stream));
        assert!(reply.last()["result"].is_object());
    }
}

#[tokio::test]
async fn the_last_handle_dropped_after_deferred_is_an_internal_error() {
    for (stream, status) in [(false, 500), (true, 200)] {
        let service = served(move |channel: Channel, _| async move {
            let task = channel.clone();
            let mut closed = channel.clone();
            closed.set_closed();
            if stream {
                channel.start_stream().unwrap();
            }
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                drop(task);
                // Neither counts.
                std::future::pending::<()>().await;
                drop((closed.clone(), closed.as_closed()));
            });
            Deferred
        });
        let reply = Call::tool("x").send(service).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.is_stream(), stream);
        assert_eq!(reply.last()["error"]["code"], -32603);
    }
}

#[tokio::test]
async fn deferred_without_any_handle_is_an_internal_error() {
    let service = served(|channel, _| async move {
        drop(channel);
        Deferred
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["error"]["code"], -32603);
}

#[tokio::test]
async fn a_clone_in_a_task_is_closed_when_the_handler_returns_without_deferred() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Arc::new(std::sync::Mutex::new(Some(tell)));
    let service = served(move |channel: Channel, _| {
        let tell = tell.lock().unwrap().take().unwrap();
        async move {
            tokio::spawn(async move {
                let reason = channel.closed().await;
                assert!(channel.send_result(json!({})).unwrap_err().is_closed());
                tell.send(reason).unwrap();
            });
            plain(200, "mine")
        }
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.body, "mine");
    assert_eq!(told.await.unwrap(), CloseReason::Closed);
}

// close

#[tokio::test]
async fn closed_before_any_reply_is_an_internal_error() {
    let service = served(|channel: Channel, _| async move {
        channel.close().unwrap();
        assert!(channel.close().unwrap_err().is_closed());
        assert_eq!(channel.closed().await, CloseReason::Closed);
        Reply::result(json!({}))
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 500);
    assert_eq!(reply.json()["error"]["code"], -32603);
    assert!(
        reply.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("closed")
    );
}

#[tokio::test]
async fn close_ends_a_stream() {
    let service = served(|channel: Channel, _| async move {
        channel.send_progress(1).await.unwrap();
        channel.close().unwrap();
        nothing()
    });
    let reply = Call::tool("x").token(1).send(service).await;
    assert_eq!(reply.events().len(), 1);
    assert_eq!(reply.last()["method"], "notifications/progress");
}

#[tokio::test]
async fn close_ends_a_subscription_with_its_result() {
    let service = served(|channel: Channel, _| async move {
        let acknowledged = mcp_channel::notification::SubscriptionsAcknowledged {
            notifications: json!({"toolsListChanged": true}),
        };
        channel.send_notification(acknowledged).await.unwrap();
        channel.close().unwrap();
        nothing()
    });
    let reply = Call::listen().id("s").send(service).await;
    assert_eq!(
        reply.last()["result"],
        json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": "s"}})
    );
}

#[tokio::test]
async fn a_subscription_that_is_closed_before_its_acknowledgement_has_no_result() {
    let service = served(|channel: Channel, _| async move {
        channel.start_stream().unwrap();
        channel.close().unwrap();
        nothing()
    });
    let reply = Call::listen().id("s").send(service).await;
    assert_eq!(reply.last()["error"]["code"], -32603);
}

// Failures

#[tokio::test]
async fn a_handlers_error_goes_up() {
    let service = McpChannelLayer::new().layer(service_fn(|_: Request<RequestBody>| async {
        Err::<Plain, BoxError>("mine".into())
    }));
    let error = tower::ServiceExt::oneshot(service, Call::tool("x").request()).await;
    assert_eq!(error.unwrap_err().to_string(), "mine");
}

#[tokio::test]
async fn a_handlers_error_after_streaming_is_the_last_event() {
    let handler = |request: Request<RequestBody>| async move {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.send_progress(1).await.unwrap();
        tokio::task::yield_now().await;
        Err::<Plain, BoxError>("secret".into())
    };
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .service_fn(handler);
    let reply = Call::tool("x").token(1).send(service).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
    assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
}

#[tokio::test]
async fn a_handlers_error_in_the_very_poll_that_streamed_is_the_last_event() {
    let handler = |request: Request<RequestBody>| async move {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.try_send_progress(1).unwrap();
        Err::<Plain, BoxError>("secret".into())
    };
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .service_fn(handler);
    let reply = Call::tool("x").token(1).send(service).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
}

#[tokio::test]
async fn a_handlers_error_after_its_reply_changes_nothing() {
    let handler = |request: Request<RequestBody>| async move {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.send_result(json!({"content": []})).unwrap();
        Err::<Plain, BoxError>("late".into())
    };
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .service_fn(handler);
    let reply = Call::tool("x").send(service).await;
    assert!(reply.json()["result"].is_object());
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_details() {
    for (stream, status) in [(false, 500), (true, 200)] {
        for (tool, frames) in [("call", 1), ("future", 1), ("later", 1), ("drop", 1)] {
            let handler = move |request: Request<RequestBody>| {
                let channel: Channel = request.extensions().get().cloned().unwrap();
                if stream {
                    channel.start_stream().unwrap();
                }
                assert!(tool != "call", "secret");
                let bomb = (tool == "drop").then_some(Bomb);
                async move {
                    let _bomb = bomb;
                    assert!(tool != "future", "secret");
                    tokio::task::yield_now().await;
                    assert!(tool == "drop", "secret");
                    Ok::<_, Infallible>(Plain::from(Deferred))
                }
            };
            let service = ServiceBuilder::new()
                .layer(McpChannelLayer::new())
                .service_fn(handler);
            let reply = Call::tool("x").send(service).await;
            assert_eq!(reply.status, status, "{tool}");
            assert_eq!(reply.messages.len(), frames, "{tool}");
            assert_eq!(reply.last()["error"]["code"], -32603, "{tool}");
            assert_eq!(reply.last()["error"].get("data"), None);
            assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
        }
    }
}

/// Panics when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("secret");
        }
    }
}

#[tokio::test]
async fn a_panic_after_the_reply_changes_nothing() {
    let service = served(|channel: Channel, message: Message| async move {
        channel.send_result(json!({"content": []})).unwrap();
        assert!(message.name().is_none(), "secret");
        nothing()
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 200);
    assert!(reply.json()["result"].is_object());
}

// Notifications

#[tokio::test]
async fn a_notification_is_accepted_without_a_body() {
    let service = served(|channel: Channel, message: Message| async move {
        assert!(message.is_notification());
        assert_eq!(channel.status(), Status::Closed);
        assert!(channel.send_progress(1).await.unwrap_err().is_closed());
        assert!(channel.send_result(json!({})).unwrap_err().is_closed());
        match message.method() {
            "notifications/reply" => Reply::result(json!({})).into(),
            "notifications/deferred" => Deferred.into(),
            "notifications/unknown" => RpcError::method_not_found("m").into(),
            _ => plain(204, "a body"),
        }
    });
    for method in ["reply", "deferred", "unknown", "cancelled"] {
        let method = format!("notifications/{method}");
        let reply = Call::notification(&method)
            .token(1)
            .send(service.clone())
            .await;
        assert_eq!(reply.status, 202, "{method}");
        assert_eq!(reply.body, "");
        assert!(reply.headers.get("content-type").is_none());
    }
}

#[tokio::test]
async fn a_notifications_error_has_no_id_and_an_error_status() {
    let service = served(|_, message: Message| async move {
        match message.method() {
            "notifications/bad" => RpcError::invalid_params("bad"),
            "notifications/ours" => RpcError::internal("ours"),
            "notifications/busy" => {
                RpcError::internal("busy").with_status(StatusCode::SERVICE_UNAVAILABLE)
            }
            _ => panic!("secret"),
        }
    });
    for (method, status, code) in [
        ("notifications/bad", 400, -32602),
        ("notifications/ours", 500, -32603),
        ("notifications/busy", 503, -32603),
        ("notifications/panic", 500, -32603),
    ] {
        let reply = Call::notification(method).send(service.clone()).await;
        assert_eq!(reply.status, status, "{method}");
        assert_eq!(reply.json()["error"]["code"], code, "{method}");
        assert_eq!(reply.json().get("id"), None);
    }
}

#[tokio::test]
async fn the_headers_of_a_notifications_error_stay() {
    let service = served(|_, _| async {
        let error = RpcError::invalid_params("bad").with_status(StatusCode::BAD_REQUEST);
        let mut response = Plain::from(error);
        response
            .headers_mut()
            .insert("x-mine", "1".parse().unwrap());
        response
    });
    let reply = Call::notification("notifications/x").send(service).await;
    assert_eq!(reply.headers["x-mine"], "1");
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers.len(), 2);
}

#[tokio::test]
async fn a_notifications_failed_response_passes() {
    let service = served(|_, _| async { plain(401, "who are you") });
    let reply = Call::notification("notifications/x").send(service).await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.body, "who are you");
}

// Code after the reply

#[tokio::test(start_paused = true)]
async fn code_after_the_reply_runs_to_its_end() {
    for stream in [false, true] {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let service = served(move |channel: Channel, _| {
            let tell = tell.clone();
            async move {
                if stream {
                    channel.start_stream().unwrap();
                }
                channel.send_result(json!({"content": []})).unwrap();
                tokio::time::sleep(Duration::from_secs(5)).await;
                tell.send(()).unwrap();
                nothing()
            }
        });
        let reply = Call::tool("x").send(service).await;
        assert!(reply.last()["result"].is_object());
        assert!(told.recv().await.is_some());
    }
}

// Without the layer

#[test]
fn without_the_layer_a_reply_is_a_500_that_says_so() {
    for response in [
        Plain::from(Reply::result(json!({}))),
        Plain::from(Deferred),
        Plain::from(RpcError::internal("x")),
    ] {
        assert_eq!(response.status(), 500);
        let said = response.headers()["mcp-channel-error"].to_str().unwrap();
        assert!(said.contains("McpChannelLayer"));
    }
}

// What is easily done wrong

#[tokio::test]
async fn one_handler_may_reply_now_or_later() {
    let service = served(|channel: Channel, message: Message| async move {
        if message.name().as_deref() == Some("now") {
            return Reply::result(json!({"content": [], "when": "now"}));
        }
        tokio::spawn(async move { channel.send_result(json!({"content": [], "when": "later"})) });
        Reply::from(Deferred)
    });
    for when in ["now", "later"] {
        let reply = Call::tool(when).send(service.clone()).await;
        assert_eq!(reply.json()["result"]["when"], when);
    }
}

#[test]
fn a_reply_can_be_looked_at() {
    let result = Reply::result(json!({"a": 1}));
    assert_eq!(result.as_result().unwrap().as_str(), r#"{"a":1}"#);
    assert!(result.as_error().is_none());
    let error = Reply::error(RpcError::unknown_tool("x"));
    assert_eq!(error.as_error().unwrap().code(), -32602);
    assert_eq!(error.as_error().unwrap().message(), "Unknown tool: x");
    assert!(error.as_result().is_none());
    assert!(Reply::from(Deferred).as_result().is_none());
}

#[test]
fn arguments_are_an_object_and_may_be_absent() {
    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    struct Arguments {
        n: u32,
    }
    let of = |params: &str| {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let message = Message::parse(json).unwrap();
        message.arguments::<Arguments>()
    };
    assert_eq!(of("{}").unwrap(), Arguments { n: 0 });
    assert_eq!(of(r#"{"arguments":{"n":3}}"#).unwrap(), Arguments { n: 3 });
    for (params, names) in [
        (r#"{"arguments":{"n":"x"}}"#, "`params.arguments.n`"),
        (
            r#"{"arguments":[3]}"#,
            "`params.arguments` must be an object",
        ),
        (
            r#"{"arguments":null}"#,
            "`params.arguments` must be an object",
        ),
    ] {
        let error = of(params).unwrap_err();
        assert_eq!(error.code(), -32602);
        assert!(error.message().contains(names), "{error}");
    }
}
