//! What can be sent, shared and moved, and which inner services, futures and bodies fit.

mod support;

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, Ready};
use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use mcp_channel::notification::{
    Cancelled, Notification, PromptListChanged, ResourceListChanged, ResourceUpdated,
    SubscriptionsAcknowledged, ToolListChanged,
};
use mcp_channel::{
    AllowedHosts, AllowedOrigins, BoxError, Channel, CloseReason, Closed, Deferred, Flush, Host,
    InvalidHost, InvalidOrigin, LogLevel, McpChannelLayer, McpChannelService, Message, Origin,
    Outlet, Progress, ProgressNumber, ProgressToken, RawJson, Reply, RequestBody, RequestId,
    RequestMeta, ResponseBody, ResponseFuture, RpcError, SendError, Sending, ServerInfo, Shutdown,
    Status, UnknownLogLevel, subscriptions,
};
use serde_json::json;
use support::request::Call;
use tower::{Layer, Service, ServiceExt, service_fn};

fn send<T: Send + ?Sized>() {}
fn sync<T: Sync + ?Sized>() {}
fn unpin<T: Unpin + ?Sized>() {}
fn fixed<T: 'static + ?Sized>() {}

/// Values of these types go everywhere.
macro_rules! everywhere {
    ($($type:ty,)*) => {$(
        send::<$type>();
        sync::<$type>();
        unpin::<$type>();
    )*};
}

#[test]
fn every_public_type_can_be_sent_shared_and_moved() {
    everywhere! {
        Channel, Outlet, Sending<'static>, Closed<'static>, Flush<'static>, Status,
        CloseReason, SendError, BoxError,
        McpChannelLayer, McpChannelService<()>, RequestBody, Shutdown,
        AllowedHosts, Host, InvalidHost, AllowedOrigins, Origin, InvalidOrigin, ServerInfo,
        Message, RequestMeta, RequestId, ProgressToken, LogLevel, UnknownLogLevel,
        Progress<'static>, ProgressNumber, RawJson<'static>, RpcError, Reply, Deferred,
        Notification, ToolListChanged, PromptListChanged, ResourceListChanged,
        ResourceUpdated<'static>, SubscriptionsAcknowledged<()>, Cancelled<'static>,
        subscriptions::Subscriptions, subscriptions::Builder, subscriptions::Change,
        subscriptions::SubscriptionFilter, subscriptions::ResourceMatch,
    }
    fixed::<Channel>();
    fixed::<Message>();
    fixed::<Outlet>();
}

#[test]
fn errors_are_errors() {
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    error::<SendError>();
    error::<RpcError>();
    error::<InvalidHost>();
    error::<InvalidOrigin>();
    error::<UnknownLogLevel>();
}

/// Something that is `Send` and not `Sync`, as many services are.
type SendOnly = Cell<u8>;

type Boxed<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Infallible>> + Send>>;

/// A service that is `Send + !Sync`, as are its future and its body.
#[derive(Clone)]
struct Inner(SendOnly);

impl Service<Request<RequestBody>> for Inner {
    type Response = Response<SendOnlyBody>;
    type Error = Infallible;
    type Future = Boxed<SendOnlyBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let stream = self.0.get() > 0;
        Box::pin(async move {
            let channel: &Channel = request.extensions().get().unwrap();
            if stream {
                channel.send_progress(1).await.unwrap();
            }
            let text = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
            Ok(Response::new(SendOnlyBody(Cell::new(Some(Bytes::from(
                text,
            ))))))
        })
    }
}

/// A body that is `Send + !Sync`.
struct SendOnlyBody(Cell<Option<Bytes>>);

impl Body for SendOnlyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[test]
fn response_and_body_are_send_when_what_they_hold_is() {
    send::<McpChannelService<Inner>>();
    send::<ResponseFuture<Inner, SendOnlyBody>>();
    send::<ResponseBody<Boxed<SendOnlyBody>, SendOnlyBody>>();
    send::<Response<ResponseBody<Boxed<SendOnlyBody>, SendOnlyBody>>>();

    type Shared = Ready<Result<Response<Full<Bytes>>, Infallible>>;
    sync::<ResponseBody<Shared, Full<Bytes>>>();
}

/// Whether a type is `Send`, told without a bound on it.
macro_rules! is_send {
    ($type:ty) => {{
        #[allow(dead_code, reason = "as below")]
        trait Fallback {
            const SEND: bool = false;
        }
        impl<T: ?Sized> Fallback for T {}
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "whichever of the two is not taken")]
        impl<T: Send + ?Sized> Probe<T> {
            const SEND: bool = true;
        }
        <Probe<$type>>::SEND
    }};
}

#[test]
fn response_and_body_are_not_send_when_what_they_hold_is_not() {
    type Local = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>>>>;
    assert!(is_send!(ResponseBody<Boxed<Full<Bytes>>, Full<Bytes>>));
    assert!(!is_send!(ResponseBody<Local, Full<Bytes>>));
    assert!(!is_send!(ResponseBody<Boxed<Full<Bytes>>, Rc<()>>));
}

#[test]
fn the_body_can_be_moved_when_the_inner_one_can() {
    // The handler's future is boxed, so it does not matter.
    type NotUnpin = (PhantomPinned, Ready<()>);
    unpin::<ResponseBody<NotUnpin, Full<Bytes>>>();
}

#[test]
fn channels_survive_a_panic_around_them() {
    fn safe<T: UnwindSafe + RefUnwindSafe>() {}
    safe::<RequestId>();
    safe::<RpcError>();
    safe::<LogLevel>();
    safe::<Status>();
}

#[tokio::test]
async fn a_service_that_is_not_sync_serves() {
    for stream in [false, true] {
        let service = McpChannelLayer::new().layer(Inner(Cell::new(stream.into())));
        // In another task, where it must be Send.
        let reply = tokio::spawn(async move {
            let call = Call::tool("x").token(1);
            let response = service.oneshot(call.request()).await.unwrap();
            support::request::Reply::read(response).await
        });
        let reply = reply.await.unwrap();
        if stream {
            assert_eq!(reply.events().len(), 2);
            assert!(reply.last()["result"].is_object());
        } else {
            assert!(reply.body.starts_with(b"{"));
        }
    }
}

#[tokio::test]
async fn a_handler_that_is_not_send_serves_on_its_thread() {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let service = McpChannelLayer::new().layer(service_fn(move |request: Request<RequestBody>| {
        let count = Rc::clone(&counted);
        async move {
            let channel: &Channel = request.extensions().get().unwrap();
            channel.send_progress(1).await.unwrap();
            tokio::task::yield_now().await;
            count.set(count.get() + 1);
            channel.send_result(json!({"content": []})).unwrap();
            Ok::<_, Infallible>(Response::<Full<Bytes>>::default())
        }
    }));
    let reply = Call::tool("x").token(1).send(service).await;
    assert_eq!((reply.events().len(), count.get()), (2, 1));
}

/// A handler that notices when it is moved after its first poll.
struct Pinned {
    channel: Channel,
    at: Cell<Option<usize>>,
    polls: Cell<u8>,
    _pinned: PhantomPinned,
}

impl Future for Pinned {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let here = std::ptr::from_ref(&*self).addr();
        let before = self.at.replace(Some(here));
        assert_eq!(before.unwrap_or(here), here, "the future was moved");
        self.polls.set(self.polls.get() + 1);
        match self.polls.get() {
            1 => self.channel.start_stream().unwrap(),
            n @ 2..=4 => self.channel.try_send_progress(n).unwrap(),
            _ => {
                self.channel.send_result(json!({"content": []})).unwrap();
                return Poll::Ready(Ok(Response::default()));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[tokio::test]
async fn a_future_that_must_not_move_does_not() {
    let service = McpChannelLayer::new().layer(service_fn(|request: Request<RequestBody>| {
        let channel = request.extensions().get().cloned().unwrap();
        Pinned {
            channel,
            at: Cell::new(None),
            polls: Cell::new(0),
            _pinned: PhantomPinned,
        }
    }));
    let reply = Call::tool("x").token(1).send(service).await;
    assert_eq!(reply.events().len(), 4);
}
