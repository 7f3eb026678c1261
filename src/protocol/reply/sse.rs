//! How an event is framed, and the writer of most; progress and the changes of subscriptions put the
//! same frame around bytes of their own.
//!
//! Simple readers split lines at more characters than the standard's CR and LF. None of these
//! characters is written as it is; see [`mod@encode`].

use bytes::{BufMut, BytesMut};
use serde::Serialize;

use crate::protocol::json::encode;

/// What stands before the JSON of an event.
pub(crate) const EVENT: &[u8] = b"event: message\ndata: ";
/// What ends an event.
pub(crate) const END: &[u8] = b"\n\n";
/// A keep-alive: a comment line and a blank line.
pub(crate) const COMMENT: &[u8] = b":\n\n";

/// How many bytes an event has around its JSON.
pub(crate) const OVERHEAD: usize = EVENT.len() + END.len();

/// Appends `json`, which is in wire form, as one event.
pub(crate) fn append_event(out: &mut BytesMut, json: &[u8]) {
    out.reserve(json.len() + OVERHEAD);
    out.put_slice(EVENT);
    out.put_slice(json);
    out.put_slice(END);
}

/// Serializes `value` in wire form: compact except for raw JSON in it, and without the characters
/// that [`mod@encode`] names.
///
/// # Errors
///
/// What the value's own `Serialize` reports; `out` then holds a part of it.
pub(crate) fn encode(out: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value)?;
    if !encode::is_wire_form(&out[start..]) {
        let json = String::from_utf8_lossy(&out[start..]).into_owned();
        out.truncate(start);
        encode::put_json(out, &json);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn encoded(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        encode(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_a_reader_takes_for_a_line_end_is_escaped() {
        for (text, wire) in [
            ("plain", r#""plain""#),
            ("a\nb\r\nc\rd", r#""a\nb\r\nc\rd""#),
            ("\0", r#""\u0000""#),
            ("\u{85}", r#""\u0085""#),
            ("x\u{2028}y\u{2029}z", r#""x\u2028y\u2029z""#),
            ("\u{2028}\u{2028}", r#""\u2028\u2028""#),
            ("é©“\u{2027}\u{202a}\u{80}", "\"é©“\u{2027}\u{202a}\u{80}\""),
        ] {
            assert_eq!(encoded(&text), wire);
            assert_eq!(serde_json::from_str::<String>(wire).unwrap(), text);
        }
    }

    #[test]
    fn keys_are_escaped_too() {
        let map = std::collections::BTreeMap::from([("a\u{2028}", 1)]);
        assert_eq!(encoded(&map), r#"{"a\u2028":1}"#);
    }

    #[test]
    fn raw_json_of_a_user_is_one_line() {
        let raw: Box<RawValue> =
            serde_json::from_str("{\r\n  \"a\": \"\u{2028}\u{85}\",\n\t\"b\":[1,\r2]}").unwrap();
        assert_eq!(
            encoded(&raw),
            "{    \"a\": \"\\u2028\\u0085\", \t\"b\":[1, 2]}"
        );
        assert_eq!(
            encoded(&vec![raw]),
            "[{    \"a\": \"\\u2028\\u0085\", \t\"b\":[1, 2]}]"
        );
    }

    #[test]
    fn an_event_is_framed() {
        let mut out = BytesMut::new();
        append_event(&mut out, b"{}");
        append_event(&mut out, b"1");
        assert_eq!(
            out,
            "event: message\ndata: {}\n\nevent: message\ndata: 1\n\n"
        );
    }
}
