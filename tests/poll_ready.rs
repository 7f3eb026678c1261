//! Readiness: the inner service's own, and spent on the very service that had it.

mod support;

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Full, StreamBody};
use mcp_channel::{McpChannelLayer, McpChannelService, RequestBody};
use serde_json::json;
use support::by_hand::{assert_opens, poll_data};
use support::request::{Call, Reply};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::limit::{ConcurrencyLimit, ConcurrencyLimitLayer};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_test::mock::{self, Mock};

type Plain = Response<Full<Bytes>>;
type Inner = Mock<Request<RequestBody>, Plain>;

fn result() -> Plain {
    mcp_channel::Reply::result(json!({"content": []})).into()
}

/// Waits until a service takes requests with whole bodies.
async fn make_ready<S: Service<Request<Full<Bytes>>>>(service: &mut S)
where
    S::Error: std::fmt::Debug,
{
    service.ready().await.expect("a service that works");
}

fn spawned() -> (
    mock::Spawn<McpChannelService<Inner>>,
    mock::Handle<Request<RequestBody>, Plain>,
) {
    mock::spawn_layer(McpChannelLayer::new())
}

#[tokio::test]
async fn readiness_is_the_inner_services() {
    let (mut service, mut handle) = spawned();
    handle.allow(0);
    assert_pending!(service.poll_ready::<Request<Full<Bytes>>>());
    handle.allow(1);
    assert!(service.is_woken());
    assert_ready_ok!(service.poll_ready::<Request<Full<Bytes>>>());
}

#[tokio::test]
async fn an_error_of_readiness_passes() {
    let (mut service, mut handle) = spawned();
    handle.send_error("out of order");
    let error = assert_ready_err!(service.poll_ready::<Request<Full<Bytes>>>());
    assert_eq!(error.to_string(), "out of order");
}

/// The mock panics when it is called without having been ready, and a clone of it never was.
#[tokio::test]
async fn the_service_that_was_made_ready_is_the_one_that_is_called() {
    let (mut service, mut handle) = spawned();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready::<Request<Full<Bytes>>>());
    let response = service.call(Call::tool("x").request());
    let reply = async {
        let (request, respond) = handle.next_request().await.expect("a request");
        assert!(request.extensions().get::<mcp_channel::Channel>().is_some());
        respond.send_response(result());
    };
    let (response, ()) = tokio::join!(response, reply);
    let reply = Reply::read(response.unwrap()).await;
    assert!(reply.json()["result"].is_object());

    // What is left is a clone that has to be made ready itself.
    handle.allow(0);
    assert_pending!(service.poll_ready::<Request<Full<Bytes>>>());
}

#[tokio::test]
async fn the_ready_service_is_kept_while_the_body_is_on_its_way() {
    let (mut service, mut handle) = spawned();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready::<Request<Full<Bytes>>>());
    let call = Call::tool("x");
    let (send, body) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let body = futures_util::stream::unfold(body, |mut body| async {
        let bytes = body.recv().await?;
        Some((Ok::<_, Infallible>(http_body::Frame::data(bytes)), body))
    });
    let body = StreamBody::new(Box::pin(body));
    let mut response = task::spawn(service.call(call.with_body(body)));
    assert_pending!(response.poll());

    // Nobody else became ready meanwhile, and the call needs no readiness any more.
    handle.allow(0);
    let (first, second) = {
        let bytes = Bytes::from(call.message.to_string());
        (bytes.slice(..10), bytes.slice(10..))
    };
    send.send(first).unwrap();
    assert!(response.is_woken());
    assert_pending!(response.poll());
    send.send(second).unwrap();
    drop(send);
    assert_pending!(response.poll());
    let (_, respond) = handle.next_request().await.expect("a request");
    respond.send_response(result());
    assert!(response.is_woken());
    let response = assert_ready_ok!(response.poll());
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_rejected_request_spends_no_readiness() {
    let (mut service, mut handle) = spawned();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready::<Request<Full<Bytes>>>());
    let rejected = service.call(
        Call::tool("x")
            .header("origin", "https://evil.example")
            .request(),
    );
    assert_eq!(rejected.await.unwrap().status(), 403);

    handle.allow(0);
    assert_ready_ok!(service.poll_ready::<Request<Full<Bytes>>>());
    let mut response = task::spawn(service.call(Call::tool("x").request()));
    assert_pending!(response.poll());
    assert!(handle.next_request().await.is_some());
}

#[tokio::test]
async fn a_clone_is_a_clone_of_the_inner_service_with_the_same_options() {
    let handler = service_fn(|_: Request<RequestBody>| async { Ok::<_, Infallible>(result()) });
    let service = McpChannelLayer::new().body_limit(1).layer(handler);
    for service in [service.clone(), service.clone().clone(), service] {
        assert_eq!(Call::tool("x").send(service).await.status, 413);
    }

    let (service, mut handle) = mock::pair::<Request<RequestBody>, Plain>();
    let mut service = McpChannelService::new(service);
    handle.allow(1);
    make_ready(&mut service).await;
    let mut clone = task::spawn(service.clone());
    // Nobody else becomes ready, and the clone does not have what the first has.
    handle.allow(0);
    let ready =
        clone.enter(|cx, mut clone| Service::<Request<Full<Bytes>>>::poll_ready(&mut *clone, cx));
    assert_pending!(ready);
    let mut response = task::spawn(service.call(Call::tool("x").request()));
    assert_pending!(response.poll());
    assert!(handle.next_request().await.is_some());
}

#[tokio::test]
async fn the_inner_service_can_be_reached() {
    let mut service = McpChannelService::new(1);
    assert_eq!(*service.get_ref(), 1);
    *service.get_mut() = 2;
    assert_eq!(service.into_inner(), 2);
}

// Permits

type Limited = McpChannelService<
    ConcurrencyLimit<tower::util::BoxCloneSyncService<Request<RequestBody>, Plain, Infallible>>,
>;

/// A service that handles one request at a time; a call of the tool `stream` opens a stream and
/// ends when it is told to.
fn limited() -> (Limited, std::sync::Arc<tokio::sync::Notify>) {
    let go = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = go.clone();
    let handler = service_fn(move |request: Request<RequestBody>| {
        let told = told.clone();
        async move {
            let channel: &mcp_channel::Channel = request.extensions().get().expect("a channel");
            let message: &mcp_channel::Message = request.extensions().get().expect("a message");
            if message.name().as_deref() == Some("stream") {
                channel.start_stream().unwrap();
            }
            told.notified().await;
            Ok::<_, Infallible>(result())
        }
    });
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .service(tower::util::BoxCloneSyncService::new(handler));
    (service, go)
}

fn is_ready(service: &Limited) -> bool {
    let mut service = task::spawn(service.clone());
    let ready = service.enter(|cx, mut s| Service::<Request<Full<Bytes>>>::poll_ready(&mut *s, cx));
    ready.is_ready()
}

#[tokio::test]
async fn a_permit_is_held_until_the_handler_of_a_stream_has_ended() {
    let (mut service, go) = limited();
    make_ready(&mut service).await;
    let response = service.call(Call::tool("stream").request()).await.unwrap();
    assert!(!is_ready(&service), "the head is out, the handler runs");

    go.notify_one();
    let reply = Reply::read(response).await;
    assert!(reply.last()["result"].is_object());
    assert!(is_ready(&service));
}

#[tokio::test]
async fn a_permit_is_given_back_when_the_response_is_dropped() {
    let (mut service, _go) = limited();
    for tool in ["stream", "plain"] {
        // Before anything was polled.
        make_ready(&mut service).await;
        let response = service.call(Call::tool(tool).request());
        assert!(!is_ready(&service));
        drop(response);
        assert!(is_ready(&service));

        // While the handler runs and the head is held back.
        make_ready(&mut service).await;
        let mut response = task::spawn(service.call(Call::tool(tool).request()));
        let polled = response.poll();
        assert_eq!(polled.is_ready(), tool == "stream");
        assert!(!is_ready(&service));
        drop((polled, response));
        assert!(is_ready(&service));
    }

    // While the stream is read.
    make_ready(&mut service).await;
    let response = service.call(Call::tool("stream").request()).await.unwrap();
    let mut body = task::spawn(response.into_body());
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    assert!(!is_ready(&service));
    drop(body);
    assert!(is_ready(&service));
}

#[tokio::test]
async fn a_rejected_request_gives_its_permit_back() {
    let (service, _go) = limited();
    let malformed = Call::tool("x").without_header("mcp-method");
    let reply = malformed.send(service.clone()).await;
    assert_eq!(reply.status, 400);
    assert!(is_ready(&service));
    let reply = Call::tool("x")
        .header("content-type", "text/plain")
        .send(service.clone())
        .await;
    assert_eq!(reply.status, 415);
    assert!(is_ready(&service));
}
