//! [`ResponseFuture`]: reads and checks a request, calls its handler, and waits for the decision.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, Entry};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use pin_project::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::body::ResponseBody;
use super::driver::{Driver, INTERNAL, caught};
use super::head;
use super::undecided::Running;
use crate::channel::{Channel, Info, Outlet};
use crate::collect::Collect;
use crate::config::Config;
use crate::error::BoxError;
use crate::handler::request_body::RequestBody;
use crate::protocol::era::Era;
use crate::protocol::reply::legacy::Form;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::accept::Accepts;
use crate::protocol::request::check::check_body;
use crate::protocol::request::legacy::{self, Task};
use crate::protocol::request::message::Message;

const POLLED_AFTER_END: &str = "`ResponseFuture` polled after completion";

/// The response of an [`McpChannelService`](crate::McpChannelService), to come.
///
/// Reads and checks the request, calls the inner service, and polls its future and the channel
/// until one of them decides what the response is to be.
///
/// # Errors
///
/// The inner service's own error, when nothing was sent before it. Everything else is a response.
///
/// # Panics
///
/// When it is polled after it was ready, and when it is polled outside of a tokio runtime with a
/// timer while [`stream_after`](crate::McpChannelLayer::stream_after) is on. A panic of the inner
/// service is caught.
///
/// # Cancel safety
///
/// Dropping it cancels the handler, and closes the channel.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>>,
{
    #[pin]
    kind: Kind<S, B, S::Future>,
}

#[pin_project(project = KindProj)]
enum Kind<S, B, F> {
    Rejected(Option<Rejection>),
    Answered(Option<Answer>),
    Reading(#[pin] Reading<S, B>),
    Running(Option<Running<F>>),
}

/// A request whose body is being read.
#[pin_project]
struct Reading<S, B> {
    #[pin]
    body: B,
    collect: Collect,
    /// What the call needs, apart from the body.
    call: Option<Call<S>>,
}

struct Call<S> {
    /// The service that was ready.
    service: S,
    parts: Parts,
    accepts: Accepts,
    config: Arc<Config>,
}

/// What became of a request whose body is there.
enum Started<F> {
    Running(Running<F>),
    Answered(Answer),
}

/// What the layer answers by itself.
enum Answer {
    Reply(StatusCode, Bytes, Accepts),
    /// To a notification.
    Taken,
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>>,
{
    pub(crate) fn rejected(rejection: Rejection) -> Self {
        Self {
            kind: Kind::Rejected(Some(rejection)),
        }
    }

    pub(crate) fn new(
        service: S,
        request: Request<B>,
        accepts: Accepts,
        config: Arc<Config>,
    ) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            kind: Kind::Reading(Reading {
                body,
                collect: Collect::new(config.body_limit),
                call: Some(Call {
                    service,
                    parts,
                    accepts,
                    config,
                }),
            }),
        }
    }
}

impl<S, B, ResB> Future for ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>, Response = Response<ResB>>,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
    ResB: Body,
    ResB::Error: Into<BoxError>,
{
    type Output = Result<Response<ResponseBody<S::Future, ResB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut kind = self.project().kind;
        loop {
            match kind.as_mut().project() {
                KindProj::Rejected(rejection) => {
                    let rejection = rejection.take().expect(POLLED_AFTER_END);
                    return Poll::Ready(Ok(head::rejected(&rejection)));
                }
                KindProj::Answered(answer) => {
                    let answer = answer.take().expect(POLLED_AFTER_END);
                    return Poll::Ready(Ok(match answer {
                        Answer::Taken => head::accepted(),
                        Answer::Reply(status, json, accepts) => {
                            head::answered(status, json, accepts)
                        }
                    }));
                }
                KindProj::Reading(reading) => {
                    let reading = reading.project();
                    let read = ready!(reading.collect.poll(reading.body, cx));
                    let call = reading.call.take().expect(POLLED_AFTER_END);
                    match read.and_then(|body| call.start(body)) {
                        Ok(Started::Running(running)) => kind.set(Kind::Running(Some(running))),
                        Ok(Started::Answered(answer)) => kind.set(Kind::Answered(Some(answer))),
                        Err(rejection) => kind.set(Kind::Rejected(Some(rejection))),
                    }
                }
                KindProj::Running(running) => {
                    let decided = ready!(running.as_mut().expect(POLLED_AFTER_END).poll(cx));
                    let running = running.take().expect(POLLED_AFTER_END);
                    return Poll::Ready(decided.map(|decision| running.decide(decision)));
                }
            }
        }
    }
}

impl<S> Call<S>
where
    S: Service<Request<RequestBody>>,
{
    /// Checks the body, and calls the handler with it.
    fn start(mut self, body: Bytes) -> Result<Started<S::Future>, Rejection> {
        let Parts { headers, uri, .. } = &self.parts;
        let legacy = self.config.policy.legacy;
        let mut message = check_body(headers, uri, self.accepts, legacy, body)?;
        let mut form = Form::Modern;
        if message.meta().era() == Era::Legacy {
            match self.sort(message) {
                Task::Handle(sorted, its) => (message, form) = (sorted, its),
                Task::Taken => return Ok(Started::Answered(Answer::Taken)),
                Task::Reply(status, json) => {
                    let answer = Answer::Reply(status, json, self.accepts);
                    return Ok(Started::Answered(answer));
                }
            }
        }
        let extensions = &mut self.parts.extensions;
        let subscription = message.is_subscription();
        let id = message.id();
        let copied = caught("the clone of a value", || {
            self.config.copied_types.copy(extensions)
        });
        let copied = copied.ok_or_else(|| {
            let error = RpcError::internal(INTERNAL);
            let error = error.with_status(StatusCode::INTERNAL_SERVER_ERROR);
            Rejection::of(error, id.cloned(), "the clone of a value panicked")
        })?;
        let info = Info {
            id: id.cloned(),
            meta: message.meta().clone(),
            options: Arc::clone(&self.config.channel),
            copied,
            subscription,
            form,
        };
        let streamable = self.accepts != Accepts::JsonOnly;
        let outlet = Outlet::new(info, streamable, Some(Instant::now()));
        if let Some(shutdown) = self.config.shutdown.as_ref().filter(|_| subscription) {
            shutdown
                .register(outlet.shared())
                .map_err(|error| Rejection::of(error, id.cloned(), "shutting down"))?;
        }
        extensions.insert(Channel::new(outlet.shared()));
        let body = RequestBody::from(message.body().clone());
        extensions.insert::<Message>(message);
        let request = Request::from_parts(self.parts, body);
        let driver = Driver::new(|| self.service.call(request), outlet);
        let running = Running::new(driver, self.accepts, self.config);
        Ok(Started::Running(running))
    }

    /// Of a client of an earlier revision the layer answers some requests itself.
    #[cold]
    fn sort(&mut self, message: Message) -> Task {
        let task = legacy::sort(message, &self.parts.uri);
        if let (Task::Handle(message, _), Entry::Occupied(mut length)) =
            (&task, self.parts.headers.entry(CONTENT_LENGTH))
        {
            // It may be another message than the one that came.
            length.insert(message.body().len().into());
        }
        task
    }
}

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
