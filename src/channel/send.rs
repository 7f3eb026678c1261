//! The `send_*` methods of a handle: from a value to an encoded message.

use serde::Serialize;

use super::futures::{Sending, Step};
use super::handle::Channel;
use crate::error::{CloseReason, SendError};
use crate::protocol::era::Era;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::notification::progress::Progress;
use crate::protocol::notification::shape::{self, MESSAGE, Shape};
use crate::protocol::reply::rpc_error::RpcError;
use crate::protocol::reply::sse;
use crate::state::Frame;

impl Channel {
    /// Reports progress: a number, `(progress, total)` or `(progress, total, message)`; see
    /// [`Progress`].
    ///
    /// The protocol requires progress to increase with each notification. A value that does not
    /// increase is not sent, and that is not an error.
    ///
    /// # Errors
    ///
    /// As the future's output: [`is_closed`](SendError::is_closed),
    /// [`is_no_progress_token`](SendError::is_no_progress_token),
    /// [`is_invalid_message`](SendError::is_invalid_message) for NaN, an infinity, or on a
    /// `subscriptions/listen` stream, which carries no progress (and before the acknowledgement
    /// [`is_not_acknowledged`](SendError::is_not_acknowledged)).
    ///
    /// In a handler, ignore the result with `let _ = …` rather than use `?`. The send fails when
    /// the client did not ask for progress, and a report that was not sent is no reason to fail the
    /// request. When the client is gone, the handler is cancelled anyway.
    ///
    /// # Cancel safety
    ///
    /// See [`Sending`].
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn handler(channel: mcp_channel::Channel) {
    /// let _ = channel.send_progress(0.5).await;
    /// let _ = channel.send_progress((7, 10)).await;
    /// let _ = channel.send_progress((8, 10, "nearly there")).await;
    /// # }
    /// ```
    pub fn send_progress<'a>(&'a self, progress: impl Into<Progress<'a>>) -> Sending<'a> {
        Sending::new(self, self.progress(progress.into()))
    }

    /// As [`send_progress`](Self::send_progress), but never waits.
    ///
    /// # Errors
    ///
    /// The same, and [`is_full`](SendError::is_full).
    pub fn try_send_progress<'a>(
        &self,
        progress: impl Into<Progress<'a>>,
    ) -> Result<(), SendError> {
        self.try_send(self.progress(progress.into()))
    }

    /// Sends a log record: any data that serializes, at or above the level that the client asked
    /// for.
    ///
    /// A record below that level is dropped without being encoded, and so is every record when the
    /// client asked for none. That is not an error.
    ///
    /// Log messages are deprecated in revision `2026-07-28` of the protocol, which still carries
    /// them; prefer OpenTelemetry or standard error for what an operator should read.
    ///
    /// # Errors
    ///
    /// As the future's output: [`is_closed`](SendError::is_closed),
    /// [`is_invalid_message`](SendError::is_invalid_message) when the data does not serialize, or
    /// on a `subscriptions/listen` stream, which carries no log messages (and before the
    /// acknowledgement [`is_not_acknowledged`](SendError::is_not_acknowledged)).
    ///
    /// # Cancel safety
    ///
    /// See [`Sending`].
    pub fn send_log(&self, level: LogLevel, data: impl Serialize) -> Sending<'_> {
        Sending::new(self, self.log(level, &data, None))
    }

    /// As [`send_log`](Self::send_log), with the name of the logger.
    ///
    /// # Errors
    ///
    /// The same.
    ///
    /// # Cancel safety
    ///
    /// See [`Sending`].
    pub fn send_log_from(
        &self,
        logger: &str,
        level: LogLevel,
        data: impl Serialize,
    ) -> Sending<'_> {
        Sending::new(self, self.log(level, &data, Some(logger)))
    }

    /// As [`send_log`](Self::send_log), but never waits.
    ///
    /// # Errors
    ///
    /// The same, and [`is_full`](SendError::is_full).
    pub fn try_send_log(&self, level: LogLevel, data: impl Serialize) -> Result<(), SendError> {
        self.try_send(self.log(level, &data, None))
    }

    /// As [`try_send_log`](Self::try_send_log), with the name of the logger.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn try_send_log_from(
        &self,
        logger: &str,
        level: LogLevel,
        data: impl Serialize,
    ) -> Result<(), SendError> {
        self.try_send(self.log(level, &data, Some(logger)))
    }

    /// Sends a notification: anything that serializes to an object with a `method`, or one of the
    /// [typed ones](crate::notification).
    ///
    /// `jsonrpc` is added when absent. Notifications that belong on a `subscriptions/listen`
    /// stream, and every notification on such a stream, are stamped with the request's id; see
    /// [`requires_subscription_id`](crate::notification::requires_subscription_id). As with the
    /// methods for these, a `notifications/message` obeys the request's log level, and a
    /// `notifications/progress` needs the request's own token and must increase.
    ///
    /// # Errors
    ///
    /// As the future's output: [`is_closed`](SendError::is_closed),
    /// [`is_not_streamable`](SendError::is_not_streamable),
    /// [`is_not_acknowledged`](SendError::is_not_acknowledged),
    /// [`is_invalid_message`](SendError::is_invalid_message) when it is not a notification (the
    /// error says why) or does not belong on the stream; for `notifications/progress` also
    /// [`is_no_progress_token`](SendError::is_no_progress_token).
    ///
    /// # Cancel safety
    ///
    /// See [`Sending`].
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn handler(channel: mcp_channel::Channel) {
    /// let cooled = serde_json::json!({
    ///     "method": "notifications/com.example/cooled",
    ///     "params": {"celsius": 40},
    /// });
    /// let _ = channel.send_notification(cooled).await;
    /// # }
    /// ```
    pub fn send_notification(&self, notification: impl Serialize) -> Sending<'_> {
        Sending::new(self, self.notification(&notification))
    }

    /// As [`send_notification`](Self::send_notification), but never waits.
    ///
    /// # Errors
    ///
    /// The same, and [`is_full`](SendError::is_full).
    pub fn try_send_notification(&self, notification: impl Serialize) -> Result<(), SendError> {
        self.try_send(self.notification(&notification))
    }

    /// Sends the final reply: a result, which is anything that serializes to a JSON object.
    ///
    /// `resultType: "complete"` is added when the result has none, and the server's name and
    /// version when the layer [knows them](crate::McpChannelLayer::server_info). On an open stream
    /// it is the last event; otherwise it is the one JSON reply, sent when the handler has
    /// returned. Never waits.
    ///
    /// # Errors
    ///
    /// [`is_closed`](SendError::is_closed) when a reply was sent before,
    /// [`is_not_acknowledged`](SendError::is_not_acknowledged),
    /// [`is_invalid_message`](SendError::is_invalid_message) when the result is not an object or
    /// does not serialize; the request then still needs its reply.
    pub fn send_result(&self, result: impl Serialize) -> Result<(), SendError> {
        let shared = self.open()?;
        shared.admit(Frame::Result)?;
        let reply = shared.result(&result)?;
        shared.end(shared.lock(), CloseReason::Replied, Some(reply))
    }

    /// Sends the final reply: an error.
    ///
    /// On an open stream it is the last event; otherwise it is the one JSON reply, with the
    /// [error's HTTP status](RpcError::status), sent when the handler has returned. Never waits.
    ///
    /// # Errors
    ///
    /// [`is_closed`](SendError::is_closed) when a reply was sent before.
    pub fn send_error(&self, error: impl Into<RpcError>) -> Result<(), SendError> {
        let shared = self.open()?;
        let error = error.into();
        let reply = shared.error(&error);
        shared.end(shared.lock(), CloseReason::Replied, Some(reply))
    }

    #[inline]
    fn progress<'a>(&self, progress: Progress<'a>) -> Step<'a> {
        match self.open() {
            Ok(_) => Step::Progress(progress),
            Err(error) => Step::Decided(Err(error)),
        }
    }

    fn log<'a>(&self, level: LogLevel, data: &impl Serialize, logger: Option<&str>) -> Step<'a> {
        match self.admit(Frame::Log) {
            Ok(()) if self.wants(level) => {}
            decided => return Step::Decided(decided),
        }
        let mut json = Scratch::take();
        let record = LogRecord {
            jsonrpc: "2.0",
            method: MESSAGE,
            params: LogParams {
                level,
                logger,
                data,
            },
        };
        match sse::encode(&mut json.0, &record) {
            Ok(()) => Step::Json {
                frame: Frame::Log,
                json,
                progress: None,
            },
            Err(error) => Step::Decided(Err(SendError::invalid(format!(
                "the log record's data does not serialize: {error}"
            )))),
        }
    }

    fn notification<'a>(&self, notification: &impl Serialize) -> Step<'a> {
        self.prepared(notification)
            .unwrap_or_else(|error| Step::Decided(Err(error)))
    }

    fn prepared<'a>(&self, notification: &impl Serialize) -> Result<Step<'a>, SendError> {
        let shared = self.open()?;
        if shared.lock().state.ended().is_some() {
            return Err(SendError::CLOSED);
        }
        let mut json = Scratch::take();
        let shape = shape::write(&mut json.0, notification).map_err(SendError::invalid)?;
        let (frame, progress) = match shape {
            Shape::Acknowledgement => (Frame::Acknowledgement, None),
            Shape::Progress(_, progress) => (Frame::Progress, Some(progress)),
            Shape::Log(_) => (Frame::Log, None),
            Shape::Subscription | Shape::Cancelled | Shape::Other => (Frame::Notification, None),
        };
        shared.admit_notification(frame)?;
        self.belongs(&shape)?;
        if matches!(shape, Shape::Log(level) if !self.wants(level)) {
            return Ok(Step::Decided(Ok(())));
        }
        // Earlier revisions have no subscriptions of this kind.
        let stamped = self.era() == Era::Modern
            && (matches!(shape, Shape::Acknowledgement | Shape::Subscription)
                || shared.info.subscription);
        if let Some(id) = self.request_id().filter(|_| stamped) {
            shape::stamp_subscription_id(&mut json.0, id).map_err(SendError::invalid)?;
        }
        Ok(Step::Json {
            frame,
            json,
            progress,
        })
    }

    /// Whether a notification is about this request.
    fn belongs(&self, shape: &Shape) -> Result<(), SendError> {
        match shape {
            // A request without a token of its own gets no progress at all. That is refused later.
            Shape::Progress(token, _) if self.progress_token().is_some_and(|own| own != token) => {
                Err(SendError::invalid(
                    "the `params.progressToken` of notifications/progress is the request's own token",
                ))
            }
            Shape::Acknowledgement if self.era() == Era::Legacy => Err(SendError::invalid(
                "the client's version of the protocol has no subscriptions to acknowledge",
            )),
            Shape::Cancelled if !self.shared.info.subscription => Err(SendError::invalid(
                "a server cancels only a subscriptions/listen request: end this one with send_error",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a frame of this kind may be sent now.
    fn admit(&self, frame: Frame) -> Result<(), SendError> {
        self.open()?.admit(frame)
    }

    /// Whether the client wants log records of this level.
    fn wants(&self, level: LogLevel) -> bool {
        self.log_level().is_some_and(|wanted| level >= wanted)
    }

    fn try_send(&self, step: Step<'_>) -> Result<(), SendError> {
        let Some(item) = step.item() else {
            return match step {
                Step::Decided(result) => result,
                _ => Ok(()),
            };
        };
        self.shared.try_send(item)
    }
}

#[derive(Serialize)]
struct LogRecord<'a, T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: LogParams<'a, T>,
}

#[derive(Serialize)]
struct LogParams<'a, T> {
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: &'a T,
}
