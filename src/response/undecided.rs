//! Runs a handler until it is decided whether its response is one JSON reply or a stream, opens the
//! stream for a late reply (`stream_after`), and makes that response.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::body::ResponseBody;
use super::driver::{Driver, INTERNAL, Outcome, Settled, headers_of};
use super::head;
use super::streaming::Stream;
use super::timers::{KeepAlive, Timer};
use super::translated::Translated;
use crate::channel::{Decided, FinalReply};
use crate::config::Config;
use crate::error::BoxError;
use crate::handler::reply::Verdict;
use crate::protocol::reply::codes;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::request::accept::Accepts;

pub(crate) struct Running<F> {
    driver: Driver<F>,
    config: Arc<Config>,
    accepts: Accepts,
    /// The headers of the handler's response, for a reply on the channel.
    headers: HeaderMap,
    timer: Timer,
}

/// What the response is to be.
#[derive(Debug)]
pub(crate) enum Decision<B> {
    Single(FinalReply),
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
            headers: HeaderMap::new(),
            timer: Timer::default(),
        }
    }

    /// Polls the handler and the channel. An error is the handler's own.
    pub(crate) fn poll<B, E>(&mut self, cx: &mut Context<'_>) -> Poll<Result<Decision<B>, E>>
    where
        F: Future<Output = Result<Response<B>, E>>,
        E: Into<BoxError>,
    {
        let outcome = self.driver.poll(cx);
        // A notification wants no reply.
        if self.driver.outlet.request_id().is_none() {
            return outcome.map_or(Poll::Pending, |outcome| Poll::Ready(self.notified(outcome)));
        }
        match outcome.map(|outcome| self.driver.settle(outcome)) {
            None => {}
            Some(Settled::Channel(headers)) => self.headers = headers,
            Some(Settled::LastEvent(response)) => {
                return Poll::Ready(Ok(Decision::Stream(Some(response))));
            }
            Some(Settled::Response(response)) => {
                if self.driver.outlet.has_handles() {
                    crate::trace::warn!(
                        "the handler returned a response of its own while a handle of its channel lives on: \
                         to have a task reply, return `Deferred`"
                    );
                }
                return Poll::Ready(Ok(Decision::Untouched(response)));
            }
            Some(Settled::Error(error)) => return Poll::Ready(Err(error)),
        }

        let stream_only = self.accepts == Accepts::StreamOnly;
        let decided = self.driver.outlet.poll_decided(cx.waker(), stream_only);
        Poll::Ready(Ok(match decided {
            Poll::Ready(Decided::Single(reply)) => Decision::Single(reply),
            Poll::Ready(Decided::Stream) => Decision::Stream(None),
            Poll::Pending => {
                ready!(self.poll_stream_after(cx));
                self.driver.outlet.open_stream();
                Decision::Stream(None)
            }
        }))
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

    /// The answer to a notification: there is no reply, but there may be an error.
    fn notified<B, E>(&mut self, outcome: Outcome<B, E>) -> Result<Decision<B>, E> {
        let error = match outcome {
            Outcome::Error(error) => return Err(error),
            Outcome::Panic => {
                RpcError::internal(INTERNAL).with_status(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Outcome::Response(mut response) => {
                let verdict = response.extensions_mut().remove::<Verdict>();
                if verdict.is_none() && !response.status().is_success() {
                    return Ok(Decision::Untouched(response));
                }
                let headers = headers_of(response);
                match verdict {
                    Some(Verdict::Error(error)) if error.code() != codes::METHOD_NOT_FOUND => {
                        self.headers = headers;
                        refusing(error)
                    }
                    _ => return Ok(Decision::Accepted),
                }
            }
        };
        Ok(Decision::Single(self.driver.outlet.error(&error)))
    }

    /// Makes the response.
    pub(crate) fn decide<B: Body>(mut self, decision: Decision<B>) -> Response<ResponseBody<F, B>> {
        match decision {
            Decision::Untouched(response) => {
                match Translated::new(response, self.driver.outlet, self.config.body_limit) {
                    Ok(response) => response.map(ResponseBody::translated),
                    Err(response) => response.map(ResponseBody::inner),
                }
            }
            Decision::Accepted => head::accepted(),
            Decision::Single(reply) => {
                if let Some(seconds) = reply.retry_after {
                    self.headers.insert(RETRY_AFTER, seconds.into());
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

/// A notification that is not accepted is answered with an HTTP error status, whatever its code.
fn refusing(error: RpcError) -> RpcError {
    match error.status() {
        status if !status.is_success() => error,
        _ if error.code() == codes::INTERNAL_ERROR => {
            error.with_status(StatusCode::INTERNAL_SERVER_ERROR)
        }
        _ => error.with_status(StatusCode::BAD_REQUEST),
    }
}
