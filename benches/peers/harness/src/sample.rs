//! Calls a service in this process, without sockets, and tells what a call costs.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::{BoxError, Service, ServiceExt};

use crate::wire::{self, Call};
use crate::{Context, RequestBody, allocations};

/// What to sample.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Whole exchanges, one after the other.
    Exchange(Call),
    /// From the call until the first frame is there.
    FirstFrame,
    /// One beat to this many open streams, until each has handed out its frame.
    FanOut(u64),
}

/// The mean cost of one exchange, first frame or beat.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub ns: f64,
    pub allocations: f64,
    pub bytes: f64,
    /// Heap that an open stream holds; only told by [`Job::FanOut`].
    pub live: f64,
}

pub(crate) fn sample<S, B>(make: impl FnOnce(Arc<Context>) -> S, bare: bool, job: Job, time: Duration) -> Result<Sample, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let runtime = crate::runtime()?;
    runtime.block_on(async {
        let context = Arc::new(Context::new(false));
        let service = make(context.clone());
        match job {
            Job::Exchange(call) => exchange(service, Template::new(call, bare), bare, time).await,
            // The second frame is a millisecond away, so the first comes alone. A handler that never ended would stay
            // behind, with the memory that the next call could have had, in servers that do not notice the drop.
            Job::FirstFrame => {
                let call = Call::Progress { steps: 2, message: 0, pause_ms: 1 };
                first_frame(service, Template::new(call, bare), time).await
            }
            Job::FanOut(streams) => fan_out(service, &context, Template::new(Call::Fan, bare), streams, time).await,
        }
    })
}

/// Makes exactly so many exchanges, at most [`POOL`], for a tool that counts what they cost: the difference between two runs is
/// the cost of the calls that one has more, since all requests are made in both. Returns the allocations of one exchange.
pub(crate) fn count<S, B>(make: impl FnOnce(Arc<Context>) -> S, bare: bool, call: Call, calls: usize) -> Result<f64, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if calls == 0 || calls > POOL {
        return Err(format!("from 1 to {POOL} exchanges can be counted, not {calls}").into());
    }
    crate::runtime()?.block_on(async {
        let service = make(Arc::new(Context::new(false)));
        let template = Template::new(call, bare);
        let length = verified(&service, &template, &json!(wire::ID)).await?;
        let mut requests: Vec<_> = (0..POOL).map(|_| template.request()).collect();
        let before = allocations();
        for request in requests.drain(..calls) {
            if spend(&service, request).await? != length {
                return Err(format!("{call:?}: a reply's length differs from the verified one's, {length}").into());
            }
        }
        Ok((allocations().count - before.count) as f64 / calls as f64)
    })
}

/// The most exchanges that [`count`] makes.
const POOL: usize = 1_000;

/// A request that is made again and again.
struct Template {
    call: Call,
    path: http::Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Template {
    fn new(call: Call, bare: bool) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in call.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(http::header::HOST, HeaderValue::from_static("127.0.0.1"));
        let path = if bare { call.bare_path() } else { "/".to_owned() };
        let body = Bytes::from(call.body(&json!(wire::ID)));
        headers.insert(http::header::CONTENT_LENGTH, body.len().into());
        Self { call, path: path.parse().expect("a path of our own"), headers, body }
    }

    fn request(&self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::Full(Full::new(self.body.clone())));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

async fn call<S, B>(service: &S, request: Request<RequestBody>) -> Result<Response<B>, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
{
    service.clone().oneshot(request).await.map_err(Into::into)
}

/// One exchange, its body thrown away; returns the body's length.
async fn spend<S, B>(service: &S, request: Request<RequestBody>) -> Result<usize, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let response = call(service, request).await?;
    let mut body = pin!(response.into_body());
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Into::into)?.into_data() {
            length += data.len();
        }
    }
    Ok(length)
}

async fn exchange<S, B>(service: S, template: Template, bare: bool, time: Duration) -> Result<Sample, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let length = verified(&service, &template, &json!(wire::ID)).await?;
    if !bare {
        // Whoever parses the request echoes any id.
        let mut other = Template::new(template.call, bare);
        let id = json!("another-id");
        other.body = Bytes::from(template.call.body(&id));
        other.headers.insert(http::header::CONTENT_LENGTH, other.body.len().into());
        verified(&service, &other, &id).await?;
    }
    let warm = Instant::now();
    let mut calls = 0_u32;
    while calls < 3 || warm.elapsed() < time / 5 {
        spend(&service, template.request()).await?;
        calls += 1;
    }
    let counted = calls.min(100);
    let requests: Vec<_> = (0..counted).map(|_| template.request()).collect();
    let before = allocations();
    for request in requests {
        spend(&service, request).await?;
    }
    let after = allocations();

    // The clock is read once a batch of about a millisecond, and the median batch is told: a batch that
    // another process interrupted does not count. The requests are made before it begins.
    let batch = (calls as f64 / (time / 5).as_secs_f64() / 1000.0).ceil().max(1.0) as u32;
    let mut batches = Vec::new();
    let begun = Instant::now();
    while batches.len() < 3 || begun.elapsed() < time {
        let requests: Vec<_> = (0..batch).map(|_| template.request()).collect();
        let start = Instant::now();
        for request in requests {
            if spend(&service, request).await? != length {
                return Err(format!("{:?}: a reply's length differs from the verified one's, {length}", template.call).into());
            }
        }
        batches.push(start.elapsed().as_nanos() as f64 / f64::from(batch));
    }
    Ok(Sample {
        ns: median(&mut batches),
        allocations: (after.count - before.count) as f64 / f64::from(counted),
        bytes: (after.bytes - before.bytes) as f64 / f64::from(counted),
        live: 0.0,
    })
}

async fn verified<S, B>(service: &S, template: &Template, id: &Value) -> Result<usize, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let response = call(service, template.request()).await?;
    let status = response.status().as_u16();
    let content_type = response.headers().get(http::header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or(""));
    let content_type = content_type.to_owned();
    let body = response.into_body().collect().await.map_err(Into::into)?.to_bytes();
    template.call.verify(id, status, &content_type, &body)?;
    Ok(body.len())
}

async fn first_frame<S, B>(service: S, template: Template, time: Duration) -> Result<Sample, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut times = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    let begun = Instant::now();
    while times.len() < 100 || begun.elapsed() < time {
        let request = template.request();
        let before = allocations();
        let start = Instant::now();
        let response = call(&service, request).await?;
        let mut body = pin!(response.into_body());
        let frame = next_data(&mut body).await?;
        let took = start.elapsed();
        let after = allocations();
        if wire::events(&frame).len() != 1 {
            return Err(format!("the first frame is not one event: {:?}", String::from_utf8_lossy(&frame)).into());
        }
        times.push(took.as_nanos() as f64);
        count += after.count - before.count;
        bytes += after.bytes - before.bytes;
    }
    let samples = times.len() as f64;
    Ok(Sample { ns: median(&mut times), allocations: count as f64 / samples, bytes: bytes as f64 / samples, live: 0.0 })
}

async fn next_data<B>(body: &mut std::pin::Pin<&mut B>) -> Result<Bytes, BoxError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    loop {
        let frame = body.frame().await.ok_or("the stream ended")?.map_err(Into::into)?;
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(data);
        }
    }
}

async fn fan_out<S, B>(service: S, context: &Context, template: Template, streams: u64, time: Duration) -> Result<Sample, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let empty = allocations().live;
    // `left` counts down to the last stream that has handed out its frame.
    let left = Arc::new(AtomicU64::new(0));
    let all = Arc::new(Notify::new());
    for _ in 0..streams {
        let response = call(&service, template.request()).await?;
        let mut body = Box::pin(response.into_body());
        let first = next_data(&mut body.as_mut()).await?;
        if wire::events(&first).len() != 1 {
            return Err("the first frame is not one event".into());
        }
        let (left, all) = (left.clone(), all.clone());
        tokio::spawn(async move {
            let mut body = body;
            loop {
                let frame = next_data(&mut body.as_mut()).await.expect("the stream goes on");
                assert!(frame.ends_with(b"\n\n"), "a whole event");
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    all.notify_one();
                }
            }
        });
    }
    tokio::task::yield_now().await;
    let full = allocations().live;

    let mut times = Vec::new();
    let begun = Instant::now();
    let mut before = allocations();
    while times.len() < 5 || begun.elapsed() < time {
        if times.len() == 1 {
            before = allocations(); // The first beat grows queues.
        }
        left.store(streams, Ordering::Relaxed);
        let start = Instant::now();
        context.beat();
        all.notified().await;
        times.push(start.elapsed().as_nanos() as f64);
    }
    let after = allocations();
    let beats = times.len() as f64 - 1.0;
    Ok(Sample {
        ns: median(&mut times),
        allocations: (after.count - before.count) as f64 / beats,
        bytes: (after.bytes - before.bytes) as f64 / beats,
        live: (full - empty) as f64 / streams as f64,
    })
}

/// The middle value; for an even number the mean of the two.
pub fn median(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "no values, no median");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
