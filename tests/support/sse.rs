//! An independent reader of server-sent events, as a check of what the crate writes.

use std::convert::Infallible;

use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt, stream};

/// An event as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `message` where the stream names none.
    pub(crate) event: String,
    pub(crate) data: String,
}

/// The events in a whole stream. What follows the last blank line is no event.
///
/// # Panics
///
/// The stream is not UTF-8 or starts with a byte order mark.
pub(crate) fn events(stream: &[u8]) -> Vec<Event> {
    // Line by line, since the reader scans what it has of a line again with each piece.
    events_in_pieces(stream.split_inclusive(|byte| *byte == b'\n'))
}

/// [`events`] of a stream that comes in pieces.
pub(crate) fn events_in_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Event> {
    let pieces = stream::iter(pieces.map(Ok::<_, Infallible>));
    let events = pieces.eventsource().map(|event| {
        let event = event.unwrap_or_else(|error| panic!("no event stream: {error}"));
        assert_eq!(
            (&*event.id, event.retry),
            ("", None),
            "ids and retry times are not used"
        );
        Event {
            event: event.event,
            data: event.data,
        }
    });
    events
        .collect()
        .now_or_never()
        .expect("all pieces are there")
}

/// The comments in a whole stream, each without its colon. The reader above passes over them, so this reads lines.
pub(crate) fn comments(stream: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stream)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let Some((whole, _)) = text.rsplit_once('\n') else {
        return Vec::new();
    };
    whole
        .lines()
        .filter_map(|line| line.strip_prefix(':').map(str::to_owned))
        .collect()
}
