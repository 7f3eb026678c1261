//! Clients that hang up at any moment, over real sockets, and nothing of them is left: no handler,
//! no channel, no subscription, no task, no memory. Alone in its process, since it counts allocations.
//!
//! Lasts a few seconds; `SOAK_SECONDS` makes it last longer.

mod support;

use std::alloc::System;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use mcp_channel::subscriptions::Subscriptions;
use mcp_channel::{Channel, Deferred, LogLevel, McpChannelLayer, Message, Reply, RequestBody};
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::request::Call;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceBuilder, service_fn};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Counts itself while it, or a clone of it, lives.
struct Counted(&'static AtomicIsize);

impl Counted {
    fn new(count: &'static AtomicIsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What lives within the handlers' futures and tasks.
static HANDLERS: AtomicIsize = AtomicIsize::new(0);
/// What lives within the requests' channels.
static CHANNELS: AtomicIsize = AtomicIsize::new(0);
static SERVED: AtomicUsize = AtomicUsize::new(0);

const KINDS: [&str; 8] = [
    "reply", "stream", "flood", "deferred", "hang", "panic", "last", "moved",
];

async fn handle(
    subscriptions: Subscriptions,
    mut request: Request<RequestBody>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let handler = Counted::new(&HANDLERS);
    SERVED.fetch_add(1, Ordering::Relaxed);
    let message: Message = request.extensions_mut().remove().expect("a message");
    let channel: Channel = request.extensions_mut().remove().expect("a channel");
    let name = message.name().unwrap_or_default().into_owned();
    Ok(match &*name {
        "" => match subscriptions.accept(channel, &message) {
            Ok(deferred) => deferred.into(),
            Err(error) => error.into(),
        },
        "stream" => {
            for n in 0..20 {
                let _ = channel.send_progress((n, 20, "on the way")).await;
                tokio::task::yield_now().await;
            }
            Reply::result(json!({"content": []})).into()
        }
        "flood" => loop {
            let _ = channel.send_log(LogLevel::Info, "x".repeat(500)).await;
        },
        "deferred" => {
            tokio::spawn(async move {
                let _handler = handler;
                while channel.send_log(LogLevel::Info, "y").await.is_ok() {
                    tokio::select! {
                        _ = channel.closed() => return,
                        () = tokio::time::sleep(Duration::from_millis(1)) => {}
                    }
                }
            });
            Deferred.into()
        }
        "hang" => {
            let _ = channel.start_stream();
            std::future::pending().await
        }
        "panic" => {
            let _ = channel.send_progress(1).await;
            panic!("on purpose")
        }
        "last" => {
            let _ = channel.send_progress(1).await;
            let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
            Response::new(Full::from(reply.to_string()))
        }
        // Kept past the response, for a while.
        "moved" => {
            tokio::spawn(async move {
                let _handler = handler;
                channel.closed().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
                assert!(channel.try_send_progress(9).unwrap_err().is_closed());
            });
            Reply::result(json!({})).into()
        }
        _ => Reply::result(json!({"content": []})).into(),
    })
}

struct Random(TestRng);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        use proptest::prelude::Rng;
        self.0.next_u64() as usize % n
    }
}

/// One connection: requests, cut off or not, of whose answers some is read.
async fn visit(address: std::net::SocketAddr, mut random: Random) {
    let Ok(mut socket) = TcpStream::connect(address).await else {
        return;
    };
    let _ = socket.set_zero_linger();
    for _ in 0..=random.below(3) {
        let call = match random.below(KINDS.len() + 1) {
            0 => Call::listen(),
            n => Call::tool(KINDS[n - 1]),
        };
        let call = call.token(1).meta("logLevel", "debug");
        let body = call.message.to_string();
        let mut text = format!(
            "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in &call.headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        text += "\r\n";
        text += &body;
        let whole = random.below(4) > 0;
        let length = if whole {
            text.len()
        } else {
            random.below(text.len())
        };
        if socket.write_all(&text.as_bytes()[..length]).await.is_err() || !whole {
            return;
        }
        let mut left = [0, 1, 100, 3_000, 200_000][random.below(5)];
        let mut buffer = [0; 4096];
        // In all, or keep-alives would make it very long.
        let until = tokio::time::Instant::now() + Duration::from_millis(20);
        while left > 0 {
            let most = left.min(buffer.len());
            let read = socket.read(&mut buffer[..most]);
            match tokio::time::timeout_at(until, read).await {
                Ok(Ok(n)) if n > 0 => left -= n,
                _ => break,
            }
        }
    }
}

#[test]
fn clients_that_hang_up_at_any_moment_leave_nothing_behind() {
    let seconds = std::env::var("SOAK_SECONDS").map_or(3, |s| s.parse().expect("a number"));
    std::panic::set_hook(Box::new(|info| {
        // Those on purpose are many.
        if !info.to_string().contains("on purpose") {
            eprintln!("{info}");
        }
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let subscriptions = Subscriptions::new();
        let layer = McpChannelLayer::new()
            .keep_alive(Duration::from_millis(3))
            .stream_after(Duration::from_millis(10))
            .copy_value::<Counted>();
        let hub = subscriptions.clone();
        let handler = service_fn(move |request| handle(hub.clone(), request));
        let service = ServiceBuilder::new()
            .map_request(|mut request: Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Counted::new(&CHANNELS));
                request
            })
            .service(layer.layer(handler));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = TowerToHyperService::new(service.clone());
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        let publisher = tokio::spawn({
            let subscriptions = subscriptions.clone();
            async move {
                loop {
                    subscriptions.tools_list_changed();
                    tokio::time::sleep(Duration::from_micros(500)).await;
                }
            }
        });

        let mut seeds = Random(TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let mut after_warm_up = 0;
        let rounds = 4;
        for round in 0..rounds {
            let until =
                tokio::time::Instant::now() + Duration::from_millis(seconds * 1000 / rounds);
            let mut visitors = tokio::task::JoinSet::new();
            while tokio::time::Instant::now() < until {
                while visitors.len() < 64 {
                    let seed: Vec<u8> = (0..32).map(|_| seeds.below(256) as u8).collect();
                    let random = Random(TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
                    visitors.spawn(visit(address, random));
                }
                visitors.join_next().await.unwrap().unwrap();
            }
            while visitors.join_next().await.is_some() {}

            // The server and the publisher stay.
            let metrics = tokio::runtime::Handle::current().metrics();
            let left = || {
                let handlers = HANDLERS.load(Ordering::Relaxed);
                let channels = CHANNELS.load(Ordering::Relaxed);
                (
                    handlers,
                    channels,
                    subscriptions.len(),
                    metrics.num_alive_tasks(),
                )
            };
            for _ in 0..500 {
                if left() == (0, 0, 0, 2) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(
                left(),
                (0, 0, 0, 2),
                "handlers, channels, subscriptions, tasks"
            );
            // What grows is held against the first round, after which nothing is new.
            let now = live();
            if round == 0 {
                after_warm_up = now;
            }
            let grown = now.saturating_sub(after_warm_up);
            assert!(grown < 256 * 1024, "grew by {grown} bytes");
            println!("{} requests, {now} bytes", SERVED.load(Ordering::Relaxed));
        }
        assert!(SERVED.load(Ordering::Relaxed) > 100);
        server.abort();
        publisher.abort();
    });
}
