//! What is to be handed to the server: frames, or the one reply of a response without any.

use http::StatusCode;

use super::queue::Outgoing;
use crate::protocol::json::scratch::Scratch;

/// The final reply, before it is known what the response is to be.
#[derive(Debug)]
pub(crate) struct FinalReply {
    pub(crate) status: StatusCode,
    /// In seconds.
    pub(crate) retry_after: Option<u32>,
    pub(crate) json: Scratch,
}

/// Never both: a reply that comes when a stream is open is one of its frames.
#[derive(Debug)]
pub(crate) enum Output {
    Frames(Outgoing),
    Reply(FinalReply),
}

impl Default for Output {
    fn default() -> Self {
        Self::Frames(Outgoing::default())
    }
}

impl Output {
    /// The frames, unless there is a reply in their place.
    #[inline]
    pub(crate) fn frames(&mut self) -> Option<&mut Outgoing> {
        match self {
            Self::Frames(frames) => Some(frames),
            Self::Reply(_) => None,
        }
    }

    pub(crate) fn reply(&self) -> Option<&FinalReply> {
        match self {
            Self::Frames(_) => None,
            Self::Reply(reply) => Some(reply),
        }
    }

    /// The reply, which leaves room for frames.
    pub(crate) fn take_reply(&mut self) -> Option<FinalReply> {
        match std::mem::take(self) {
            Self::Reply(reply) => Some(reply),
            frames @ Self::Frames(_) => {
                *self = frames;
                None
            }
        }
    }

    /// Whether it holds no memory.
    pub(crate) fn is_unused(&self) -> bool {
        matches!(self, Self::Frames(frames) if frames.is_unused())
    }
}
