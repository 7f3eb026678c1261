//! Channels and bodies that a test drives step by step, where it is about when something happens.

use std::task::Poll;

use bytes::Bytes;
use http::{Extensions, StatusCode};
use http_body::Body;
use mcp_channel::{Channel, Message, Outlet};
use serde_json::Value;
use tokio_test::task::Spawn;

use super::request::{Call, messages_of};
use super::schema;

/// The channel of a request, and its other end.
pub(crate) fn channel(call: &Call) -> (Channel, Outlet) {
    channel_of(&call.message.to_string())
}

/// As [`channel`], of a message that no [`Value`] holds.
pub(crate) fn channel_of(message: &str) -> (Channel, Outlet) {
    let message = Message::parse(message.to_owned()).unwrap();
    Channel::from_request(&message, Extensions::new())
}

/// Everything that is on the stream by now, as bytes.
pub(crate) fn bytes_sent(outlet: &mut Outlet) -> Vec<u8> {
    std::iter::from_fn(|| outlet.try_next()).flatten().collect()
}

/// Everything that is on the stream by now. Each message was held against the protocol's schema.
pub(crate) fn sent(outlet: &mut Outlet) -> Vec<Value> {
    let messages = messages_of(&bytes_sent(outlet));
    for message in &messages {
        schema::validate_server_message(message)
            .unwrap_or_else(|error| panic!("{error}: {message}"));
    }
    messages
}

/// The single reply, with its status.
pub(crate) fn reply(outlet: &mut Outlet) -> Option<(StatusCode, Value)> {
    let (status, json) = outlet.try_reply()?;
    Some((status, serde_json::from_slice(&json).unwrap()))
}

/// Polls a body once, for its data.
pub(crate) fn poll_data<B>(body: &mut Spawn<B>) -> Poll<Option<Bytes>>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    body.enter(|cx, body| body.poll_frame(cx))
        .map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
}

/// The next data of a body that may be pending once or twice by its own choice.
///
/// # Panics
///
/// It is pending without having woken itself.
pub(crate) fn next_data<B>(body: &mut Spawn<B>) -> Option<Bytes>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    loop {
        match poll_data(body) {
            Poll::Ready(data) => return data,
            Poll::Pending => assert!(body.is_woken(), "nothing comes"),
        }
    }
}
