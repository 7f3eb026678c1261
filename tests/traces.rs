//! What would otherwise vanish is traced.

#![cfg(feature = "tracing")]

mod support;

use std::convert::Infallible;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use mcp_channel::{Channel, Deferred, McpChannelLayer, Message, Reply, RequestBody};
use serde_json::json;
use support::request::{Call, served};
use tower::{BoxError, ServiceBuilder};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Plain = Response<Full<Bytes>>;

/// Keeps each event as its level and its fields.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(Level, String)>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?};").unwrap();
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("mcp_channel")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = String::new();
        event.record(&mut Fields(&mut fields));
        self.0
            .lock()
            .unwrap()
            .push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What is traced while this runs.
fn traced(run: impl Future<Output = ()>) -> Vec<(Level, String)> {
    let events = Events::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(events.clone(), || runtime.block_on(run));
    std::mem::take(&mut events.0.lock().unwrap())
}

/// One event, of this level, whose message has this word.
fn assert_one(events: &[(Level, String)], level: Level, word: &str) {
    let [(got, fields)] = events else {
        panic!("{events:?}")
    };
    assert_eq!(*got, level, "{fields}");
    assert!(fields.contains(word), "{fields}");
    assert_eq!(fields.matches("message=").count(), 1, "{fields}");
}

#[test]
fn what_goes_well_is_not_traced() {
    let events = traced(async {
        let service = served(|channel: Channel, _| async move {
            channel.send_progress(1).await.unwrap();
            Reply::result(json!({"content": []}))
        });
        Call::tool("x").token(1).send(service).await;
    });
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn a_rejection_is() {
    let events = traced(async {
        let service = served(|_, _| async { Reply::result(json!({})) });
        Call::tool("x").header("mcp-name", "y").send(service).await;
    });
    assert_one(&events, Level::DEBUG, "`Mcp-Name`");
}

#[test]
fn a_panic_is_with_what_it_said() {
    let events = traced(async {
        let service = served(|_, message: Message| async move {
            assert!(message.is_notification(), "oh no");
            Reply::result(json!({}))
        });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::ERROR, "oh no");
}

#[test]
fn an_error_that_the_client_does_not_see_is() {
    let events = traced(async {
        let handler = |request: Request<RequestBody>| async move {
            let channel: &Channel = request.extensions().get().unwrap();
            channel.start_stream().unwrap();
            Err::<Plain, BoxError>("the database is away".into())
        };
        let service = ServiceBuilder::new()
            .layer(McpChannelLayer::new())
            .service_fn(handler);
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::ERROR, "the database is away");
}

#[test]
fn a_result_that_is_none_is() {
    let events = traced(async {
        let service = served(|_, _| async { Reply::result([1, 2]) });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::ERROR, "no JSON object");
}

#[test]
fn a_channel_that_was_lost_is() {
    let events = traced(async {
        let service = served(|channel: Channel, _| async {
            drop(channel);
            Deferred
        });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::ERROR, "without a reply");
}

#[test]
fn a_body_that_is_no_last_event_is() {
    let events = traced(async {
        let service = ServiceBuilder::new()
            .layer(McpChannelLayer::new())
            .service_fn(|request: Request<RequestBody>| async move {
                let channel: &Channel = request.extensions().get().unwrap();
                channel.start_stream().unwrap();
                Ok::<_, Infallible>(Plain::new(Full::from("hello")))
            });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::ERROR, "return `Reply`");
}

#[test]
fn a_second_reply_is() {
    let events = traced(async {
        let service = served(|channel: Channel, _| async move {
            channel.send_result(json!({"content": []})).unwrap();
            Reply::result(json!({"content": []}))
        });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::WARN, "the first one stands");
}

#[test]
fn a_task_without_deferred_is() {
    let events = traced(async {
        let service = ServiceBuilder::new()
            .layer(McpChannelLayer::new())
            .service_fn(|request: Request<RequestBody>| async move {
                let channel: Channel = request.extensions().get().cloned().unwrap();
                tokio::spawn(async move { channel.closed().await });
                Ok::<_, Infallible>(Plain::new(Full::from("hello")))
            });
        Call::tool("x").send(service).await;
    });
    assert_one(&events, Level::WARN, "`Deferred`");
}

#[test]
fn progress_that_does_not_increase_is() {
    let events = traced(async {
        let service = served(|channel: Channel, _| async move {
            channel.send_progress(2).await.unwrap();
            channel.send_progress(2).await.unwrap();
            Reply::result(json!({"content": []}))
        });
        Call::tool("x").token(1).send(service).await;
    });
    assert_one(&events, Level::DEBUG, "increase");
}
