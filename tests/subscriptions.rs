//! `subscriptions/listen`: what a client asks for, hears, and how it ends.

mod support;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use mcp_channel::subscriptions::{
    Builder, Change, Relay, ResourceMatch, SubscriptionFilter, Subscriptions,
};
use mcp_channel::{
    Channel, Deferred, McpChannelLayer, McpChannelService, Message, RequestBody, RpcError, Shutdown,
};
use serde_json::{Value, json};
use support::listener::Listener;
use support::request::{Call, served_by};
use tower::util::BoxCloneSyncService;

type Service =
    McpChannelService<BoxCloneSyncService<Request<RequestBody>, Response<Full<Bytes>>, Infallible>>;

fn answer(accepted: Result<Deferred, RpcError>) -> Response<Full<Bytes>> {
    match accepted {
        Ok(deferred) => deferred.into(),
        Err(error) => error.into(),
    }
}

/// A server whose handler accepts whatever comes.
fn server(subscriptions: &Subscriptions) -> Service {
    server_by(McpChannelLayer::new(), subscriptions)
}

fn server_by(layer: McpChannelLayer, subscriptions: &Subscriptions) -> Service {
    let subscriptions = subscriptions.clone();
    served_by(layer, move |channel: Channel, message: Message| {
        let accepted = subscriptions.accept(channel, &message);
        async move { answer(accepted) }
    })
}

fn listen(filter: Value) -> Call {
    Call::new("subscriptions/listen").param("notifications", filter)
}

fn everything() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["file:///a", "file:///b"],
    })
}

fn publish_all(subscriptions: &Subscriptions) {
    subscriptions.tools_list_changed();
    subscriptions.prompts_list_changed();
    subscriptions.resources_list_changed();
    subscriptions.resource_updated("file:///a");
    subscriptions.resource_updated("file:///b");
}

// Accepting

#[tokio::test]
async fn a_malformed_filter_is_refused_before_any_stream() {
    let subscriptions = Subscriptions::new();
    for (filter, named) in [
        (json!("all"), "params.notifications"),
        (json!(null), "params.notifications"),
        (json!([true]), "params.notifications"),
        (json!({"toolsListChanged": "yes"}), "toolsListChanged"),
        (json!({"promptsListChanged": 1}), "promptsListChanged"),
        (
            json!({"resourcesListChanged": null}),
            "resourcesListChanged",
        ),
        (
            json!({"resourceSubscriptions": null}),
            "resourceSubscriptions",
        ),
        (
            json!({"resourceSubscriptions": "file:///a"}),
            "resourceSubscriptions",
        ),
        (
            json!({"resourceSubscriptions": ["file:///a", 1]}),
            "resourceSubscriptions[1]",
        ),
    ] {
        let reply = listen(filter.clone()).send(server(&subscriptions)).await;
        assert_eq!(reply.json()["error"]["code"], -32602, "{filter}");
        let message = reply.json()["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{filter}: {message}");
    }
    let reply = Call::new("subscriptions/listen")
        .send(server(&subscriptions))
        .await;
    assert_eq!(reply.json()["error"]["code"], -32602);
    assert!(subscriptions.is_empty());
}

#[tokio::test]
async fn a_filter_that_names_too_many_resources_is_refused() {
    let subscriptions = Subscriptions::builder().resource_limit(2).build();
    let three = json!({"resourceSubscriptions": ["a", "b", "c"]});
    let reply = listen(three).send(server(&subscriptions)).await;
    assert_eq!(reply.json()["error"]["code"], -32602);
    let message = reply.json()["error"]["message"].as_str().unwrap();
    assert!(message.contains("3 resources: at most 2"), "{message}");
    assert!(subscriptions.is_empty());
}

#[tokio::test]
async fn a_listen_without_an_id_is_refused_as_the_clients_fault() {
    let subscriptions = Subscriptions::new();
    let call = Call::notification("subscriptions/listen").param("notifications", json!({}));
    let reply = call.send(server(&subscriptions)).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["code"], -32600);
    assert!(subscriptions.is_empty());
}

#[tokio::test]
async fn the_acknowledgement_is_the_first_message_and_says_what_is_honoured() {
    let all = everything();
    for (builder, filter, honoured) in [
        (Subscriptions::builder(), all.clone(), all.clone()),
        (Subscriptions::builder(), json!({}), json!({})),
        (
            Subscriptions::builder(),
            json!({"toolsListChanged": false}),
            json!({}),
        ),
        (
            Subscriptions::builder(),
            json!({"tasksListChanged": true, "resourceSubscriptions": []}),
            json!({"resourceSubscriptions": []}),
        ),
        (
            Subscriptions::builder(),
            json!({"resourceSubscriptions": ["b", "a", "b", "a"]}),
            json!({"resourceSubscriptions": ["b", "a"]}),
        ),
        (
            Subscriptions::builder()
                .tools(false)
                .resource_subscriptions(false),
            all.clone(),
            json!({"promptsListChanged": true, "resourcesListChanged": true}),
        ),
        (
            Subscriptions::builder().prompts(false).resources(false),
            all.clone(),
            json!({
                "toolsListChanged": true,
                "resourceSubscriptions": ["file:///a", "file:///b"],
            }),
        ),
    ] {
        let subscriptions = builder.build();
        let mut client = Listener::open(server(&subscriptions), &listen(filter)).await;
        publish_all(&subscriptions);
        let acknowledgement = client.messages().remove(0);
        let expected = json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {"io.modelcontextprotocol/subscriptionId": 1},
                "notifications": honoured,
            },
        });
        assert_eq!(acknowledgement, expected);
    }
}

#[tokio::test]
async fn a_handler_may_reduce_what_is_honoured() {
    let subscriptions = Subscriptions::new();
    let hub = subscriptions.clone();
    let service = served_by(McpChannelLayer::new(), move |channel, message| {
        let accepted = hub.accept_with(channel, &message, |filter: &mut SubscriptionFilter| {
            filter.tools_list_changed = false;
            if let Some(uris) = &mut filter.resource_subscriptions {
                uris.retain(|uri| uri != "file:///b");
            }
        });
        async move { answer(accepted) }
    });
    let mut client = Listener::open(service, &listen(everything())).await;
    let acknowledged = client.messages().remove(0)["params"]["notifications"].take();
    assert_eq!(acknowledged["resourceSubscriptions"], json!(["file:///a"]));
    assert_eq!(acknowledged.get("toolsListChanged"), None);
    publish_all(&subscriptions);
    assert_eq!(
        client.heard(),
        [
            "prompts/list_changed",
            "resources/list_changed",
            "resources/updated file:///a"
        ]
    );
}

#[tokio::test]
async fn a_channel_is_accepted_once_and_only_that_of_a_listen_request() {
    let subscriptions = Subscriptions::new();
    let parse = |json: &'static str| Message::parse(json).unwrap();
    let listen = parse(
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}"#,
    );
    let call = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#);

    let (channel, _outlet) = Channel::from_request(&call, http::Extensions::new());
    let error = subscriptions.accept(channel, &listen).unwrap_err();
    assert_eq!(error.code(), -32603);

    let (channel, outlet) = Channel::from_request(&listen, http::Extensions::new());
    let again = channel.clone();
    assert!(subscriptions.accept(channel, &listen).is_ok());
    assert_eq!(
        subscriptions.accept(again, &listen).unwrap_err().code(),
        -32603
    );
    assert_eq!(subscriptions.len(), 1);
    drop(outlet);
    assert_eq!(subscriptions.len(), 0);
}

#[tokio::test]
async fn a_refused_channel_may_be_accepted_elsewhere() {
    let (full, free) = (
        Subscriptions::builder().limit(0).build(),
        Subscriptions::new(),
    );
    let listen = Message::parse(
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#,
    )
    .unwrap();
    let (channel, mut outlet) = Channel::from_request(&listen, http::Extensions::new());
    assert!(full.accept(channel.clone(), &listen).is_err());
    assert!(free.accept(channel, &listen).is_ok());
    assert_eq!((full.len(), free.tools_list_changed()), (0, 1));
    assert!(
        outlet
            .try_next()
            .unwrap()
            .starts_with(b"event: message\ndata: ")
    );
}

// Publishing

#[tokio::test]
async fn each_change_reaches_exactly_those_that_asked() {
    let subscriptions = Subscriptions::new();
    let kinds = [
        (json!({"toolsListChanged": true}), "tools/list_changed"),
        (json!({"promptsListChanged": true}), "prompts/list_changed"),
        (
            json!({"resourcesListChanged": true}),
            "resources/list_changed",
        ),
        (
            json!({"resourceSubscriptions": ["file:///a"]}),
            "resources/updated file:///a",
        ),
        (
            json!({"resourceSubscriptions": ["file:///b"]}),
            "resources/updated file:///b",
        ),
        (json!({"resourceSubscriptions": ["file:///"]}), ""),
        (json!({}), ""),
    ];
    let mut clients = Vec::new();
    for (filter, hears) in kinds {
        let mut client = Listener::open(server(&subscriptions), &listen(filter)).await;
        assert_eq!(client.heard(), ["subscriptions/acknowledged"]);
        clients.push((client, hears));
    }
    assert_eq!(subscriptions.tools_list_changed(), 1);
    assert_eq!(subscriptions.prompts_list_changed(), 1);
    assert_eq!(subscriptions.resources_list_changed(), 1);
    assert_eq!(subscriptions.resource_updated("file:///a"), 1);
    assert_eq!(subscriptions.resource_updated("file:///b"), 1);
    assert_eq!(subscriptions.resource_updated("file:///c"), 0);
    for (client, hears) in &mut clients {
        let heard = client.heard();
        let hears: Vec<_> = Some(*hears).filter(|h| !h.is_empty()).into_iter().collect();
        assert_eq!(heard, hears);
    }
}

#[tokio::test]
async fn each_notification_carries_the_id_of_its_stream_in_type_and_digits() {
    let subscriptions = Subscriptions::new();
    let digits = "36893488147419103233";
    let mut clients = Vec::new();
    for id in ["1", "\"1\"", "-7", "\"a\\\"b\"", digits] {
        let text = listen(everything()).id("ID").message.to_string();
        let body = Full::<Bytes>::from(text.replace("\"ID\"", id));
        let request = listen(everything()).with_body(body);
        let call = server(&subscriptions);
        let response = tower::ServiceExt::oneshot(call, request).await.unwrap();
        clients.push((response, id));
    }
    publish_all(&subscriptions);
    subscriptions.close_all();
    for (response, id) in clients {
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .unwrap();
        let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        let stamp = format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#);
        // The acknowledgement, five changes and the result.
        assert_eq!(body.matches("data: ").count(), 7, "{body}");
        assert_eq!(body.matches(&stamp).count(), 7, "{id}: {body}");
    }
}

#[tokio::test]
async fn what_is_published_before_anybody_listens_is_told_to_nobody() {
    let subscriptions = Subscriptions::new();
    publish_all(&subscriptions);
    let mut client = Listener::open(server(&subscriptions), &listen(everything())).await;
    assert_eq!(client.heard(), ["subscriptions/acknowledged"]);
}

#[tokio::test]
async fn what_waits_unsent_is_merged_and_what_was_sent_is_not() {
    let subscriptions = Subscriptions::new();
    let mut client = Listener::open(server(&subscriptions), &listen(everything())).await;
    client.heard();
    for _ in 0..3 {
        subscriptions.resource_updated("file:///b");
        subscriptions.tools_list_changed();
    }
    assert_eq!(
        client.heard(),
        ["resources/updated file:///b", "tools/list_changed"]
    );
    subscriptions.tools_list_changed();
    assert_eq!(client.heard(), ["tools/list_changed"]);
}

#[tokio::test]
async fn deliver_all_tells_each_subscriber_what_it_asked_for_once() {
    let subscriptions = Subscriptions::new();
    let mut all = Listener::open(server(&subscriptions), &listen(everything())).await;
    let mut tools = Listener::open(server(&subscriptions), &Call::listen()).await;
    all.heard();
    tools.heard();
    subscriptions.deliver_all();
    subscriptions.deliver_all();
    let mut heard = all.heard();
    heard.sort();
    assert_eq!(
        heard,
        [
            "prompts/list_changed",
            "resources/list_changed",
            "resources/updated file:///a",
            "resources/updated file:///b",
            "tools/list_changed",
        ]
    );
    assert_eq!(tools.heard(), ["tools/list_changed"]);
}

#[tokio::test]
async fn a_relay_is_given_what_is_published_and_not_what_it_brought() {
    #[derive(Clone, Default)]
    struct Recorder(Arc<Mutex<Vec<Change>>>);
    impl Relay for Recorder {
        fn publish(&self, change: &Change) {
            self.0.lock().unwrap().push(change.clone());
        }
    }
    let relay = Recorder::default();
    let subscriptions = Subscriptions::builder().relay(relay.clone()).build();
    subscriptions.prompts_list_changed();
    subscriptions.resource_updated("file:///a");
    subscriptions.deliver(&Change::Tools);
    subscriptions.deliver_all();
    let published = relay.0.lock().unwrap().clone();
    assert_eq!(
        published,
        [Change::Prompts, Change::Resource("file:///a".into())]
    );
}

// Parts of resources

async fn listener_of(builder: Builder, uris: &[&str]) -> (Subscriptions, Listener) {
    let subscriptions = builder.build();
    let call = listen(json!({"resourceSubscriptions": uris}));
    let mut client = Listener::open(server(&subscriptions), &call).await;
    client.heard();
    (subscriptions, client)
}

#[tokio::test]
async fn a_part_of_a_resource_concerns_its_subscribers_where_the_server_says_so() {
    let parts = || Subscriptions::builder().resource_match(ResourceMatch::parts());
    let (subscriptions, mut client) = listener_of(parts(), &["docs://a/b"]).await;
    assert_eq!(subscriptions.resource_updated("docs://a/b/c#d"), 1);
    assert_eq!(subscriptions.resource_updated("docs://a/bc"), 0);
    assert_eq!(subscriptions.resource_updated("docs://a"), 0);
    assert_eq!(client.heard(), ["resources/updated docs://a/b/c#d"]);

    // Exact is the default.
    let (subscriptions, _client) = listener_of(Subscriptions::builder(), &["docs://a/b"]).await;
    assert_eq!(subscriptions.resource_updated("docs://a/b/c"), 0);
    assert_eq!(subscriptions.resource_updated("docs://a/b"), 1);
}

#[tokio::test]
async fn updates_of_several_parts_that_wait_become_one_of_the_whole() {
    let parts = Subscriptions::builder().resource_match(ResourceMatch::parts());
    let (subscriptions, mut client) = listener_of(parts, &["docs://a"]).await;
    subscriptions.resource_updated("docs://a/1");
    subscriptions.resource_updated("docs://a/1");
    assert_eq!(client.heard(), ["resources/updated docs://a/1"]);
    subscriptions.resource_updated("docs://a/1");
    subscriptions.resource_updated("docs://a/2");
    assert_eq!(client.heard(), ["resources/updated docs://a"]);
}

#[tokio::test]
async fn who_subscribed_to_a_resource_and_its_part_hears_of_the_part_once() {
    let parts = Subscriptions::builder().resource_match(ResourceMatch::parts());
    let (subscriptions, mut client) = listener_of(parts, &["docs://a", "docs://a/b"]).await;
    assert_eq!(subscriptions.resource_updated("docs://a/b"), 1);
    assert_eq!(client.heard(), ["resources/updated docs://a/b"]);
}

#[tokio::test]
async fn a_server_may_match_as_it_likes() {
    let odd = ResourceMatch::custom(|subscribed, updated| {
        updated.eq_ignore_ascii_case(subscribed.trim_end_matches('*'))
    });
    let builder = Subscriptions::builder().resource_match(odd);
    let (subscriptions, mut client) = listener_of(builder, &["x:a*", "x:b"]).await;
    assert_eq!(subscriptions.resource_updated("X:A"), 1);
    assert_eq!(subscriptions.resource_updated("x:c"), 0);
    assert_eq!(client.heard(), ["resources/updated X:A"]);
}

// Ending

#[tokio::test]
async fn a_client_that_goes_away_is_forgotten_at_once() {
    let subscriptions = Subscriptions::new();
    let service = server(&subscriptions);
    let first = Listener::open(service.clone(), &listen(everything())).await;
    let second = Listener::open(service.clone(), &listen(everything())).await;
    let mut third = Listener::open(service, &Call::listen()).await;
    third.heard();
    assert_eq!(subscriptions.len(), 3);
    drop(first);
    assert_eq!(
        (subscriptions.len(), subscriptions.tools_list_changed()),
        (2, 2)
    );
    drop(second);
    assert_eq!(
        (
            subscriptions.len(),
            subscriptions.resource_updated("file:///a")
        ),
        (1, 0)
    );
    assert_eq!(third.heard(), ["tools/list_changed"]);
    drop(third);
    assert!(subscriptions.is_empty());
}

#[tokio::test]
async fn leaving_in_any_order_leaves_the_others_as_they_were() {
    let subscriptions = Subscriptions::new();
    let service = server(&subscriptions);
    let mut clients: Vec<Option<Listener>> = Vec::new();
    for n in 0..40 {
        let uris: Vec<String> = (0..n % 5).map(|k| format!("u:{}", (n + k) % 7)).collect();
        let call = listen(json!({
            "toolsListChanged": n % 2 == 0,
            "promptsListChanged": n % 3 == 0,
            "resourceSubscriptions": uris,
        }));
        clients.push(Some(Listener::open(service.clone(), &call).await));
    }
    let open = |clients: &[Option<Listener>], wants: &dyn Fn(usize) -> bool| {
        clients
            .iter()
            .enumerate()
            .filter(|(n, c)| c.is_some() && wants(*n))
            .count()
    };
    // 23 and 40 have no common divisor, so each leaves once.
    for step in 0..40 {
        clients[step * 23 % 40] = None;
        assert_eq!(subscriptions.len(), 39 - step);
        assert_eq!(
            subscriptions.tools_list_changed(),
            open(&clients, &|n| n % 2 == 0)
        );
        assert_eq!(
            subscriptions.prompts_list_changed(),
            open(&clients, &|n| n % 3 == 0)
        );
        for uri in 0..7 {
            let wants = |n: usize| (0..n % 5).any(|k| (n + k) % 7 == uri);
            let told = subscriptions.resource_updated(format!("u:{uri}"));
            assert_eq!(told, open(&clients, &wants), "u:{uri} after {step}");
        }
    }
}

#[tokio::test]
async fn close_on_a_clone_ends_one_subscription_with_its_result() {
    let subscriptions = Subscriptions::new();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (hub, keep) = (subscriptions.clone(), Arc::clone(&kept));
    let service = served_by(McpChannelLayer::new(), move |channel: Channel, message| {
        keep.lock().unwrap().push(channel.clone());
        let accepted = hub.accept(channel, &message);
        async move { answer(accepted) }
    });
    let mut first = Listener::open(service.clone(), &Call::listen().id("one")).await;
    let mut second = Listener::open(service, &Call::listen().id("two")).await;
    first.heard();
    second.heard();
    subscriptions.tools_list_changed();
    kept.lock().unwrap()[0].close().unwrap();
    assert_eq!(subscriptions.len(), 1);
    let messages = first.messages();
    assert_eq!(messages[0]["method"], "notifications/tools/list_changed");
    let result = json!({
        "jsonrpc": "2.0",
        "id": "one",
        "result": {
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/subscriptionId": "one"},
        },
    });
    assert_eq!(messages[1], result);
    assert!(first.ended);
    assert_eq!(second.heard(), ["tools/list_changed"]);
    assert!(!second.ended);
    assert_eq!(subscriptions.tools_list_changed(), 1);
}

#[tokio::test]
async fn close_all_ends_every_subscription_and_takes_new_ones() {
    let subscriptions = Subscriptions::new();
    let service = server(&subscriptions);
    let mut clients = Vec::new();
    for id in 0..10 {
        clients.push(Listener::open(service.clone(), &listen(everything()).id(id)).await);
    }
    subscriptions.resource_updated("file:///b");
    subscriptions.close_all();
    subscriptions.tools_list_changed();
    assert!(subscriptions.is_empty());
    for client in &mut clients {
        let heard = client.heard();
        assert_eq!(
            heard,
            [
                "subscriptions/acknowledged",
                "resources/updated file:///b",
                "result"
            ]
        );
        assert!(client.ended);
    }
    Listener::open(service, &Call::listen()).await;
}

#[tokio::test]
async fn shut_down_ends_every_subscription_and_refuses_new_ones() {
    let subscriptions = Subscriptions::new();
    let service = server(&subscriptions);
    let mut client = Listener::open(service.clone(), &Call::listen()).await;
    subscriptions.shut_down();
    assert_eq!(client.heard(), ["subscriptions/acknowledged", "result"]);
    assert!(client.ended);
    let reply = Call::listen().send(service).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["error"]["code"], -32603);
    let message = reply.json()["error"]["message"].as_str().unwrap();
    assert!(message.contains("shutting down"), "{message}");
}

#[tokio::test]
async fn the_shutdown_of_the_layer_ends_every_subscription_and_refuses_new_ones() {
    let (subscriptions, shutdown) = (Subscriptions::new(), Shutdown::new());
    let service = server_by(McpChannelLayer::new().shutdown(&shutdown), &subscriptions);
    let mut client = Listener::open(service.clone(), &Call::listen()).await;
    let gone = Listener::open(service.clone(), &Call::listen()).await;
    drop(gone);
    assert!(!shutdown.has_begun());
    shutdown.begin();
    shutdown.begin();
    assert!(shutdown.has_begun() && subscriptions.is_empty());
    assert_eq!(client.heard(), ["subscriptions/acknowledged", "result"]);
    assert!(client.ended);
    let reply = Call::listen().id("late").send(service.clone()).await;
    assert_eq!(
        (reply.status.as_u16(), &reply.json()["id"]),
        (200, &json!("late"))
    );
    assert_eq!(reply.json()["error"]["code"], -32603);
    let message = reply.json()["error"]["message"].as_str().unwrap();
    assert!(message.contains("shutting down"), "{message}");
}

#[tokio::test]
async fn a_listener_that_is_not_accepted_when_the_shutdown_begins_is_refused() {
    let (subscriptions, shutdown) = (Subscriptions::new(), Shutdown::new());
    let (hub, begin) = (subscriptions.clone(), shutdown.clone());
    let layer = McpChannelLayer::new().shutdown(&shutdown);
    let service = served_by(layer, move |channel, message| {
        begin.begin();
        let accepted = hub.accept(channel, &message);
        async move { answer(accepted) }
    });
    let reply = Call::listen().send(service).await;
    assert_eq!(reply.json()["error"]["code"], -32603);
    let message = reply.json()["error"]["message"].as_str().unwrap();
    assert!(message.contains("shutting down"), "{message}");
    assert!(subscriptions.is_empty());
}

#[tokio::test]
async fn nothing_is_told_before_the_acknowledgement_on_a_stream_that_was_opened_by_hand() {
    let (subscriptions, shutdown) = (Subscriptions::new(), Shutdown::new());
    let hub = subscriptions.clone();
    let layer = McpChannelLayer::new().shutdown(&shutdown);
    let service = served_by(layer, move |channel: Channel, message| {
        channel.start_stream().unwrap();
        let hub = hub.clone();
        async move {
            tokio::task::yield_now().await;
            hub.tools_list_changed();
            answer(hub.accept(channel, &message))
        }
    });
    let mut early = Listener::open(service.clone(), &Call::listen()).await;
    subscriptions.tools_list_changed();
    assert_eq!(early.heard(), ["subscriptions/acknowledged"]);
    let mut late = Listener::open(service, &Call::listen()).await;
    shutdown.begin();
    assert_eq!(late.heard(), ["error"]);
}

// The limit

#[tokio::test]
async fn one_too_many_is_refused_with_a_status_that_clients_show() {
    let subscriptions = Subscriptions::builder().limit(2).build();
    let service = server(&subscriptions);
    let first = Listener::open(service.clone(), &Call::listen()).await;
    let _second = Listener::open(service.clone(), &Call::listen()).await;
    let reply = Call::listen().send(service.clone()).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers.get("retry-after"), None);
    assert_eq!(reply.json()["error"]["code"], -32603);
    let message = reply.json()["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit of 2"), "{message}");
    drop(first);
    Listener::open(service, &Call::listen()).await;
}

#[tokio::test]
async fn one_too_many_may_be_told_to_retry_elsewhere() {
    let busy = Subscriptions::builder()
        .limit(0)
        .busy(Duration::from_millis(2500))
        .build();
    let reply = Call::listen().send(server(&busy)).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.headers["retry-after"], "3");
    assert_eq!(reply.json()["error"]["code"], -32603);
}
