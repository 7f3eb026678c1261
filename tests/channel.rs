//! The channel: what each call sends, and what it refuses.

mod support;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use http::{Extensions, Response, StatusCode};
use http_body_util::Full;
use mcp_channel::notification::{
    Cancelled, Notification, PromptListChanged, ResourceListChanged, ResourceUpdated,
    SubscriptionsAcknowledged, ToolListChanged, requires_subscription_id,
};
use mcp_channel::{
    Channel, CloseReason, LogLevel, McpChannelLayer, Message, Outlet, Progress, Reply, RpcError,
    SendError, ServerInfo, Status,
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use support::by_hand::{bytes_sent, channel, reply, sent, untimed};
use support::request::{Call, served, served_by};
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready, assert_ready_eq};
use tower::ServiceExt;

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Data that must not be encoded.
struct Untouchable;

impl Serialize for Untouchable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("this was to be left alone")
    }
}

/// Data that has no JSON.
fn unserializable() -> impl Serialize {
    std::collections::BTreeMap::from([((1, 2), 3)])
}

fn nothing() -> Response<Full<bytes::Bytes>> {
    Response::default()
}

fn acknowledgement() -> SubscriptionsAcknowledged<Value> {
    SubscriptionsAcknowledged {
        notifications: json!({"toolsListChanged": true}),
    }
}

/// The parameters of the one message that was sent.
fn params(outlet: &mut Outlet) -> Value {
    let [message] = &*sent(outlet) else {
        panic!("one message was expected")
    };
    message["params"].clone()
}

// send_progress

#[test]
fn progress_is_a_number_a_pair_or_a_triple() {
    let (channel, mut outlet) = channel(&Call::tool("x").token("t"));
    channel.try_send_progress(1).unwrap();
    channel.try_send_progress((2, 4)).unwrap();
    channel.try_send_progress((2.5, 4, "half")).unwrap();
    channel
        .try_send_progress(Progress::from(3).message(String::from("more")))
        .unwrap();
    let method = "notifications/progress";
    let message = |params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    assert_eq!(
        sent(&mut outlet),
        [
            message(json!({"progressToken": "t", "progress": 1})),
            message(json!({"progressToken": "t", "progress": 2, "total": 4})),
            message(json!({"progressToken": "t", "progress": 2.5, "total": 4, "message": "half"})),
            message(json!({"progressToken": "t", "progress": 3, "message": "more"})),
        ]
    );
}

#[test]
fn integers_stay_integers_and_fractions_fractions() {
    let (channel, mut outlet) = channel(&Call::tool("x").token("t"));
    channel.try_send_progress((-3i8, 1u16)).unwrap();
    channel.try_send_progress((0.1f32, 0.1)).unwrap();
    channel.try_send_progress((2.0, 3usize)).unwrap();
    channel
        .try_send_progress((9_007_199_254_740_992i64, u64::MAX))
        .unwrap();
    // One more, which a double could not tell.
    channel.try_send_progress(9_007_199_254_740_993u64).unwrap();
    let text = String::from_utf8(bytes_sent(&mut outlet)).unwrap();
    for numbers in [
        r#""progress":-3,"total":1}"#,
        r#""progress":0.1,"total":0.1}"#,
        r#""progress":2.0,"total":3}"#,
        r#""progress":9007199254740992,"total":18446744073709551615}"#,
        r#""progress":9007199254740993}"#,
    ] {
        assert!(text.contains(numbers), "{numbers} in {text}");
    }
}

#[test]
fn progress_that_does_not_increase_is_not_sent_and_no_error() {
    let (channel, mut outlet) = channel(&Call::tool("x").token("t"));
    for progress in [2.0, 2.0, 1.0, 2.5, -1.0] {
        channel.try_send_progress(progress).unwrap();
    }
    // As a notification of one's own, too, in both directions.
    let own = |n: Value| json!({"method": "notifications/progress", "params": {"progressToken": "t", "progress": n}});
    channel.try_send_notification(own(json!(2.5))).unwrap();
    channel.try_send_notification(own(json!(7))).unwrap();
    channel.try_send_progress(7).unwrap();
    channel.try_send_progress(8).unwrap();
    let amounts: Vec<f64> = sent(&mut outlet)
        .iter()
        .map(|message| message["params"]["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(amounts, [2.0, 2.5, 7.0, 8.0]);
}

#[test]
fn progress_is_of_the_requests_own_token() {
    let own = |token: Value| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    let (channel, mut outlet) = channel(&Call::tool("x").token(1));
    for foreign in [json!(2), json!("1"), json!(1.5), json!(null)] {
        let error = channel
            .try_send_notification(own(foreign.clone()))
            .unwrap_err();
        assert!(error.is_invalid_message(), "{foreign}");
        assert!(error.to_string().contains("`params.progressToken`"));
    }
    assert!(outlet.try_next().is_none());
    channel.try_send_notification(own(json!(1))).unwrap();
    assert_eq!(params(&mut outlet)["progressToken"], 1);
}

#[test]
fn a_server_cancels_nothing_but_a_subscription() {
    let (channel, mut outlet) = channel(&Call::tool("x"));
    let error = channel
        .try_send_notification(Cancelled {
            request_id: channel.request_id().unwrap(),
            reason: None,
        })
        .unwrap_err();
    assert!(error.is_invalid_message() && error.to_string().contains("send_error"));
    assert!(outlet.try_next().is_none());
}

#[test]
fn progress_that_was_refused_does_not_count() {
    let (channel, mut outlet) = channel(&Call::tool("x").token("t"));
    channel.try_send_progress((1, 2, "m".repeat(5000))).unwrap();
    assert!(channel.try_send_progress(10).unwrap_err().is_full());
    drop(channel.send_progress(10));
    sent(&mut outlet);
    channel.try_send_progress(9).unwrap();
    assert_eq!(params(&mut outlet)["progress"], 9);
}

#[test]
fn progress_is_a_finite_number() {
    let (channel, mut outlet) = channel(&Call::tool("x").token("t"));
    for bad in [
        Progress::from(f64::NAN),
        Progress::from(f64::INFINITY),
        Progress::from(f32::NEG_INFINITY),
        Progress::from((1, f64::NAN)),
        Progress::from((1, f32::INFINITY, "m")),
    ] {
        let error = channel.try_send_progress(bad.clone()).unwrap_err();
        assert!(error.is_invalid_message(), "{bad:?}: {error}");
        assert!(error.to_string().contains("finite"));
    }
    assert_eq!(outlet.try_next(), None);
    // What was refused did not count.
    channel.try_send_progress(0).unwrap();
}

#[test]
fn progress_without_a_token_is_refused_before_anything_else() {
    let (channel, mut outlet) = channel(&Call::tool("x"));
    assert!(
        channel
            .try_send_progress(1)
            .unwrap_err()
            .is_no_progress_token()
    );
    assert!(
        channel
            .try_send_progress(f64::NAN)
            .unwrap_err()
            .is_no_progress_token()
    );
    let own =
        json!({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    assert!(
        channel
            .try_send_notification(own)
            .unwrap_err()
            .is_no_progress_token()
    );
    assert_eq!(outlet.try_next(), None);
}

// send_log

#[test]
fn a_log_record_passes_at_its_level_and_above() {
    for wanted in LogLevel::ALL {
        let call = Call::tool("x").meta("logLevel", wanted.as_str());
        let (channel, mut outlet) = channel(&call);
        for level in LogLevel::ALL {
            channel.try_send_log(level, json!({"a": level})).unwrap();
            let own =
                json!({"method": "notifications/message", "params": {"level": level, "data": 1}});
            channel.try_send_notification(own).unwrap();
            let sent = sent(&mut outlet);
            let expected = if level >= wanted { 2 } else { 0 };
            assert_eq!(sent.len(), expected, "{level} of {wanted}");
            if let [first, second] = &*sent {
                assert_eq!(
                    *first,
                    json!({
                        "jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": level, "data": {"a": level}},
                    })
                );
                assert_eq!(second["params"]["level"], level.as_str());
            }
        }
    }
}

#[test]
fn a_log_record_names_its_logger() {
    let (channel, mut outlet) = channel(&Call::tool("x").meta("logLevel", "debug"));
    channel
        .try_send_log_from("db", LogLevel::Info, "slow")
        .unwrap();
    let expected = json!({"level": "info", "logger": "db", "data": "slow"});
    assert_eq!(params(&mut outlet), expected);
    let mut sending = spawn(channel.send_log_from("db", LogLevel::Info, "slow"));
    assert_ready!(sending.poll()).unwrap();
    assert_eq!(params(&mut outlet), expected);
}

#[test]
fn what_is_filtered_is_not_encoded() {
    for (level, call) in [
        (LogLevel::Emergency, Call::tool("x")),
        (LogLevel::Info, Call::tool("x").meta("logLevel", "notice")),
    ] {
        let (channel, mut outlet) = channel(&call);
        channel.try_send_log(level, Untouchable).unwrap();
        channel.try_send_log_from("l", level, Untouchable).unwrap();
        assert_ready!(spawn(channel.send_log(level, Untouchable)).poll()).unwrap();
        assert_ready!(spawn(channel.send_log_from("l", level, Untouchable)).poll()).unwrap();
        assert_eq!(outlet.try_next(), None);
    }
}

#[tokio::test]
async fn what_is_filtered_starts_no_stream() {
    let service = served(|channel: Channel, _| async move {
        channel.send_log(LogLevel::Info, "x").await.unwrap();
        let own =
            json!({"method": "notifications/message", "params": {"level": "info", "data": 1}});
        channel.send_notification(own).await.unwrap();
        Reply::result(json!({"content": []}))
    });
    for call in [Call::tool("x"), Call::tool("x").meta("logLevel", "error")] {
        let reply = call.send(service.clone()).await;
        assert!(reply.json()["result"].is_object());
    }
}

#[test]
fn data_that_does_not_serialize_is_refused_and_nothing_sent() {
    let (channel, mut outlet) = channel(&Call::tool("x").meta("logLevel", "debug"));
    let error = channel
        .try_send_log(LogLevel::Info, unserializable())
        .unwrap_err();
    assert!(error.is_invalid_message() && error.to_string().contains("serialize"));
    let error = channel.try_send_notification(unserializable()).unwrap_err();
    assert!(error.is_invalid_message() && error.to_string().contains("serialize"));
    assert_eq!(outlet.try_next(), None);
    channel.try_send_log(LogLevel::Info, 1).unwrap();
    assert_eq!(params(&mut outlet)["data"], 1);
}

// send_notification

#[test]
fn a_notification_is_any_object_with_a_method() {
    #[derive(Serialize)]
    struct Own {
        method: &'static str,
        params: Value,
    }
    let (channel, mut outlet) = channel(&Call::tool("x"));
    channel
        .try_send_notification(Own {
            method: "notifications/own",
            params: json!({"a": [1]}),
        })
        .unwrap();
    channel
        .try_send_notification(json!({"jsonrpc": "2.0", "method": "notifications/own"}))
        .unwrap();
    assert_eq!(
        sent(&mut outlet),
        [
            json!({"jsonrpc": "2.0", "method": "notifications/own", "params": {"a": [1]}}),
            json!({"jsonrpc": "2.0", "method": "notifications/own"}),
        ]
    );
}

#[test]
fn what_is_no_notification_is_refused_and_nothing_sent() {
    let (channel, mut outlet) = channel(&Call::tool("x").token(1).meta("logLevel", "debug"));
    for (bad, named) in [
        (json!(null), "object"),
        (json!([]), "object"),
        (json!("notifications/x"), "object"),
        (json!({}), "`method`"),
        (json!({"method": null}), "`method`"),
        (json!({"method": 1}), "`method`"),
        (json!({"method": "m", "id": 1}), "`id`"),
        (json!({"method": "m", "id": null}), "`id`"),
        (json!({"method": "m", "result": {}}), "`result`"),
        (json!({"method": "m", "error": {}}), "`error`"),
        (json!({"method": "m", "jsonrpc": "1.0"}), "`jsonrpc`"),
        (json!({"method": "m", "params": [1]}), "`params`"),
        (
            json!({"method": "notifications/message", "params": {"level": "loud", "data": 1}}),
            "level",
        ),
        (
            json!({"method": "notifications/progress", "params": {"progressToken": 1}}),
            "progress",
        ),
    ] {
        let error = channel.try_send_notification(&bad).unwrap_err();
        assert!(error.is_invalid_message(), "{bad}: {error}");
        assert!(error.to_string().contains(named), "{bad}: {error}");
        let awaited = assert_ready!(spawn(channel.send_notification(&bad)).poll()).unwrap_err();
        assert_eq!(awaited.to_string(), error.to_string());
    }
    assert_eq!(outlet.try_next(), None);
    assert_eq!(channel.status(), Status::Open);
}

#[test]
fn each_notification_of_the_revision_has_a_type() {
    let (channel, mut outlet) = channel(&Call::tool("x").id("i"));
    let id = channel.request_id().unwrap();
    channel.try_send_notification(ToolListChanged).unwrap();
    channel.try_send_notification(PromptListChanged).unwrap();
    channel.try_send_notification(ResourceListChanged).unwrap();
    channel
        .try_send_notification(ResourceUpdated { uri: "a://b" })
        .unwrap();
    channel.try_send_notification(acknowledgement()).unwrap();
    let sent = sent(&mut outlet);
    let methods: Vec<_> = sent.iter().map(|m| m["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
        ]
    );
    assert_eq!(sent[3]["params"]["uri"], "a://b");
    assert_eq!(
        sent[4]["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    // These are the ones that carry the request's id.
    for message in &sent {
        assert!(requires_subscription_id(
            message["method"].as_str().unwrap()
        ));
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION_ID], "i");
    }
    let cancelled = Cancelled {
        request_id: id,
        reason: Some("late"),
    };
    assert_eq!(
        serde_json::to_value(cancelled).unwrap()["params"],
        json!({"requestId": "i", "reason": "late"})
    );
}

#[test]
fn a_stamp_keeps_what_is_there() {
    let method = "notifications/tools/list_changed";
    for (params, expected) in [
        (json!({}), json!({"_meta": {SUBSCRIPTION_ID: "i"}})),
        (
            json!({"a": 1, "_meta": {"k": 2}}),
            json!({"a": 1, "_meta": {"k": 2, SUBSCRIPTION_ID: "i"}}),
        ),
        (
            json!({"_meta": {SUBSCRIPTION_ID: null, "k": 2}}),
            json!({"_meta": {SUBSCRIPTION_ID: "i", "k": 2}}),
        ),
        (
            json!({"_meta": {SUBSCRIPTION_ID: "mine"}}),
            json!({"_meta": {SUBSCRIPTION_ID: "mine"}}),
        ),
    ] {
        let (channel, mut outlet) = channel(&Call::tool("x").id("i"));
        let notification = json!({"method": method, "params": params});
        channel.try_send_notification(&notification).unwrap();
        assert_eq!(self::params(&mut outlet), expected);

        // The same by hand.
        let notification = Notification::new(&notification).unwrap();
        assert!(notification.requires_subscription_id());
        let stamped = notification.copy_subscription_id(channel.request_id());
        let stamped: Value = serde_json::from_str(stamped.as_str()).unwrap();
        assert_eq!(stamped["params"], expected);
    }
}

#[test]
fn without_a_request_id_there_is_no_stamp() {
    let notification = Notification::new(&ToolListChanged).unwrap();
    let stamped = notification.copy_subscription_id(None);
    assert!(!stamped.as_str().contains("subscriptionId"), "{stamped:?}");
}

#[test]
fn other_notifications_have_no_stamp_on_the_stream_of_another_request() {
    let (channel, mut outlet) = channel(&Call::tool("x"));
    let other = json!({"method": "notifications/own", "params": {"a": 1}});
    channel.try_send_notification(&other).unwrap();
    assert_eq!(params(&mut outlet), json!({"a": 1}));
    assert!(!requires_subscription_id("notifications/own"));
}

// send_result and send_error

#[test]
fn a_result_gets_its_type_and_the_servers_name_where_it_lacks_them() {
    let (channel, mut outlet) = channel(&Call::tool("x").id("i"));
    channel.send_result(json!({"content": []})).unwrap();
    let (status, message) = reply(&mut outlet).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        message,
        json!({"jsonrpc": "2.0", "id": "i", "result": {"content": [], "resultType": "complete"}})
    );
}

#[tokio::test]
async fn a_result_keeps_its_type_and_its_own_server() {
    const SERVER: &str = "io.modelcontextprotocol/serverInfo";
    let layer = McpChannelLayer::new().server_info(ServerInfo::new("s", "1"));
    for (meta, expected) in [
        (json!({}), json!({SERVER: {"name": "s", "version": "1"}})),
        (
            json!({"k": 1}),
            json!({"k": 1, SERVER: {"name": "s", "version": "1"}}),
        ),
        (
            json!({SERVER: null}),
            json!({SERVER: {"name": "s", "version": "1"}}),
        ),
        (
            json!({SERVER: {"name": "other", "version": "2"}}),
            json!({SERVER: {"name": "other", "version": "2"}}),
        ),
    ] {
        for stream in [false, true] {
            let result = json!({"content": [], "resultType": "mine", "_meta": meta});
            let service = served_by(layer.clone(), move |channel: Channel, _| {
                let result = result.clone();
                async move {
                    if stream {
                        channel.start_stream().unwrap();
                    }
                    channel.send_result(result).unwrap();
                    nothing()
                }
            });
            let reply = Call::tool("x").send(service).await;
            assert_eq!(reply.last()["result"]["resultType"], "mine");
            assert_eq!(reply.last()["result"]["_meta"], expected);
        }
    }
}

#[test]
fn a_result_that_is_no_result_leaves_the_request_open() {
    let (channel, mut outlet) = channel(&Call::tool("x"));
    for bad in [json!(null), json!([]), json!("{}"), json!(1)] {
        let error = channel.send_result(bad).unwrap_err();
        assert!(error.is_invalid_message() && error.to_string().contains("object"));
    }
    let error = channel.send_result(unserializable()).unwrap_err();
    assert!(error.is_invalid_message() && error.to_string().contains("serialize"));
    assert_eq!(channel.status(), Status::Open);
    assert_eq!((outlet.try_next(), outlet.try_reply()), (None, None));
    channel.send_result(json!({})).unwrap();
    assert!(outlet.try_reply().is_some());
}

#[test]
fn after_a_single_reply_the_servers_task_is_forgotten() {
    let kept: Arc<Mutex<Option<Channel>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let service = served_by(untimed(), move |channel, _| {
        *keeps.lock().unwrap() = Some(channel);
        async {
            tokio::task::yield_now().await;
            Reply::result(json!({}))
        }
    });
    let task = Arc::new(Task);
    let waker = Waker::from(Arc::clone(&task));
    let mut response = Box::pin(service.oneshot(Call::tool("x").request()));
    let mut cx = Context::from_waker(&waker);
    assert!(response.as_mut().poll(&mut cx).is_pending());
    assert!(response.as_mut().poll(&mut cx).is_ready());
    drop((response, waker));
    assert_eq!(Arc::strong_count(&task), 1);
    assert!(kept.lock().unwrap().is_some());
}

/// The task of a server's connection.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn after_the_final_reply_no_byte_follows() {
    let (channel, mut outlet) = channel(&Call::tool("x").token(1));
    channel.start_stream().unwrap();
    channel.send_error(RpcError::internal("first")).unwrap();
    assert!(channel.try_send_progress(1).unwrap_err().is_closed());
    assert!(channel.send_result(json!({})).unwrap_err().is_closed());
    assert!(
        channel
            .send_error(RpcError::internal("second"))
            .unwrap_err()
            .is_closed()
    );
    assert!(channel.close().unwrap_err().is_closed());
    let [message] = &*sent(&mut outlet) else {
        panic!("one message was expected")
    };
    assert_eq!(message["error"]["message"], "first");
}

#[test]
fn an_error_has_its_status_code_message_and_data() {
    for (error, status) in [
        (RpcError::parse_error("m"), 400),
        (RpcError::invalid_request("m"), 400),
        (RpcError::method_not_found("m"), 404),
        (RpcError::invalid_params("m"), 200),
        (RpcError::internal("m"), 200),
        (RpcError::new(-32020, "m"), 400),
        (RpcError::missing_capability(json!({"roots": {}})), 400),
        (RpcError::new(-32022, "m"), 400),
        (RpcError::new(-32000, "m"), 200),
        (RpcError::new(i64::MIN, "m"), 200),
        (
            RpcError::method_not_found("m").with_status(StatusCode::OK),
            200,
        ),
        (
            RpcError::internal("m").with_status(StatusCode::BAD_GATEWAY),
            502,
        ),
    ] {
        let (channel, mut outlet) = channel(&Call::tool("x").id("i"));
        assert_eq!(error.status(), status);
        let error = error.with_data(json!({"d": 1}));
        channel.send_error(error.clone()).unwrap();
        let (sent_status, message) = reply(&mut outlet).unwrap();
        assert_eq!(sent_status, status);
        assert_eq!(
            message,
            json!({
                "jsonrpc": "2.0", "id": "i",
                "error": {"code": error.code(), "message": error.message(), "data": {"d": 1}},
            })
        );
    }
}

#[tokio::test]
async fn an_error_may_say_when_to_come_back() {
    let busy = RpcError::internal("busy")
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
        .with_retry_after(std::time::Duration::from_millis(7900));
    let service = served(move |channel: Channel, _| {
        let busy = busy.clone();
        async move {
            channel.send_error(busy).unwrap();
            nothing()
        }
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.headers["retry-after"], "8");
}

// start_stream, close, set_closed, as_closed, closed

#[tokio::test]
async fn start_stream_opens_it_and_may_be_repeated() {
    let service = served(|channel: Channel, _| async move {
        channel.start_stream().unwrap();
        channel.start_stream().unwrap();
        nothing_but_result()
    });
    let reply = Call::tool("x").send(service).await;
    assert_eq!(reply.events().len(), 1);
}

fn nothing_but_result() -> Reply {
    Reply::result(json!({"content": []}))
}

#[test]
fn a_handle_that_is_closed_alone_tells_nobody() {
    let (mut channel, mut outlet) = channel(&Call::tool("x").token(1));
    let other = channel.clone();
    channel.set_closed();
    channel.set_closed();
    assert_eq!(channel.status(), Status::Closed);
    assert_eq!(channel.clone().status(), Status::Closed);
    assert!(channel.try_send_progress(1).unwrap_err().is_closed());
    assert!(channel.start_stream().unwrap_err().is_closed());
    assert_eq!((outlet.try_next(), outlet.try_reply()), (None, None));
    assert_eq!(other.status(), Status::Open);
    other.try_send_progress(1).unwrap();
    assert_eq!(sent(&mut outlet).len(), 1);
}

#[test]
fn a_closed_copy_is_detached_and_knows_the_same() {
    let (channel, mut outlet) = channel(&Call::tool("x").id("i").token(1));
    let copy = channel.as_closed();
    assert_eq!(copy.status(), Status::Closed);
    assert_eq!(copy.request_id(), channel.request_id());
    assert_eq!(copy.progress_token(), channel.progress_token());
    assert!(copy.send_result(json!({})).unwrap_err().is_closed());
    assert_eq!(channel.status(), Status::Open);
    channel.send_result(json!({})).unwrap();
    assert!(outlet.try_reply().is_some());
}

#[test]
fn closed_tells_why() {
    type End = fn(&Channel, Outlet);
    let ends: [(End, CloseReason); 5] = [
        (|_, outlet| drop(outlet), CloseReason::Disconnected),
        (
            |channel, _| channel.send_result(json!({})).unwrap(),
            CloseReason::Replied,
        ),
        (
            |channel, _| channel.send_error(RpcError::internal("")).unwrap(),
            CloseReason::Replied,
        ),
        (|channel, _| channel.close().unwrap(), CloseReason::Closed),
        (
            |channel, _| {
                channel.start_stream().unwrap();
                channel.close().unwrap();
            },
            CloseReason::Closed,
        ),
    ];
    for (end, reason) in ends {
        let (channel, outlet) = channel(&Call::tool("x"));
        let clone = channel.clone();
        let mut waiting = [spawn(channel.closed()), spawn(clone.closed())];
        for closed in &mut waiting {
            assert_pending!(closed.poll());
        }
        end(&channel, outlet);
        for closed in &mut waiting {
            assert!(closed.is_woken());
            assert_ready_eq!(closed.poll(), reason);
        }
        assert_ready_eq!(spawn(channel.closed()).poll(), reason);
        assert_eq!(channel.status(), Status::Closed);
    }
}

#[test]
fn a_handle_that_is_closed_alone_is_closed_at_once() {
    let (channel, _outlet) = channel(&Call::tool("x"));
    let closed = channel.as_closed();
    assert_ready_eq!(spawn(closed.closed()).poll(), CloseReason::Closed);
    assert_pending!(spawn(channel.closed()).poll());
}

#[test]
fn waiting_for_the_end_can_be_given_up() {
    let (channel, outlet) = channel(&Call::tool("x"));
    let mut first = spawn(channel.closed());
    let mut second = spawn(channel.closed());
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(first);
    drop(outlet);
    assert!(second.is_woken());
    assert_ready_eq!(second.poll(), CloseReason::Disconnected);
}

#[test]
fn closed_comes_before_every_other_reason() {
    let refused = |channel: &Channel| {
        let json = json!({"method": "m", "id": 1});
        let results: [Result<(), SendError>; 14] = [
            channel.try_send_progress(1),
            channel.try_send_progress(f64::NAN),
            channel.try_send_log(LogLevel::Emergency, Untouchable),
            channel.try_send_log_from("l", LogLevel::Debug, Untouchable),
            channel.try_send_notification(Untouchable),
            channel.try_send_notification(&json),
            channel.try_send_notification(acknowledgement()),
            channel.send_result(Untouchable),
            channel.send_error(RpcError::internal("")),
            channel.start_stream(),
            channel.close(),
            assert_ready!(spawn(channel.send_progress(f64::NAN)).poll()),
            assert_ready!(spawn(channel.send_notification(Untouchable)).poll()),
            assert_ready!(spawn(channel.flush()).poll()),
        ];
        for (n, result) in results.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert!(error.is_closed(), "{n}: {error}");
        }
    };
    let calls = [
        Call::tool("x"),
        Call::tool("x").token(1).meta("logLevel", "debug"),
        Call::listen(),
    ];
    for call in calls {
        let (first, outlet) = channel(&call);
        drop(outlet);
        refused(&first);

        let (first, _outlet) = channel(&call);
        first.send_error(RpcError::internal("")).unwrap();
        refused(&first);

        let (first, _outlet) = channel(&call);
        first.close().unwrap();
        refused(&first);

        let (mut first, _outlet) = channel(&call);
        refused(&first.as_closed());
        first.set_closed();
        refused(&first);
    }
    let (of_notification, mut outlet) = channel(&Call::notification("notifications/x").token(1));
    refused(&of_notification);
    assert_eq!(of_notification.request_id(), None);
    assert_ready_eq!(spawn(of_notification.closed()).poll(), CloseReason::Closed);
    assert_eq!((outlet.try_next(), outlet.try_reply()), (None, None));

    let (full, outlet) = channel(&Call::tool("x").token(1));
    full.try_send_progress((1, 1, "m".repeat(5000))).unwrap();
    assert!(full.try_send_progress(2).unwrap_err().is_full());
    drop(outlet);
    assert!(full.try_send_progress(2).unwrap_err().is_closed());
}

// subscriptions/listen

#[test]
fn a_subscription_begins_with_its_acknowledgement() {
    let call = Call::listen().token(1).meta("logLevel", "debug");
    let (channel, mut outlet) = channel(&call);
    let results = [
        channel.try_send_progress(1),
        channel.try_send_log(LogLevel::Info, Untouchable),
        channel.try_send_notification(ToolListChanged),
        channel.try_send_notification(json!({"method": "notifications/own"})),
        channel.try_send_notification(
            json!({"method": "notifications/message", "params": {"level": "info", "data": 1}}),
        ),
        channel.send_result(json!({})),
    ];
    for (n, result) in results.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert!(error.is_not_acknowledged(), "{n}: {error}");
    }
    assert_eq!((outlet.try_next(), outlet.try_reply()), (None, None));
    channel.start_stream().unwrap();
    channel.try_send_notification(acknowledgement()).unwrap();
    channel.try_send_notification(ToolListChanged).unwrap();
    assert_eq!(sent(&mut outlet).len(), 2);
}

#[test]
fn a_subscription_is_acknowledged_once_and_carries_no_progress_and_no_logs() {
    let call = Call::listen().token(1).meta("logLevel", "debug");
    let (channel, mut outlet) = channel(&call);
    channel.try_send_notification(acknowledgement()).unwrap();
    sent(&mut outlet);
    let results = [
        (channel.try_send_notification(acknowledgement()), "once"),
        (channel.try_send_progress(1), "progress"),
        (channel.try_send_log(LogLevel::Info, Untouchable), "log"),
        (
            channel.try_send_notification(
                json!({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}),
            ),
            "progress",
        ),
        (
            channel.try_send_notification(
                json!({"method": "notifications/message", "params": {"level": "info", "data": 1}}),
            ),
            "log",
        ),
    ];
    for (result, named) in results {
        let error = result.unwrap_err();
        assert!(error.is_invalid_message(), "{named}: {error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    assert_eq!(outlet.try_next(), None);
}

#[test]
fn everything_on_a_subscription_carries_its_id() {
    let (channel, mut outlet) = channel(&Call::listen().id("s"));
    channel.try_send_notification(acknowledgement()).unwrap();
    channel.try_send_notification(ToolListChanged).unwrap();
    channel
        .try_send_notification(
            json!({"method": "notifications/own", "params": {"_meta": {"k": 1}}}),
        )
        .unwrap();
    channel.send_result(json!({"_meta": {"k": 1}})).unwrap();
    let messages = sent(&mut outlet);
    assert_eq!(messages.len(), 4);
    for message in &messages[..3] {
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION_ID], "s");
    }
    assert_eq!(messages[2]["params"]["_meta"]["k"], 1);
    assert_eq!(
        messages[3]["result"],
        json!({"resultType": "complete", "_meta": {"k": 1, SUBSCRIPTION_ID: "s"}})
    );
}

#[test]
fn errors_and_close_may_come_before_the_acknowledgement() {
    let (first, mut outlet) = channel(&Call::listen());
    first.send_error(RpcError::method_not_found("m")).unwrap();
    assert_eq!(reply(&mut outlet).unwrap().0, 404);

    let (second, mut outlet) = channel(&Call::listen());
    second.close().unwrap();
    let (status, message) = reply(&mut outlet).unwrap();
    assert_eq!(
        (status.as_u16(), &message["error"]["code"]),
        (500, &json!(-32603))
    );

    let (third, mut outlet) = channel(&Call::listen().id("s"));
    third.start_stream().unwrap();
    third.close().unwrap();
    // A result comes after the acknowledgement.
    assert_eq!(sent(&mut outlet)[0]["error"]["code"], -32603);
}

#[tokio::test]
async fn a_result_that_is_returned_before_the_acknowledgement_is_our_failure() {
    for (stream, status) in [(false, 500), (true, 200)] {
        let service = served(move |channel: Channel, _| async move {
            if stream {
                channel.start_stream().unwrap();
            }
            Reply::result(json!({}))
        });
        let reply = Call::listen().send(service).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.last()["error"]["code"], -32603);
    }
}

#[test]
fn the_end_of_a_subscription_is_its_result_and_nothing_else() {
    let (channel, mut outlet) = channel(&Call::listen().id("s"));
    channel.try_send_notification(acknowledgement()).unwrap();
    sent(&mut outlet);
    channel.close().unwrap();
    let messages = sent(&mut outlet);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["id"], "s");
    assert_eq!(messages[0].get("method"), None);
}

// Clients that take less than both forms

#[tokio::test]
async fn a_client_that_takes_only_json_is_served_json() {
    let service = served(|channel: Channel, message: Message| async move {
        assert_eq!(
            (channel.progress_token(), channel.log_level()),
            (None, None)
        );
        assert_eq!(message.meta().progress_token(), None);
        assert_eq!(message.meta().log_level(), None);
        channel.start_stream().unwrap();
        channel
            .send_log(LogLevel::Emergency, Untouchable)
            .await
            .unwrap();
        assert!(
            channel
                .send_progress(1)
                .await
                .unwrap_err()
                .is_no_progress_token()
        );
        for notification in [
            serde_json::to_value(ToolListChanged).unwrap(),
            serde_json::to_value(acknowledgement()).unwrap(),
            json!({"method": "notifications/message", "params": {"level": "alert", "data": 1}}),
            json!({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}),
        ] {
            let error = channel.send_notification(notification).await.unwrap_err();
            assert!(error.is_not_streamable(), "{error}");
        }
        // The shape is judged first, so that the mistake shows with every client.
        let error = channel.send_notification(json!({})).await.unwrap_err();
        assert!(error.is_invalid_message());
        channel.send_result(json!({"content": []})).unwrap();
        nothing()
    });
    for accept in [
        "application/json",
        "application/json, text/event-stream;q=0",
        "application/*",
    ] {
        let call = Call::tool("x")
            .token(1)
            .meta("logLevel", "debug")
            .accept(accept);
        let reply = call.send(service.clone()).await;
        assert_eq!(reply.status, 200);
        assert!(reply.json()["result"].is_object(), "{accept}");
    }
}

#[tokio::test]
async fn a_client_that_takes_only_streams_gets_a_stream_of_one_event() {
    let service = served(|channel: Channel, message: Message| async move {
        match message.name().as_deref() {
            Some("result") => channel.send_result(json!({"content": []})).unwrap(),
            Some("200") => channel.send_error(RpcError::invalid_params("p")).unwrap(),
            _ => channel.send_error(RpcError::method_not_found("m")).unwrap(),
        }
        nothing()
    });
    for accept in [
        "text/event-stream",
        "text/*",
        "text/event-stream, application/json;q=0",
    ] {
        let call = |tool| Call::tool(tool).accept(accept);
        let reply = call("result").send(service.clone()).await;
        assert_eq!((reply.status.as_u16(), reply.events().len()), (200, 1));
        assert!(reply.last()["result"].is_object());
        let reply = call("200").send(service.clone()).await;
        assert_eq!(reply.events()[0]["error"]["code"], -32602);
        // A status that says something is worth more than the form.
        let reply = call("404").send(service.clone()).await;
        assert_eq!(reply.status, 404);
        assert_eq!(reply.json()["error"]["code"], -32601);
    }
}

// Accessors

#[derive(Clone, Debug, PartialEq)]
struct User(&'static str);

#[derive(Clone, Debug, PartialEq)]
struct Pool(u8);

#[tokio::test]
async fn a_channel_knows_its_request() {
    let service = served(|channel: Channel, message: Message| async move {
        assert_eq!(channel.status(), Status::Open);
        assert_eq!(channel.request_id(), Some(&"i".into()));
        assert_eq!(channel.progress_token(), Some(&7.into()));
        assert_eq!(channel.log_level(), Some(LogLevel::Notice));
        assert_eq!(channel.endpoint(), "http://localhost/mcp");
        let meta = channel.meta();
        assert_eq!(meta.protocol_version(), Some("2026-07-28"));
        assert_eq!(
            meta.client_info().unwrap().as_str(),
            r#"{"name":"c","version":"1"}"#
        );
        assert_eq!(
            meta.client_capabilities().unwrap().as_str(),
            r#"{"roots":{}}"#
        );
        assert_eq!(
            meta.traceparent(),
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        );
        assert_eq!(meta.tracestate(), Some("v=1"));
        assert_eq!(meta.baggage(), Some("k=1"));
        assert_eq!(message.meta().traceparent(), meta.traceparent());
        assert!(meta.require_capabilities(json!({"roots": {}})).is_ok());
        let missing = meta
            .require_capabilities(json!({"sampling": {}}))
            .unwrap_err();
        assert_eq!(missing.code(), -32021);
        nothing_but_result()
    });
    let reply = Call::tool("x")
        .id("i")
        .token(7)
        .meta("logLevel", "notice")
        .meta("clientInfo", json!({"name": "c", "version": "1"}))
        .meta("clientCapabilities", json!({"roots": {}}))
        .meta(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .meta("tracestate", "v=1")
        .meta("baggage", "k=1")
        .send(service)
        .await;
    assert_eq!(reply.status, 200);
    assert!(reply.json()["result"].is_object());
}

#[tokio::test]
async fn a_malformed_trace_never_rejects() {
    let service = served(|channel: Channel, _| async move {
        assert_eq!(channel.meta().traceparent(), None);
        assert_eq!(channel.meta().tracestate(), None);
        nothing_but_result()
    });
    for trace in [json!("00-xyz"), json!(1), json!(null), json!("")] {
        let call = Call::tool("x")
            .meta("traceparent", trace)
            .meta("tracestate", "v=1");
        assert!(call.send(service.clone()).await.json()["result"].is_object());
    }
}

#[tokio::test]
async fn values_are_found_by_type_and_the_requests_own_wins() {
    let layer = McpChannelLayer::new()
        .value(User("everybody"))
        .value(Pool(1))
        .copy_value::<User>()
        .copy_value::<String>();
    let service = served_by(layer, |channel: Channel, message: Message| async move {
        let user = channel.value::<User>().unwrap().0.to_owned();
        assert_eq!(channel.value::<Pool>(), Some(&Pool(1)));
        assert_eq!(
            channel.value::<String>().is_some(),
            message.name().unwrap() == "mine"
        );
        // Not asked for.
        assert_eq!(channel.value::<u64>(), None);
        assert_eq!(channel.clone().value::<Pool>(), Some(&Pool(1)));
        assert_eq!(channel.as_closed().value::<Pool>(), Some(&Pool(1)));
        Reply::result(json!({"content": [], "user": user}))
    });
    let reply = Call::tool("x").send(service.clone()).await;
    assert_eq!(reply.json()["result"]["user"], "everybody");

    let mut request = Call::tool("mine").request();
    request.extensions_mut().insert(User("me"));
    request.extensions_mut().insert(String::new());
    request.extensions_mut().insert(7u64);
    let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    assert_eq!(reply.json()["result"]["user"], "me");
}

// By hand

#[test]
fn a_channel_made_by_hand_has_its_values_and_ignores_an_unknown_level() {
    let message = Message::parse(Call::tool("x").meta("logLevel", "loud").message.to_string());
    let mut values = Extensions::new();
    values.insert(User("me"));
    let (channel, _outlet) = Channel::from_request(&message.unwrap(), values);
    assert_eq!(channel.value::<User>(), Some(&User("me")));
    assert_eq!(channel.value::<Pool>(), None);
    assert_eq!(channel.log_level(), None);
}

#[test]
fn the_outlet_gives_the_reply_or_the_stream() {
    let (single, mut outlet) = channel(&Call::tool("x"));
    single.send_error(RpcError::method_not_found("m")).unwrap();
    assert_eq!(outlet.try_next(), None);
    assert_eq!(reply(&mut outlet).unwrap().0, 404);
    assert_eq!(reply(&mut outlet), None);

    let (stream, mut outlet) = channel(&Call::tool("x").token(1));
    stream.try_send_progress(1).unwrap();
    stream.send_result(json!({})).unwrap();
    assert_eq!(outlet.try_reply(), None);
    assert_eq!(sent(&mut outlet).len(), 2);
    assert_eq!(outlet.try_next(), None);
}

#[test]
fn sends_can_be_moved_between_threads_whatever_their_data() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (channel, mut outlet) = channel(&Call::tool("x").token(1).meta("logLevel", "debug"));
    let data = Rc::new(Cell::new(1));
    let mut futures = [
        spawn(is_send(channel.send_log(LogLevel::Info, &*data))),
        spawn(is_send(channel.send_notification(
            json!({"method": "notifications/own", "params": {"a": data.get()}}),
        ))),
        spawn(is_send(channel.send_progress(1))),
    ];
    // It was encoded when the send was made.
    data.set(2);
    for future in &mut futures {
        assert_ready!(future.poll()).unwrap();
    }
    let messages = sent(&mut outlet);
    assert_eq!(messages[0]["params"]["data"], 1);
    assert_eq!(messages[1]["params"]["a"], 1);
    drop(is_send(channel.closed()));
    drop(is_send(channel.flush()));
}

#[test]
fn nothing_is_sent_by_a_send_that_is_not_awaited() {
    let (channel, mut outlet) = channel(&Call::tool("x").token(1).meta("logLevel", "debug"));
    drop(channel.send_progress(1));
    drop(channel.send_log(LogLevel::Info, 1));
    drop(channel.send_notification(ToolListChanged));
    assert_eq!(outlet.try_next(), None);
    channel.try_send_progress(1).unwrap();
    assert_eq!(sent(&mut outlet).len(), 1);
}

#[test]
fn a_send_from_another_thread_is_a_send() {
    let (channel, mut outlet) = channel(&Call::tool("x").token(1));
    std::thread::scope(|scope| {
        scope.spawn(|| channel.try_send_progress(1).unwrap());
    });
    assert_eq!(params(&mut outlet)["progress"], 1);
}
