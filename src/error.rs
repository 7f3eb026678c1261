//! The errors of the crate, and why a channel was closed.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A boxed error, as tower and hyper pass it around.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a message was not sent.
///
/// The message was not sent and will not be, not even in part. Use the `is_*` predicates to find
/// the reason; the [`Display`](fmt::Display) form says what is wrong and how to put it right.
/// [`is_closed`](Self::is_closed) comes before every other reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct SendError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Closed,
    Full,
    NoProgressToken,
    NotStreamable,
    NotAcknowledged,
    InvalidMessage(Cow<'static, str>),
}

impl SendError {
    pub(crate) const CLOSED: Self = Self { kind: Kind::Closed };
    pub(crate) const FULL: Self = Self { kind: Kind::Full };
    pub(crate) const NO_PROGRESS_TOKEN: Self = Self {
        kind: Kind::NoProgressToken,
    };
    pub(crate) const NOT_STREAMABLE: Self = Self {
        kind: Kind::NotStreamable,
    };
    pub(crate) const NOT_ACKNOWLEDGED: Self = Self {
        kind: Kind::NotAcknowledged,
    };

    #[cold]
    pub(crate) fn invalid(why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: Kind::InvalidMessage(why.into()),
        }
    }

    /// The response has ended, or this handle was closed: no send can succeed any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed)
    }

    /// The client reads more slowly than the handler writes, and a `try_send_*` does not wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.kind, Kind::Full)
    }

    /// The client sent no progress token, so it does not want progress for this request.
    #[must_use]
    pub fn is_no_progress_token(&self) -> bool {
        matches!(self.kind, Kind::NoProgressToken)
    }

    /// The client takes a single JSON reply only (its `Accept` has no `text/event-stream`).
    #[must_use]
    pub fn is_not_streamable(&self) -> bool {
        matches!(self.kind, Kind::NotStreamable)
    }

    /// A `subscriptions/listen` stream must begin with its acknowledgement, which was not sent yet.
    #[must_use]
    pub fn is_not_acknowledged(&self) -> bool {
        matches!(self.kind, Kind::NotAcknowledged)
    }

    /// The message itself cannot be sent: it does not serialize, has the wrong shape, or does not
    /// belong on this stream.
    #[must_use]
    pub fn is_invalid_message(&self) -> bool {
        matches!(self.kind, Kind::InvalidMessage(_))
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Closed => "the channel is closed: a reply was sent, the handler returned without `Deferred`, or the client is gone",
            Kind::Full => "the client has not read what was sent before: wait for room with the send that is awaited",
            Kind::NoProgressToken => "the client sent no progress token with this request",
            Kind::NotStreamable => "the client does not accept text/event-stream",
            Kind::NotAcknowledged => {
                "a subscriptions/listen stream begins with notifications/subscriptions/acknowledged"
            }
            Kind::InvalidMessage(why) => why,
        })
    }
}

impl Error for SendError {}

/// Why a channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The client went away, or the server dropped the response.
    Disconnected,
    /// The final reply was sent.
    Replied,
    /// The server ended the response without a reply, the handler returned, or this handle alone
    /// was closed.
    Closed,
}
