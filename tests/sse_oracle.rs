//! The independent reader of event streams, which other tests trust, checked itself.

mod support;

use proptest::prelude::*;
use support::sse::{Event, comments, events, events_in_pieces};

fn message(data: &str) -> Event {
    Event {
        event: "message".into(),
        data: data.into(),
    }
}

#[test]
fn events_and_comments_are_told_apart() {
    let stream = b": a\n\nevent: message\ndata: {\"a\":1}\n\n:\n\ndata: b\ndata:c\n\nevent: other\ndata: d\n\ndata: cut\n:cu";
    let other = Event {
        event: "other".into(),
        data: "d".into(),
    };
    assert_eq!(
        events(stream),
        [message("{\"a\":1}"), message("b\nc"), other]
    );
    assert_eq!(comments(stream), [" a", ""]);
    assert_eq!((events(b""), comments(b"")), (vec![], vec![]));
}

#[test]
#[should_panic(expected = "no event stream")]
fn what_is_not_utf_8_is_refused() {
    events(b"data: \xff\n\n");
}

#[test]
#[should_panic(expected = "ids and retry times are not used")]
fn an_id_is_refused() {
    events(b"id: 1\ndata: a\n\n");
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same_events(
        data in proptest::collection::vec("[^\r\n\u{feff}]{1,12}", 1..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let frames = data.iter().map(|data| format!("event: message{end}data: {data}{end}{end}:{end}{end}"));
        let stream = frames.collect::<String>().into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]);

        let expected: Vec<Event> = data.iter().map(|data| message(data)).collect();
        prop_assert_eq!(&events_in_pieces(pieces), &expected);
        prop_assert_eq!(&events(&stream), &expected);
        prop_assert_eq!(events_in_pieces(stream.chunks(1)), expected);
        prop_assert_eq!(comments(&stream).len(), data.len());
    }
}
