//! What a subscriber costs that does not read. Alone in its process, since it counts allocations.

mod support;

use std::alloc::System;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use mcp_channel::McpChannelLayer;
use mcp_channel::subscriptions::{ResourceMatch, Subscriptions};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::listener::Listener;
use support::request::{Call, served_by};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[tokio::test]
async fn a_client_that_stops_reading_costs_no_memory_and_misses_nothing() {
    let subscriptions = Subscriptions::builder()
        .resource_limit(100_000)
        .resource_match(ResourceMatch::parts())
        .build();
    let hub = subscriptions.clone();
    let service = served_by(McpChannelLayer::new(), move |channel, message| {
        let accepted = hub.accept(channel, &message);
        async move {
            let response: Response<Full<Bytes>> = match accepted {
                Ok(deferred) => deferred.into(),
                Err(error) => error.into(),
            };
            response
        }
    });
    let uris: Vec<String> = (0..100).map(|n| format!("file:///{n}")).collect();
    let call = Call::new("subscriptions/listen").param(
        "notifications",
        json!({"toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris}),
    );
    let listening = service.clone();
    let mut client = Listener::open(service, &call).await;
    client.heard();

    let publish = |n: usize| match n % 4 {
        0 => subscriptions.tools_list_changed(),
        1 => subscriptions.resources_list_changed(),
        2 => subscriptions.resource_updated(format!("file:///{}", n % 100)),
        _ => subscriptions.resource_updated(format!("file:///{}/{n}", n % 100)),
    };
    // Everything waits once after this.
    (0..1_000).for_each(|n| assert_eq!(publish(n), 1));
    let before = live();
    (0..100_000).for_each(|n| assert_eq!(publish(n), 1));
    let grown = live().saturating_sub(before);
    // Other threads of the test runner allocate a little.
    assert!(grown < 16 * 1024, "grew by {grown} bytes");

    let mut heard = client.heard();
    heard.sort();
    let mut expected: Vec<String> = (0..100)
        .filter(|n| n % 4 >= 2)
        .map(|n| format!("resources/updated file:///{n}"))
        .collect();
    expected.extend(["tools/list_changed".into(), "resources/list_changed".into()]);
    expected.sort();
    // Updates of several parts have become one of the whole.
    assert_eq!(heard, expected);
    publish(0);
    assert_eq!(client.heard(), ["tools/list_changed"]);

    // In the same test, since another one would allocate meanwhile.
    let before = live();
    let uris: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let call = Call::new("subscriptions/listen")
        .param("notifications", json!({"resourceSubscriptions": uris}));
    let greedy = Listener::open(listening.clone(), &call).await;
    assert_eq!(subscriptions.resource_updated("49999"), 1);
    assert!(live() > before + 1_000_000, "the measure is blind");
    drop((greedy, uris, call));
    assert_eq!(subscriptions.len(), 1);
    let kept = live().saturating_sub(before);
    assert!(
        kept < 128 * 1024,
        "{kept} bytes of a client that left are kept"
    );

    // What an idle one holds: its body, and at most 600 bytes.
    const MANY: usize = 1_000;
    let call =
        Call::new("subscriptions/listen").param("notifications", json!({"toolsListChanged": true}));
    let mut idle = Vec::with_capacity(MANY);
    let before = live();
    for _ in 0..MANY {
        let mut client = Listener::open(listening.clone(), &call).await;
        client.read();
        idle.push(client);
    }
    let each = live().saturating_sub(before) / MANY;
    let limit = idle[0].size() + 600;
    assert!((300..=limit).contains(&each), "{each} bytes, not {limit}");
}
