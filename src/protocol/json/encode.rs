//! Writes strings and raw JSON into a message, so that it fits into one line of an event stream.
//!
//! A CR or LF would end the line, and simple readers also split at NUL, U+0085, U+2028 and U+2029.
//! So none of them is written as it is: between values, line ends become spaces; in strings, all of
//! them become escapes.

use bytes::BufMut;

use super::search::special;

/// Appends `string` as a JSON string with its quotes.
pub(crate) fn put_string(out: &mut impl BufMut, string: &str) {
    let bytes = string.as_bytes();
    out.put_u8(b'"');
    let mut at = 0;
    loop {
        // A run ends at an ASCII byte, so the run is a `str`.
        let end = special(bytes, at);
        put_escaped(out, &string[at..end]);
        let Some(&byte) = bytes.get(end) else { break };
        match byte {
            b'"' => out.put_slice(b"\\\""),
            b'\\' => out.put_slice(b"\\\\"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            0x08 => out.put_slice(b"\\b"),
            0x0c => out.put_slice(b"\\f"),
            control => {
                out.put_slice(b"\\u00");
                out.put_u8(b'0' + (control >> 4));
                out.put_u8(b"0123456789abcdef"[usize::from(control & 15)]);
            }
        }
        at = end + 1;
    }
    out.put_u8(b'"');
}

/// Appends a valid JSON text. Line ends, which are white space there, become spaces.
pub(crate) fn put_json(out: &mut impl BufMut, json: &str) {
    let mut rest = json;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
        put_escaped(out, &rest[..at]);
        out.put_u8(b' ');
        rest = &rest[at + 1..];
    }
    put_escaped(out, rest);
}

/// Appends a text that has no line ends, with the separators as escapes.
fn put_escaped(out: &mut impl BufMut, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for at in memchr::memchr2_iter(0xc2, 0xe2, bytes) {
        if let Some((escape, length)) = separator(&bytes[at..]) {
            out.put_slice(&bytes[copied..at]);
            out.put_slice(escape);
            copied = at + length;
        }
    }
    out.put_slice(&bytes[copied..]);
}

/// Whether [`put_json`] would leave a valid JSON text as it is.
pub(crate) fn is_wire_form(json: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', json).is_none() && !has_separator(json)
}

/// Appends a decimal integer.
pub(crate) fn put_integer(out: &mut impl BufMut, integer: i64) {
    out.put_slice(itoa::Buffer::new().format(integer).as_bytes());
}

/// Whether the text holds U+0085, U+2028 or U+2029.
pub(crate) fn has_separator(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(0xc2, 0xe2, bytes).any(|at| separator(&bytes[at..]).is_some())
}

fn separator(bytes: &[u8]) -> Option<(&'static [u8], usize)> {
    match bytes {
        [0xc2, 0x85, ..] => Some((b"\\u0085", 2)),
        [0xe2, 0x80, 0xa8, ..] => Some((b"\\u2028", 3)),
        [0xe2, 0x80, 0xa9, ..] => Some((b"\\u2029", 3)),
        _ => None,
    }
}
