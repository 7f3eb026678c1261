//! Polls the handler and tells its channel what became of it; drops it when the client hangs up; catches
//! the panics of all code that is not ours.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderMap, Response};

use crate::channel::{Outlet, Returned};
use crate::error::BoxError;
use crate::handler::reply::Verdict;

/// What the client is told about a failure on the server's side.
pub(crate) const INTERNAL: &str = "internal error";

/// A handler's future, and the channel's other end.
///
/// When it is dropped, the channel is closed first, so that tasks that share it learn of it, and
/// then the handler is dropped. The order of the fields sees to that.
pub(crate) struct Driver<F> {
    pub(crate) outlet: Outlet,
    handler: Handler<F>,
    /// Whether the handler panicked when it was called, so that there is no future.
    stillborn: bool,
}

/// A handler's future, until it has returned.
struct Handler<F>(Option<Pin<Box<F>>>);

impl<F> Drop for Handler<F> {
    fn drop(&mut self) {
        if let Some(handler) = self.0.take() {
            drop_caught("the handler's future", handler);
        }
    }
}

/// What became of a handler.
#[derive(Debug)]
pub(crate) enum Outcome<B, E> {
    Response(Response<B>),
    Error(E),
    Panic,
}

/// What is left to do after a handler has returned.
#[derive(Debug)]
pub(crate) enum Settled<B, E> {
    /// The channel has, or will have, the reply. These headers go with it.
    Channel(HeaderMap),
    /// The handler answered without its channel.
    Response(Response<B>),
    /// The handler answered without its channel, but the stream is open: the body is to be the last
    /// event.
    LastEvent(Response<B>),
    /// The handler failed, and nothing was sent.
    Error(E),
}

impl<F> Driver<F> {
    /// Drives the future that `call` makes.
    pub(crate) fn new(call: impl FnOnce() -> F, outlet: Outlet) -> Self {
        let handler = caught("the handler", || Box::pin(call()));
        Self {
            outlet,
            stillborn: handler.is_none(),
            handler: Handler(handler),
        }
    }

    /// Polls the handler, if it still runs.
    pub(crate) fn poll<B, E>(&mut self, cx: &mut Context<'_>) -> Option<Outcome<B, E>>
    where
        F: Future<Output = Result<Response<B>, E>>,
    {
        if std::mem::take(&mut self.stillborn) {
            return Some(Outcome::Panic);
        }
        let handler = self.handler.0.as_mut()?;
        self.outlet.begin_poll();
        let outcome = match caught("the handler", || handler.as_mut().poll(cx)) {
            Some(Poll::Pending) => return None,
            Some(Poll::Ready(Ok(response))) => Outcome::Response(response),
            Some(Poll::Ready(Err(error))) => Outcome::Error(error),
            None => Outcome::Panic,
        };
        drop_caught("the handler's future", self.handler.0.take());
        Some(outcome)
    }

    /// Tells the channel what became of the handler.
    pub(crate) fn settle<B, E>(&mut self, outcome: Outcome<B, E>) -> Settled<B, E>
    where
        E: Into<BoxError>,
    {
        let outlet = &self.outlet;
        let headers = match outcome {
            Outcome::Panic => {
                outlet.fail(INTERNAL);
                HeaderMap::new()
            }
            Outcome::Error(error) => {
                if outlet.close_unused() {
                    return Settled::Error(error);
                }
                // Displaying it is user code, too.
                let _ = caught("the handler's error", || {
                    let error: BoxError = error.into();
                    crate::trace::error!(%error, "the handler failed after it had sent something");
                });
                outlet.fail(INTERNAL);
                HeaderMap::new()
            }
            Outcome::Response(mut response) => {
                match response.extensions_mut().remove::<Verdict>() {
                    Some(Verdict::Deferred) => {
                        let headers = headers_of(response);
                        outlet.handler_returned(true);
                        return Settled::Channel(headers);
                    }
                    Some(Verdict::Result(json)) => outlet.reply_result(&json),
                    Some(Verdict::Error(error)) => outlet.reply_error(&error),
                    None => {
                        return match outlet.returned() {
                            Returned::AfterEnd => Settled::Channel(headers_of(response)),
                            Returned::LastEvent => Settled::LastEvent(response),
                            Returned::Untouched => Settled::Response(response),
                        };
                    }
                }
                headers_of(response)
            }
        };
        outlet.handler_returned(false);
        Settled::Channel(headers)
    }
}

/// The headers of a response whose body is not wanted.
pub(crate) fn headers_of<B>(response: Response<B>) -> HeaderMap {
    let (parts, body) = response.into_parts();
    drop_caught("the handler's response", body);
    parts.headers
}

/// Runs user code. Returns None when it panicked, which is traced.
pub(crate) fn caught<T>(what: &'static str, code: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Some(value),
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            crate::trace::error!(what, panic = message, "a panic was caught");
            // The payload is a user's value, and dropping it may panic, too.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
                std::mem::forget(again);
            }
            None
        }
    }
}

/// Drops a user's value, and catches its panic.
pub(crate) fn drop_caught<T>(what: &'static str, value: T) {
    let _ = caught(what, || drop(value));
}
