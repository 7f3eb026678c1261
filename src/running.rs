//! A handler that runs while it is not decided what the response is to be.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use tokio::time::Instant;

use crate::body::ResponseBody;
use crate::config::Config;
use crate::driver::{Driver, INTERNAL, Outcome, Settled};
use crate::error::BoxError;
use crate::head;
use crate::keep_alive::{KeepAlive, Timer};
use crate::protocol::check::Accepts;
use crate::protocol::codes;
use crate::protocol::rpc_error::RpcError;
use crate::reply::Verdict;
use crate::state::Head;
use crate::stream::Stream;

pub(crate) struct Running<F> {
    driver: Driver<F>,
    config: Arc<Config>,
    accepts: Accepts,
    notification: bool,
    /// Those of the handler's response, for a reply on the channel.
    headers: HeaderMap,
    timer: Timer,
}

/// What the response is to be.
#[derive(Debug)]
pub(crate) enum Decision<B> {
    /// The reply that is there.
    Single,
    /// A stream. A response that came without a reply is its last event.
    Stream(Option<Response<B>>),
    /// The handler's response.
    Untouched(Response<B>),
    /// The answer to a notification.
    Accepted,
}

impl<F> Running<F> {
    pub(crate) fn new(driver: Driver<F>, accepts: Accepts, config: Arc<Config>) -> Self {
        Self {
            driver,
            config,
            accepts,
            notification: false,
            headers: HeaderMap::new(),
            timer: Timer::default(),
        }
    }

    /// The message wants no reply.
    pub(crate) fn for_notification(mut self) -> Self {
        self.notification = true;
        self
    }

    /// Polls the handler and the channel. An error is the handler's own.
    pub(crate) fn poll<B, E>(&mut self, cx: &mut Context<'_>) -> Poll<Result<Decision<B>, E>>
    where
        F: Future<Output = Result<Response<B>, E>>,
        E: Into<BoxError>,
    {
        let outcome = self.driver.poll(cx);
        if self.notification {
            return outcome.map_or(Poll::Pending, |outcome| Poll::Ready(self.notified(outcome)));
        }
        match outcome.map(|outcome| self.driver.settle(outcome)) {
            None => {}
            Some(Settled::Channel(headers)) => self.headers = headers,
            Some(Settled::Response(response)) if self.driver.outlet.is_streaming() => {
                return Poll::Ready(Ok(Decision::Stream(Some(response))));
            }
            Some(Settled::Response(response)) => {
                self.driver.outlet.handler_returned(false);
                return Poll::Ready(Ok(Decision::Untouched(response)));
            }
            Some(Settled::Error(error)) => return Poll::Ready(Err(error)),
        }

        let outlet = &self.driver.outlet;
        let decision = match outlet.poll_head(cx.waker()) {
            Poll::Ready(Head::Single) if self.goes_as_stream() => {
                outlet.open_stream();
                Decision::Stream(None)
            }
            Poll::Ready(Head::Single) => Decision::Single,
            Poll::Ready(Head::Stream | Head::Undecided) => Decision::Stream(None),
            Poll::Pending => {
                if self.poll_stream_after(cx).is_pending() {
                    return Poll::Pending;
                }
                self.driver.outlet.open_stream();
                Decision::Stream(None)
            }
        };
        Poll::Ready(Ok(decision))
    }

    /// Whether the reply is for a client that takes nothing but streams. An error whose status says
    /// something stays JSON, as a rejection does.
    fn goes_as_stream(&self) -> bool {
        self.accepts == Accepts::StreamOnly
            && self.driver.outlet.reply_status() == Some(StatusCode::OK)
    }

    /// Ready when the reply is so late that a stream is to be opened for it.
    fn poll_stream_after(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(after) = self
            .config
            .stream_after
            .filter(|_| self.accepts != Accepts::JsonOnly)
        else {
            return Poll::Pending;
        };
        let fired = self.timer.poll(cx, || Instant::now() + after);
        // A reply with a status of its own waits for the handler, or the status would be lost.
        match self.driver.outlet.reply_status() {
            Some(status) if status != StatusCode::OK => Poll::Pending,
            _ => fired,
        }
    }

    /// What a notification is answered: there is no reply, but there may be an error.
    fn notified<B, E>(&mut self, outcome: Outcome<B, E>) -> Result<Decision<B>, E> {
        let outlet = &self.driver.outlet;
        let error = match outcome {
            Outcome::Error(error) => return Err(error),
            Outcome::Panic => {
                RpcError::internal(INTERNAL).with_status(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Outcome::Response(mut response) => {
                match response.extensions_mut().remove::<Verdict>() {
                    Some(Verdict::Error(error)) if error.code() != codes::METHOD_NOT_FOUND => {
                        self.headers = std::mem::take(response.headers_mut());
                        error
                    }
                    None if !response.status().is_success() => {
                        return Ok(Decision::Untouched(response));
                    }
                    _ => return Ok(Decision::Accepted),
                }
            }
        };
        outlet.keep_reply(&error);
        Ok(Decision::Single)
    }

    /// Makes the response.
    pub(crate) fn decide<B>(mut self, decision: Decision<B>) -> Response<ResponseBody<F, B>> {
        match decision {
            Decision::Untouched(response) => response.map(ResponseBody::inner),
            Decision::Accepted => head::accepted(),
            Decision::Single => {
                let reply = self.driver.outlet.take_reply(INTERNAL);
                if let Some(after) = reply.retry_after {
                    self.headers.insert(RETRY_AFTER, after.as_secs().into());
                }
                head::single(reply.status, self.headers, reply.json.into_bytes())
            }
            Decision::Stream(response) => {
                let keep_alive = KeepAlive::new(self.config.keep_alive);
                let limit = self.config.body_limit;
                head::stream(Stream::new(self.driver, response, limit, keep_alive))
            }
        }
    }
}
