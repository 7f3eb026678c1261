//! Putting strings and raw JSON into a message, fit for one line of an event stream.
//!
//! A CR or LF would end the line; naive readers also split at NUL, U+0085, U+2028 and U+2029. So the
//! first two never occur and the others only as `\u` escapes.

use bytes::BufMut;

/// Appends `string` as a JSON string with its quotes.
pub(crate) fn put_string(out: &mut impl BufMut, string: &str) {
    out.put_u8(b'"');
    let bytes = string.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let short: &[u8] = match bytes[at] {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            control @ 0..0x20 => {
                out.put_slice(&bytes[copied..at]);
                out.put_slice(&[
                    b'\\',
                    b'u',
                    b'0',
                    b'0',
                    b'0' + (control >> 4),
                    b"0123456789abcdef"[usize::from(control & 15)],
                ]);
                at += 1;
                copied = at;
                continue;
            }
            0xc2 | 0xe2 => match separator(&bytes[at..]) {
                Some((escape, length)) => {
                    out.put_slice(&bytes[copied..at]);
                    out.put_slice(escape);
                    at += length;
                    copied = at;
                    continue;
                }
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        out.put_slice(&bytes[copied..at]);
        out.put_slice(short);
        at += 1;
        copied = at;
    }
    out.put_slice(&bytes[copied..]);
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

/// Whether a valid JSON text is what [`put_json`] would make of it.
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
