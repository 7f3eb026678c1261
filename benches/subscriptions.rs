//! What open subscriptions cost, in this process and on one thread: telling all of them, holding
//! them, taking and forgetting one.
//!
//! ```text
//! cargo bench --bench subscriptions
//! ```
//!
//! The contestants of the fan-out take turns, and the median of their rounds is shown. Without
//! `--bench` each thing is done once, to see that it works. `fan-out`, `idle`, `accept` or `publish`
//! behind `--` does that part alone.

use std::alloc::System;
use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{Empty, Full};
use mcp_channel::subscriptions::Subscriptions;
use mcp_channel::{Channel, McpChannelLayer, Message, Outlet, RequestBody};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::sync::broadcast;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn allocations() -> usize {
    ALLOCATOR.stats().allocations + ALLOCATOR.stats().reallocations
}

/// A body, and the task that polls it when it was woken.
struct Task<B> {
    body: Pin<Box<B>>,
    waker: Waker,
}

/// The tasks that are to be polled.
type Woken = Arc<Mutex<Vec<usize>>>;

struct Notice {
    number: usize,
    woken: Woken,
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
    }
}

/// Bodies on a scheduler that does as little as one can.
struct Streams<B> {
    tasks: Vec<Task<B>>,
    woken: Woken,
    batch: Vec<usize>,
}

impl<B> Streams<B>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    /// Polls each body until it waits.
    fn new(bodies: Vec<B>) -> Self {
        let woken = Woken::default();
        woken.lock().unwrap().extend(0..bodies.len());
        let task = |(number, body)| Task {
            body: Box::pin(body),
            waker: Waker::from(Arc::new(Notice {
                number,
                woken: Arc::clone(&woken),
            })),
        };
        // Not in the place of the bodies, which is larger and would count as theirs.
        let mut tasks = Vec::with_capacity(bodies.len());
        tasks.extend(bodies.into_iter().enumerate().map(task));
        let mut streams = Self {
            tasks,
            woken,
            batch: Vec::new(),
        };
        streams.run();
        streams
    }

    /// Polls what was woken, until nothing is. How many bytes came.
    fn run(&mut self) -> usize {
        let mut bytes = 0;
        loop {
            std::mem::swap(&mut self.batch, &mut *self.woken.lock().unwrap());
            if self.batch.is_empty() {
                return bytes;
            }
            for number in self.batch.drain(..) {
                let task = &mut self.tasks[number];
                let mut cx = Context::from_waker(&task.waker);
                while let Poll::Ready(frame) = task.body.as_mut().poll_frame(&mut cx) {
                    let frame = frame.expect("an open stream").expect("no error");
                    bytes += black_box(frame.into_data().expect("data")).len();
                }
            }
        }
    }
}

const LISTEN: &str = r#"{"jsonrpc":"2.0","id":ID,"method":"subscriptions/listen","params":{"notifications":FILTER,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn message(id: usize, filter: &str) -> String {
    LISTEN
        .replace("ID", &id.to_string())
        .replace("FILTER", filter)
}

fn request(id: usize) -> Request<Full<Bytes>> {
    Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(Full::from(message(id, r#"{"toolsListChanged":true}"#)))
        .expect("a request of our own")
}

/// Opens streams through the layer.
async fn through_the_layer(
    subscriptions: &Subscriptions,
    many: usize,
) -> Vec<impl Body<Data = Bytes, Error = mcp_channel::BoxError> + use<>> {
    let hub = subscriptions.clone();
    let service =
        McpChannelLayer::new().layer(service_fn(move |mut request: Request<RequestBody>| {
            let channel: Channel = request.extensions_mut().remove().expect("a channel");
            let message: Message = request.extensions_mut().remove().expect("a message");
            let accepted = hub.accept(channel, &message);
            std::future::ready(Ok::<Response<Empty<Bytes>>, Infallible>(match accepted {
                Ok(deferred) => deferred.into(),
                Err(error) => error.into(),
            }))
        }));
    let mut bodies = Vec::with_capacity(many);
    for id in 0..many {
        let response = service.clone().oneshot(request(id)).await;
        bodies.push(response.expect("infallible").into_body());
    }
    bodies
}

/// What others would do: a broadcast, and a stream of axum's that writes each event.
fn over_a_broadcast(sender: &broadcast::Sender<()>, many: usize) -> Vec<axum::body::Body> {
    let body = |id: usize| {
        let events = stream::unfold(sender.subscribe(), move |mut receiver| async move {
            receiver.recv().await.ok()?;
            let data = format!(
                r#"{{"jsonrpc":"2.0","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}},"method":"notifications/tools/list_changed"}}"#
            );
            let event = Event::default().event("message").data(data);
            Some((Ok::<_, Infallible>(event), receiver))
        });
        let sse = Sse::new(events).keep_alive(KeepAlive::default());
        sse.into_response().into_body()
    };
    (0..many).map(body).collect()
}

/// The least that can be done: bytes that are there already, put into a slot of each stream.
#[derive(Default)]
struct Slot {
    bytes: Option<Bytes>,
    waker: Option<Waker>,
}

struct SlotBody(Arc<Mutex<Slot>>);

impl Body for SlotBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut slot = self.0.lock().unwrap();
        if let Some(bytes) = slot.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn put(slots: &[Arc<Mutex<Slot>>], bytes: &Bytes) {
    for slot in slots {
        let mut slot = slot.lock().unwrap();
        slot.bytes = Some(bytes.clone());
        let waker = slot.waker.take();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The rounds of one contestant.
#[derive(Default)]
struct Rounds {
    nanoseconds: Vec<f64>,
    allocations: usize,
}

impl Rounds {
    fn add(&mut self, streams: usize, round: impl FnOnce()) {
        let (before, begun) = (allocations(), Instant::now());
        round();
        let took = begun.elapsed();
        self.allocations = allocations() - before;
        self.nanoseconds
            .push(took.as_nanos() as f64 / streams as f64);
    }

    fn show(mut self, name: &str, streams: usize) {
        self.nanoseconds.sort_by(f64::total_cmp);
        let [low, median, high] =
            [1, 5, 9].map(|n| self.nanoseconds[self.nanoseconds.len() * n / 10]);
        println!(
            "{name:<34} {median:>8.0} ns a stream ({low:.0}–{high:.0}), {:.2} allocations",
            self.allocations as f64 / streams as f64
        );
    }
}

async fn fan_out(many: usize, rounds: usize) {
    println!("\none publish to {many} open streams, until every body has yielded it");
    let subscriptions = Subscriptions::new();
    let mut ours = Streams::new(through_the_layer(&subscriptions, many).await);
    let (sender, _) = broadcast::channel(16);
    let mut broadcast = Streams::new(over_a_broadcast(&sender, many));
    let slots: Vec<_> = (0..many).map(|_| Arc::<Mutex<Slot>>::default()).collect();
    let mut floor = Streams::new(slots.iter().cloned().map(SlotBody).collect());
    let event = Bytes::from("x".repeat(150));

    let [mut of_ours, mut of_broadcast, mut of_floor] = [(); 3].map(|()| Rounds::default());
    for _ in 0..rounds {
        of_ours.add(many, || {
            assert_eq!(subscriptions.tools_list_changed(), many);
            assert!(ours.run() > many * 100);
        });
        of_broadcast.add(many, || {
            sender.send(()).expect("receivers");
            assert!(broadcast.run() > many * 100);
        });
        of_floor.add(many, || {
            put(&slots, &event);
            assert_eq!(floor.run(), many * 150);
        });
    }
    of_floor.show("bytes in a slot", many);
    of_ours.show("Subscriptions", many);
    of_broadcast.show("tokio broadcast + axum Sse", many);
}

async fn idle(many: usize) {
    println!("\nlive heap of an idle subscription, beside its body");
    // What is made once, and buffers that a thread keeps.
    drop(through_the_layer(&Subscriptions::new(), 1).await);
    let subscriptions = Subscriptions::new();
    let before = live();
    let bodies = through_the_layer(&subscriptions, many).await;
    let body = size_of_val(&bodies[..1]);
    let opened = live() - before - many * body;
    let wakers = {
        let before = live();
        let notices: Vec<_> = (0..many)
            .map(|number| {
                Arc::new(Notice {
                    number,
                    woken: Woken::default(),
                })
            })
            .collect();
        let woken = notices
            .iter()
            .map(|n| size_of_val(&*n.woken))
            .sum::<usize>()
            + many * 16;
        let bytes = live() - before - woken;
        drop(notices);
        bytes
    };
    let mut streams = Streams::new(bodies);
    // Tasks and their list are not ours; the batch is as long as the list of those that were woken.
    let scheduler =
        wakers + many * (size_of::<Task<()>>() + body) + 2 * 8 * streams.batch.capacity();
    let of = |bytes: usize| bytes.saturating_sub(before + scheduler) / many;
    println!(
        "accepted, not read                 {:>8} bytes",
        opened / many
    );
    println!(
        "acknowledged                       {:>8} bytes, and {body} of the body",
        of(live())
    );
    subscriptions.tools_list_changed();
    streams.run();
    println!("told once                          {:>8} bytes", of(live()));
}

fn accept(subscriptions: &Subscriptions, message: &Message) -> Outlet {
    let (channel, outlet) = Channel::from_request(message, http::Extensions::new());
    let _ = subscriptions.accept(channel, message).expect("accepted");
    outlet
}

fn accept_and_forget(open: usize, times: usize) {
    let subscriptions = Subscriptions::new();
    let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}"#;
    let message = Message::parse(message(1, filter)).expect("a message");
    let take = || accept(&subscriptions, &message);
    let mut outlets: Vec<_> = (0..open).map(|_| take()).collect();
    let [mut accepted, mut forgotten] = [(); 2].map(|()| Rounds::default());
    for _ in 0..11 {
        let mut more = Vec::with_capacity(times);
        accepted.add(times, || more.extend((0..times).map(|_| take())));
        // Those that leave are spread over all, so that others take their places.
        outlets.append(&mut more);
        let step = outlets.len() / times;
        let leave = (0..times).map(|n| outlets.swap_remove(n * (step - 1)));
        let leaving: Vec<_> = leave.collect();
        forgotten.add(times, || drop(leaving));
    }
    accepted.show(&format!("beside {open}: accepted in"), times);
    forgotten.show(&format!("beside {open}: forgotten in"), times);
    assert_eq!(subscriptions.len(), open);
}

fn publish_beside(others: usize, times: usize) {
    let subscriptions = Subscriptions::new();
    let listen = |uri: String| {
        let filter = format!(r#"{{"resourceSubscriptions":["{uri}"]}}"#);
        let message = Message::parse(message(1, &filter)).expect("a message");
        accept(&subscriptions, &message)
    };
    let _others: Vec<_> = (0..others)
        .map(|n| listen(format!("file:///{n}")))
        .collect();
    let mut outlet = listen("file:///mine".into());
    let mut rounds = Rounds::default();
    for _ in 0..times {
        rounds.add(1, || {
            assert_eq!(subscriptions.resource_updated("file:///mine"), 1);
            while black_box(outlet.try_next()).is_some() {}
        });
    }
    rounds.show(&format!("beside {others} of other URIs"), 1);
}

async fn all(measure: bool, only: Option<&str>) {
    let of = |full: usize, smoke: usize| if measure { full } else { smoke };
    let wanted = |part: &str| only.is_none_or(|only| part.contains(only));
    if wanted("fan-out") {
        fan_out(of(10_000, 100), of(201, 1)).await;
    }
    if wanted("idle") {
        idle(of(10_000, 100)).await;
    }
    if wanted("accept") {
        println!("\ntaking and forgetting one subscriber");
        for open in [100, 1_000, 10_000, of(100_000, 10_000)] {
            accept_and_forget(open, of(100, 10));
        }
    }
    if wanted("publish") {
        println!("\npublishing to the one subscriber of a URI");
        for others in [0, of(10_000, 100)] {
            publish_beside(others, of(1_001, 1));
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let measure = arguments.iter().any(|argument| argument == "--bench");
    let only = arguments
        .into_iter()
        .find(|argument| !argument.starts_with('-'));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    // One long poll is what is measured, so nothing has to give way in it.
    let all: Pin<Box<dyn Future<Output = ()>>> =
        Box::pin(async move { all(measure, only.as_deref()).await });
    runtime.block_on(tokio::task::unconstrained(all));
}
