//! `Content-Type` and `Accept`: which media types a client sends and takes.

use http::{HeaderMap, HeaderValue, header};

/// The forms of response that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Both,
    /// One JSON object: nothing can be sent before the reply.
    JsonOnly,
    /// An event stream, even for a single reply.
    StreamOnly,
}

/// What the body is declared to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType<'a> {
    Json,
    /// JSON in UTF-16 or UTF-32, which is not how it is sent.
    OtherCharset(&'a HeaderValue),
    Other(&'a HeaderValue),
    Missing,
}

/// What the `Content-Type` headers say; the first that is not plain JSON counts.
pub(crate) fn media_type(headers: &HeaderMap) -> MediaType<'_> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(first) = values.next() else {
        return MediaType::Missing;
    };
    match media_type_of(first) {
        MediaType::Json => {
            let mut others = values.map(media_type_of);
            others
                .find(|other| *other != MediaType::Json)
                .unwrap_or(MediaType::Json)
        }
        other => other,
    }
}

#[inline]
fn media_type_of(value: &HeaderValue) -> MediaType<'_> {
    // What nearly every client sends.
    if value.as_bytes() == JSON {
        return MediaType::Json;
    }
    media_type_in_parts(value)
}

const JSON: &[u8] = b"application/json";

#[cold]
fn media_type_in_parts(value: &HeaderValue) -> MediaType<'_> {
    let mut parts = split(value.as_bytes(), b';').map(<[u8]>::trim_ascii);
    if !parts.next().unwrap_or_default().eq_ignore_ascii_case(JSON) {
        return MediaType::Other(value);
    }
    if parts.any(is_wide_charset) {
        return MediaType::OtherCharset(value);
    }
    MediaType::Json
}

/// `charset=utf-16`, `Charset="UTF-32LE"`
fn is_wide_charset(parameter: &[u8]) -> bool {
    let mut halves = parameter.splitn(2, |&byte| byte == b'=');
    let (Some(name), Some(value)) = (halves.next(), halves.next()) else {
        return false;
    };
    let value = value.trim_ascii();
    let value = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value);
    let begins = |prefix: &[u8]| {
        value
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    name.trim_ascii().eq_ignore_ascii_case(b"charset") && (begins(b"utf-16") || begins(b"utf-32"))
}

/// The first `Content-Encoding` header that names another encoding than `identity`.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .find(|value| {
            split(value.as_bytes(), b',')
                .map(<[u8]>::trim_ascii)
                .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
        })
}

/// What the `Accept` headers take; `None` when it is nothing that is served here.
pub(crate) fn accepts(headers: &HeaderMap) -> Option<Accepts> {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    // What nearly every client sends.
    if values
        .peek()
        .is_none_or(|value| value.as_bytes() == b"application/json, text/event-stream")
    {
        return Some(Accepts::Both);
    }
    let mut json = Verdict::default();
    let mut stream = Verdict::default();
    let mut empty = true;
    for value in values {
        for range in split(value.as_bytes(), b',') {
            let mut parts = split(range, b';').map(<[u8]>::trim_ascii);
            let essence = parts.next().unwrap_or_default();
            if essence.is_empty() {
                continue;
            }
            empty = false;
            let wanted = !parts.any(is_zero_weight);
            let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
            if is(b"*/*") {
                json.hear(0, wanted);
                stream.hear(0, wanted);
            } else if is(b"application/*") {
                json.hear(1, wanted);
            } else if is(b"text/*") {
                stream.hear(1, wanted);
            } else if is(b"application/json") {
                json.hear(2, wanted);
            } else if is(b"text/event-stream") {
                stream.hear(2, wanted);
            }
        }
    }
    // An empty list says nothing, like no header.
    match (json.wanted() || empty, stream.wanted() || empty) {
        (true, true) => Some(Accepts::Both),
        (true, false) => Some(Accepts::JsonOnly),
        (false, true) => Some(Accepts::StreamOnly),
        (false, false) => None,
    }
}

/// What the ranges of each precision say: `*/*`, `type/*` and `type/subtype`. The most precise one
/// counts.
#[derive(Default)]
struct Verdict([Option<bool>; 3]);

impl Verdict {
    fn hear(&mut self, precision: usize, wanted: bool) {
        let said = &mut self.0[precision];
        *said = Some(wanted || *said == Some(true));
    }

    fn wanted(&self) -> bool {
        self.0.iter().rev().find_map(|said| *said).unwrap_or(false)
    }
}

/// `q=0`, `Q=0.000`
fn is_zero_weight(parameter: &[u8]) -> bool {
    match parameter {
        [b'q' | b'Q', b'=', weight @ ..] => match weight {
            [b'0'] => true,
            [b'0', b'.', digits @ ..] => digits.iter().all(|&digit| digit == b'0'),
            _ => false,
        },
        _ => false,
    }
}

/// Splits at a separator that is not within a quoted string.
fn split(mut rest: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let mut quoted = false;
        let mut escaped = false;
        let found = rest.iter().position(|&byte| {
            if escaped {
                escaped = false;
            } else if quoted && byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                quoted = !quoted;
            } else {
                return byte == separator && !quoted;
            }
            false
        });
        match found {
            Some(at) => {
                let part = &rest[..at];
                rest = &rest[at + 1..];
                Some(part)
            }
            None => {
                done = true;
                Some(rest)
            }
        }
    })
}
