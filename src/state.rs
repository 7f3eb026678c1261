//! The state machine that decides whether a response is one JSON reply or a stream, and when it
//! ends. It has no waker, no clock and no bytes.
//!
//! ```text
//!             first send that streams, start_stream, stream_reply
//!    Undecided ─────────────────────────────────────────────────▶ Stream
//!        │ end(reason), handler returned     stream_reply ▲          │ end(reason), handler returned
//!        ▼                                                │          ▼
//!      Single ────────────────────────────────────────────┘        Done
//! ```
//!
//! It does not know what a client that takes only JSON may be sent: such a client's request has
//! neither a progress token nor a log level, and other notifications are refused before.

use crate::error::CloseReason;

/// What a handler wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Progress,
    Log,
    Acknowledgement,
    Notification,
    Result,
}

/// Why a frame may not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    NotStreamable,
    NotAcknowledged,
    /// It does not belong on this stream.
    Misplaced(&'static str),
}

/// What the response is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// Not decided yet.
    Undecided,
    /// One JSON reply, which is there.
    Single,
    /// An event stream.
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    Unacknowledged,
    Acknowledged,
}

#[derive(Debug)]
pub(crate) struct State {
    streaming: bool,
    /// Whether the client takes a stream at all.
    streamable: bool,
    end: Option<CloseReason>,
    /// Whether the handler has returned. It may have left the channel to a task.
    returned: bool,
    subscription: Subscription,
}

impl State {
    pub(crate) fn new(streamable: bool, subscription: bool) -> Self {
        Self {
            streaming: false,
            streamable,
            end: None,
            returned: false,
            subscription: if subscription {
                Subscription::Unacknowledged
            } else {
                Subscription::None
            },
        }
    }

    /// Whether a frame of this kind may be sent now. An error may be sent at any time until the
    /// end.
    pub(crate) fn admit(&self, frame: Frame) -> std::result::Result<(), Refusal> {
        use Frame::{Acknowledgement, Log, Notification, Progress, Result};

        if self.end.is_some() {
            return Err(Refusal::Closed);
        }
        if matches!(frame, Acknowledgement | Notification) {
            self.admit_stream()?;
        }
        match (self.subscription, frame) {
            (Subscription::None, _) => Ok(()),
            (Subscription::Unacknowledged, Acknowledgement) => Ok(()),
            (Subscription::Unacknowledged, _) => Err(Refusal::NotAcknowledged),
            (Subscription::Acknowledged, Notification | Result) => Ok(()),
            (Subscription::Acknowledged, Acknowledgement) => Err(Refusal::Misplaced(
                "a subscription is acknowledged once, and it was",
            )),
            (Subscription::Acknowledged, Progress | Log) => Err(Refusal::Misplaced(
                "progress and log messages do not belong on a subscriptions/listen stream",
            )),
        }
    }

    /// Whether the client takes more than one message.
    pub(crate) fn admit_stream(&self) -> std::result::Result<(), Refusal> {
        if self.streamable {
            Ok(())
        } else {
            Err(Refusal::NotStreamable)
        }
    }

    /// Records that a frame which [`admit`](Self::admit) let pass was queued.
    pub(crate) fn accepted(&mut self, frame: Frame) {
        // Written only once, because the fields beside it are read right after.
        if !self.streaming {
            self.streaming = true;
        }
        if frame == Frame::Acknowledgement && self.subscription == Subscription::Unacknowledged {
            self.subscription = Subscription::Acknowledged;
        }
    }

    /// Opens the stream, if the client takes one.
    pub(crate) fn start_stream(&mut self) -> Result<(), Refusal> {
        if self.end.is_some() {
            return Err(Refusal::Closed);
        }
        self.streaming |= self.streamable;
        Ok(())
    }

    /// Opens the stream even after the final reply, which then is its only event.
    pub(crate) fn stream_reply(&mut self) {
        self.streaming |= self.streamable;
    }

    /// Ends the request: nothing more can be sent. The first reason stays.
    pub(crate) fn end(&mut self, reason: CloseReason) -> Result<(), Refusal> {
        if self.end.is_some() {
            return Err(Refusal::Closed);
        }
        self.end = Some(reason);
        Ok(())
    }

    pub(crate) fn handler_returned(&mut self) {
        self.returned = true;
    }

    pub(crate) fn head(&self) -> Head {
        if self.streaming {
            Head::Stream
        } else if self.is_done() {
            Head::Single
        } else {
            Head::Undecided
        }
    }

    /// Whether everything that will ever be sent is there.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_some() && self.returned
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.streaming
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.subscription == Subscription::Acknowledged
    }

    pub(crate) fn is_unacknowledged(&self) -> bool {
        self.subscription == Subscription::Unacknowledged && self.end.is_none()
    }

    pub(crate) fn ended(&self) -> Option<CloseReason> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::Frame::{Acknowledgement, Log, Notification, Progress, Result};
    use super::*;

    const ALL: [Frame; 5] = [Progress, Log, Acknowledgement, Notification, Result];

    fn admitted(state: &State) -> Vec<Frame> {
        ALL.into_iter()
            .filter(|frame| state.admit(*frame).is_ok())
            .collect()
    }

    #[test]
    fn a_channel_takes_everything_until_its_end() {
        let mut state = State::new(true, false);
        assert_eq!(admitted(&state), ALL);
        state.accepted(Progress);
        assert_eq!(admitted(&state), ALL);
        state.end(CloseReason::Replied).unwrap();
        for frame in ALL {
            assert_eq!(state.admit(frame), Err(Refusal::Closed));
        }
        assert_eq!(state.start_stream(), Err(Refusal::Closed));
        assert_eq!(state.end(CloseReason::Closed), Err(Refusal::Closed));
        assert_eq!(state.ended(), Some(CloseReason::Replied));
    }

    #[test]
    fn the_first_frame_decides_for_a_stream() {
        for frame in [Progress, Log, Notification] {
            let mut state = State::new(true, false);
            assert_eq!(state.head(), Head::Undecided);
            state.accepted(frame);
            assert_eq!(state.head(), Head::Stream);
        }
        let mut state = State::new(true, false);
        state.start_stream().unwrap();
        state.start_stream().unwrap();
        assert_eq!(state.head(), Head::Stream);
    }

    #[test]
    fn a_reply_is_single_once_the_handler_has_returned() {
        let mut state = State::new(true, false);
        state.end(CloseReason::Replied).unwrap();
        assert_eq!(state.head(), Head::Undecided);
        assert!(!state.is_done());
        state.handler_returned();
        assert_eq!(state.head(), Head::Single);
        assert!(state.is_done());
    }

    #[test]
    fn a_deferred_reply_is_waited_for() {
        let mut state = State::new(true, false);
        state.handler_returned();
        assert_eq!(state.head(), Head::Undecided);
        state.end(CloseReason::Replied).unwrap();
        assert_eq!(state.head(), Head::Single);
    }

    #[test]
    fn a_client_that_takes_only_json_gets_no_stream() {
        let mut state = State::new(false, false);
        assert_eq!(state.admit(Notification), Err(Refusal::NotStreamable));
        assert_eq!(admitted(&state), [Progress, Log, Result]);
        state.start_stream().unwrap();
        assert_eq!(state.head(), Head::Undecided);
    }

    #[test]
    fn a_subscription_begins_with_its_acknowledgement() {
        let mut state = State::new(true, true);
        assert_eq!(admitted(&state), [Acknowledgement]);
        assert_eq!(state.admit(Result), Err(Refusal::NotAcknowledged));
        state.start_stream().unwrap();
        assert_eq!(admitted(&state), [Acknowledgement]);
        state.accepted(Acknowledgement);
        assert_eq!(admitted(&state), [Notification, Result]);
        assert!(matches!(
            state.admit(Acknowledgement),
            Err(Refusal::Misplaced(_))
        ));
        assert!(matches!(state.admit(Progress), Err(Refusal::Misplaced(_))));
    }
}
