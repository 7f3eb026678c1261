//! What the layer costs in process, beside a service that parses nothing and checks nothing. Before each time stands how often
//! one such exchange allocates.
//!
//! The comparison with other libraries and over sockets is in `benches/peers`; see `benches/README.md`.

use std::alloc::System;
use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use mcp_channel::{Channel, McpChannelLayer, Message, Reply, RequestBody, RpcError};
use serde::Deserialize;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::watch;
use tower::{Layer, Service, service_fn};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many frames a stream has.
const STEPS: [u64; 4] = [1, 100, 1_000, 10_000];

/// A call of the tool `name`, as a client sends it.
fn request(name: &'static str) -> Request<Full<Bytes>> {
    request_for(name, 1)
}

/// A call that asks for so many frames.
fn request_for(name: &'static str, steps: u64) -> Request<Full<Bytes>> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1.0.0" },
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": "t",
            },
            "name": name,
            "arguments": { "text": "hello", "steps": steps },
        },
    });
    Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request of our own")
}

#[derive(Deserialize)]
struct Params {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
    steps: u64,
}

type Answer = Result<Response<Empty<Bytes>>, Infallible>;

/// The channel and the message that the layer put into a request.
fn take(request: Request<RequestBody>) -> (Channel, Message) {
    let mut extensions = request.into_parts().0.extensions;
    let channel = extensions.remove().expect("the layer's channel");
    (channel, extensions.remove().expect("the layer's message"))
}

async fn echo(request: Request<RequestBody>) -> Answer {
    let (_, message) = take(request);
    Ok(match message.params::<Params>() {
        Ok(params) => {
            let content = [json!({ "type": "text", "text": params.arguments.text })];
            Reply::result(json!({ "content": content })).into()
        }
        Err(error) => error.into(),
    })
}

/// Leaves the channel alone: what remains is the checks.
async fn untouched(_: Request<RequestBody>) -> Answer {
    Ok(Response::new(Empty::new()))
}

async fn progress(request: Request<RequestBody>) -> Answer {
    let (channel, message) = take(request);
    let steps = message
        .params::<Params>()
        .map_or(0, |params| params.arguments.steps);
    for step in 1..=steps {
        if let Err(error) = channel.send_progress((step, steps)).await {
            return Ok(RpcError::internal(error.to_string()).into());
        }
    }
    Ok(Reply::result(json!({ "content": [] })).into())
}

/// Sends a frame whenever the watched value changes.
async fn fan(request: Request<RequestBody>, mut beats: watch::Receiver<u64>) -> Answer {
    let (channel, _) = take(request);
    for step in 1_u64.. {
        if let Err(error) = channel.send_progress((step, step)).await {
            return Ok(RpcError::internal(error.to_string()).into());
        }
        if beats.changed().await.is_err() {
            break;
        }
    }
    Ok(Reply::result(json!({ "content": [] })).into())
}

/// Reads the body and answers with a constant.
async fn bare(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    black_box(request.into_body().collect().await?.to_bytes());
    let reply = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"hello"}]}}"#);
    let mut response = Response::new(Full::new(reply));
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

/// One frame that was encoded beforehand, at each poll.
struct Encoded {
    left: u64,
}

impl Body for Encoded {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const FRAME: &[u8] =
            b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\
            \"params\":{\"progressToken\":\"t\",\"progress\":100,\"total\":1000}}\n\n";
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(FRAME)))))
    }
}

async fn bare_stream(
    request: Request<Full<Bytes>>,
    steps: u64,
) -> Result<Response<Encoded>, Infallible> {
    black_box(request.into_body().collect().await?.to_bytes());
    Ok(Response::new(Encoded { left: steps + 1 }))
}

/// Polls until it is ready. Nothing here waits for anything but itself.
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// A whole exchange; returns the status and the length of the body.
fn exchange<S, B>(service: &mut S, request: Request<Full<Bytes>>) -> (StatusCode, usize)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    finish(async {
        let Ok(response) = service.call(request).await else {
            panic!("the service failed");
        };
        let status = response.status();
        let mut body = pin!(response.into_body());
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                panic!("the body failed")
            };
            length += frame.data_ref().map_or(0, Bytes::len);
        }
        (status, length)
    })
}

/// Measures whole exchanges that end with this status.
fn bench<S, B>(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    mut service: S,
    request: &Request<Full<Bytes>>,
    status: StatusCode,
) where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    assert_eq!(exchange(&mut service, request.clone()).0, status, "{name}");
    // The second one, when what is made once is there.
    let again = request.clone();
    let region = Region::new(ALLOCATOR);
    exchange(&mut service, again);
    let stats = region.change();
    let allocations = stats.allocations + stats.reallocations;
    println!(
        "{name}: {allocations} allocations, {} bytes",
        stats.bytes_allocated
    );
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            || request.clone(),
            |request| exchange(&mut service, request),
            BatchSize::SmallInput,
        );
    });
}

fn json(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("json");
    let request = request("echo");
    bench(
        &mut group,
        "bare",
        service_fn(bare),
        &request,
        StatusCode::OK,
    );
    bench(
        &mut group,
        "layer",
        McpChannelLayer::new().layer(service_fn(echo)),
        &request,
        StatusCode::OK,
    );
    group.finish();
}

fn validation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("validation");
    let service = || McpChannelLayer::new().layer(service_fn(untouched));
    let good = request("echo");
    bench(&mut group, "accepted", service(), &good, StatusCode::OK);
    let mut bad = good.clone();
    bad.headers_mut()
        .insert("mcp-name", http::HeaderValue::from_static("other"));
    bench(
        &mut group,
        "name differs",
        service(),
        &bad,
        StatusCode::BAD_REQUEST,
    );
    let mut bad = good.clone();
    bad.headers_mut().insert(
        "origin",
        http::HeaderValue::from_static("https://example.com"),
    );
    bench(
        &mut group,
        "origin is not allowed",
        service(),
        &bad,
        StatusCode::FORBIDDEN,
    );
    let bad = good.map(|_| Full::new(Bytes::from_static(b"{")));
    bench(
        &mut group,
        "not JSON",
        service(),
        &bad,
        StatusCode::BAD_REQUEST,
    );
    group.finish();
}

fn stream(criterion: &mut Criterion) {
    for steps in STEPS {
        let mut group = criterion.benchmark_group(format!("stream of {steps} frames"));
        group.throughput(Throughput::Elements(steps));
        let request = request_for("progress", steps);
        let bare = service_fn(move |request| bare_stream(request, steps));
        let layer = McpChannelLayer::new().layer(service_fn(progress));
        bench(&mut group, "bare", bare, &request, StatusCode::OK);
        bench(&mut group, "layer", layer, &request, StatusCode::OK);
        group.finish();
    }
}

fn first_frame(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first frame");
    let mut service = McpChannelLayer::new().layer(service_fn(progress));
    let request = request_for("progress", 1_000);
    group.bench_function("layer", |bencher| {
        let mut first = |request| {
            finish(async {
                let response = service.call(request).await.expect("no failure");
                let mut body = Box::pin(response.into_body());
                let frame = body.frame().await.expect("a frame").expect("no failure");
                // Dropping the rest is not part of it.
                (frame, body)
            })
        };
        bencher.iter_batched(|| request.clone(), &mut first, BatchSize::SmallInput);
    });
    group.finish();
}

fn fan_out(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one frame to each stream");
    for streams in [1, 100, 10_000] {
        let beats = watch::Sender::new(0_u64);
        let mut service = {
            let beats = beats.clone();
            McpChannelLayer::new().layer(service_fn(move |request| fan(request, beats.subscribe())))
        };
        let mut bodies: Vec<_> = (0..streams)
            .map(|_| {
                finish(async {
                    Box::pin(
                        service
                            .call(request("fan"))
                            .await
                            .expect("no failure")
                            .into_body(),
                    )
                })
            })
            .collect();
        let mut next = || {
            for body in &mut bodies {
                black_box(finish(body.frame()).expect("a frame").expect("no failure"));
            }
        };
        next();
        group.throughput(Throughput::Elements(streams));
        group.bench_function(BenchmarkId::from_parameter(streams), |bencher| {
            bencher.iter(|| {
                beats.send_modify(|beat| *beat += 1);
                next();
            });
        });
    }
    group.finish();
}

/// The layer's timers want a runtime around them, though none of them fires.
fn in_runtime(measure: fn(&mut Criterion)) -> impl Fn(&mut Criterion) {
    move |criterion| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let _context = runtime.enter();
        measure(criterion);
    }
}

fn all(criterion: &mut Criterion) {
    for measure in [json, validation, stream, first_frame, fan_out] {
        in_runtime(measure)(criterion);
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
