//! Channels and bodies that a test drives step by step, where it is about when something happens.

use std::task::Poll;

use bytes::Bytes;
use http::Response;
use http::{Extensions, StatusCode};
use http_body::Body;
use mcp_channel::{Channel, Deferred, McpChannelLayer, Message, Outlet};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_test::task::Spawn;

use super::request::{Call, Served, messages_of, served_by};
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

/// Lets a paused clock go on within a poll, as a handler that computes does.
pub(crate) fn work(duration: Duration) {
    let mut advance = tokio_test::task::spawn(tokio::time::advance(duration));
    tokio_test::assert_pending!(advance.poll());
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

/// A comment on a stream, which readers pass over.
pub(crate) const COMMENT: &str = ":\n\n";

/// That a stream with nothing on it opens with a comment, which the server is to write before it asks
/// for more.
#[track_caller]
pub(crate) fn assert_opens<B>(body: &mut Spawn<B>)
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    assert_eq!(poll_data(body), Poll::Ready(Some(COMMENT.into())));
    assert_eq!(poll_data(body), Poll::Pending);
    assert!(body.is_woken(), "by its own choice");
}

/// The layer without timers, which runs without a runtime.
pub(crate) fn untimed() -> McpChannelLayer {
    McpChannelLayer::new()
        .keep_alive(Duration::ZERO)
        .stream_after(Duration::ZERO)
}

/// What a [`puppet`] is told to do.
pub(crate) type Order = Box<dyn FnOnce(&Channel) + Send>;

/// A handler that does what the test tells it, within its own polls, and returns an empty response
/// when the sender is dropped. It serves one request.
pub(crate) fn puppet(layer: McpChannelLayer) -> (Served, UnboundedSender<Order>) {
    let (tell, told) = unbounded_channel::<Order>();
    let told = Arc::new(Mutex::new(Some(told)));
    let service = served_by(layer, move |channel, _| {
        let mut told = told.lock().unwrap().take().expect("one request");
        async move {
            while let Some(order) = told.recv().await {
                order(&channel);
            }
            Response::default()
        }
    });
    (service, tell)
}

/// A handler that leaves its channel to the test.
pub(crate) fn deferring(layer: McpChannelLayer) -> (Served, UnboundedReceiver<Channel>) {
    let (give, given) = unbounded_channel();
    let service = served_by(layer, move |channel, _| {
        give.send(channel).unwrap();
        async { Response::from(Deferred) }
    });
    (service, given)
}
