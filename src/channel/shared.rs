//! What the two ends of a channel share: the facts of the request, the count of handles, and the
//! lock.
//!
//! No user code runs under that lock: values are encoded before it is taken, and wakers are woken
//! and dropped after it was released.

use std::sync::Arc as StdArc;
use std::task::Waker;

use http::{Extensions, StatusCode};
use serde::Serialize;
use tokio::time::Instant;

use super::locked::Locked;
use super::options::Options;
use super::queue::{FinalReply, Output};
use super::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, lock};
use crate::error::{CloseReason, SendError};
use crate::protocol::id::RequestId;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::reply::legacy::{self, Form};
use crate::protocol::reply::result;
use crate::protocol::reply::result::Stamps;
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::reply::sse;
use crate::protocol::request::meta::RequestMeta;
use crate::state::State;

/// What is known about the request. It never changes.
#[derive(Debug)]
pub(crate) struct Info {
    pub(crate) id: Option<RequestId>,
    pub(crate) meta: RequestMeta,
    pub(crate) options: StdArc<Options>,
    /// Values of the application that came with the request. They take precedence over those of the
    /// options.
    pub(crate) copied: Extensions,
    pub(crate) subscription: bool,
    pub(crate) form: Form,
}

pub(crate) struct Shared {
    pub(crate) info: Info,
    /// The number of open handles, plus one until the handler has deferred its reply. It is outside
    /// the lock, so that cloning a handle is cheap.
    handles: AtomicUsize,
    inner: Mutex<Locked>,
}

impl Shared {
    /// When the handler is about to be called and then polled, `polling` is the time of that call.
    pub(super) fn new(info: Info, streamable: bool, polling: Option<Instant>) -> Arc<Self> {
        let mut state = State::new(streamable, info.subscription);
        if info.id.is_none() {
            // Nothing can be sent for a notification.
            let _ = state.end(CloseReason::Closed);
        }
        Arc::new(Self {
            info,
            handles: AtomicUsize::new(1),
            inner: Mutex::new(Locked::new(state, polling)),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Locked> {
        lock(&self.inner)
    }

    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there are open handles, for a handler that has not deferred its reply.
    pub(crate) fn has_handles(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 1
    }

    /// Counts a handle that is gone. Once the handler has deferred its reply, losing the last one
    /// fails the request.
    pub(crate) fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.abandon();
        }
    }

    /// To be called when the handler has returned and its handles were dropped. With `deferred` a
    /// task replies later.
    pub(crate) fn handler_returned(&self, deferred: bool) {
        let mut inner = self.lock();
        inner.state.handler_returned();
        if deferred {
            drop(inner);
            self.drop_handle();
        } else {
            // A clone that lives on in a task can send nothing more. An error means that the
            // channel had ended before.
            let _ = self.end(inner, CloseReason::Closed, None);
        }
    }

    #[cold]
    fn abandon(&self) {
        let message = "the handler dropped its channel without a reply";
        let failed = self.fail(self.lock(), message);
        // After unlocking: a subscriber of traces is user code and may use this channel.
        if failed.is_ok() {
            crate::trace::error!("the last handle of the channel was dropped without a reply");
        }
    }

    /// Ends the request with an internal error, unless it has ended.
    pub(crate) fn fail(
        &self,
        inner: MutexGuard<'_, Locked>,
        message: &'static str,
    ) -> Result<(), SendError> {
        self.end(inner, CloseReason::Replied, Some(self.failure(message)))
    }

    pub(crate) fn failure(&self, message: &'static str) -> FinalReply {
        self.error(&RpcError::failure(message))
    }

    /// An error, encoded as the reply to this request.
    pub(crate) fn error(&self, error: &RpcError) -> FinalReply {
        let mut json = Scratch::take();
        let id = self.info.id.as_ref();
        let status = match self.info.form {
            Form::Modern => {
                error.write_response(id, &mut json.0);
                error.status()
            }
            form => legacy::write_error(error, form, id, &mut json.0),
        };
        FinalReply {
            status,
            retry_after: error.retry_after_seconds(),
            json,
        }
    }

    /// A result, encoded as the reply to this request.
    pub(crate) fn result(&self, result: &impl Serialize) -> Result<FinalReply, SendError> {
        self.result_of(|out| sse::encode(out, result))
    }

    /// As [`result`](Self::result), for a result that is in wire form already.
    pub(crate) fn encoded_result(&self, json: &[u8]) -> Result<FinalReply, SendError> {
        self.result_of(|out| {
            // With room for what is added to it.
            out.reserve(json.len() + 256);
            out.extend_from_slice(json);
            Ok(())
        })
    }

    fn result_of(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<FinalReply, SendError> {
        let Some(id) = &self.info.id else {
            return Err(SendError::CLOSED);
        };
        let server_info = self.info.options.server_info.as_deref();
        let mut json = Scratch::take();
        match self.info.form {
            Form::Modern => {
                let stamps = Stamps {
                    server_info,
                    subscription: self.info.subscription,
                };
                result::write_response(&mut json.0, id, stamps, write)
            }
            form => legacy::write_response(&mut json.0, id, form, server_info, write),
        }
        .map_err(SendError::invalid)?;
        Ok(FinalReply {
            status: StatusCode::OK,
            retry_after: None,
            json,
        })
    }

    /// Ends the request, with its final reply if there is one. Only the first call does; later ones
    /// return an error.
    pub(crate) fn end(
        &self,
        mut inner: MutexGuard<'_, Locked>,
        reason: CloseReason,
        reply: Option<FinalReply>,
    ) -> Result<(), SendError> {
        inner.state.end(reason)?;
        let spent = reply.and_then(|reply| {
            if inner.state.is_streaming() {
                inner.append_last(&reply.json.0);
                return Some(reply);
            }
            inner.output = Output::Reply(reply);
            None
        });
        let waiters = inner.waiters.take_all();
        let poller = inner.wake_poller();
        let guard = inner.guard.take();
        drop(inner);
        waiters.into_iter().for_each(Waker::wake);
        poller.into_iter().for_each(Waker::wake);
        drop((spent, guard));
        Ok(())
    }

    /// Ends the response without a reply from the handler.
    pub(crate) fn close(&self) -> Result<(), SendError> {
        let inner = self.lock();
        let reply = if !inner.state.is_streaming() {
            Some(self.failure("the channel was closed without a reply"))
        } else if !self.info.subscription {
            None
        } else if inner.state.is_acknowledged() {
            self.encoded_result(b"{}").ok()
        } else {
            // A result comes after the acknowledgement.
            Some(self.failure("the subscription was closed before it was acknowledged"))
        };
        self.end(inner, CloseReason::Closed, reply)
    }

    pub(crate) fn start_stream(&self) -> Result<(), SendError> {
        let mut inner = self.lock();
        inner.state.start_stream()?;
        let poller = inner.wake_poller();
        drop(inner);
        poller.into_iter().for_each(Waker::wake);
        Ok(())
    }
}
