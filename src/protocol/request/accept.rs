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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append(&name, value);
        }
        headers
    }

    #[test]
    fn the_charset_of_json_is_utf_8_or_what_reads_as_such() {
        for (parameters, wide) in [
            ("", false),
            (";", false),
            (";;", false),
            (";charset=utf-8", false),
            ("; charset=\"utf-8\"", false),
            ("; charset=us-ascii", false),
            ("; charset=iso-8859-1", false),
            ("; charset=utf8", false),
            ("; charset", false),
            ("; charset=", false),
            ("; charset=\"", false),
            ("; charset=utf-1", false),
            ("; charset=x-utf-16", false),
            ("; mycharset=utf-16", false),
            ("; x=\"; charset=utf-16\"", false),
            ("; x=\"\\\"; charset=utf-16\"", false),
            ("; charset=utf-16", true),
            (";charset=utf-16", true),
            ("; charset=UTF-16", true),
            ("; Charset=utf-16", true),
            ("; CHARSET = Utf-16", true),
            ("; charset=utf-16le", true),
            ("; charset=utf-16be", true),
            ("; charset=\"UTF-16LE\"", true),
            ("; charset=utf-32", true),
            ("; charset=\"utf-32\"", true),
            ("; charset=UTF-32BE", true),
            ("; charset=utf-8; charset=utf-16", true),
            ("; x=y; charset=utf-16", true),
            ("; x=\"y;\\\"\"; charset=utf-16", true),
        ] {
            let value = format!("application/json{parameters}");
            let headers = headers(header::CONTENT_TYPE, &[&value]);
            match media_type(&headers) {
                MediaType::Json => assert!(!wide, "{value}"),
                MediaType::OtherCharset(sent) => {
                    assert!(wide, "{value}");
                    assert_eq!(sent.as_bytes(), value.as_bytes());
                }
                other => panic!("{value}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_first_content_type_that_is_not_plain_json_counts() {
        let wide = "application/json; charset=utf-16";
        let json = "application/json";
        for (values, at) in [
            (&[json, wide, "text/plain"][..], Some(1)),
            (&[json, "text/plain", wide], Some(1)),
            (&[wide, json], Some(0)),
            (&[json, json], None),
        ] {
            let headers = headers(header::CONTENT_TYPE, values);
            match (media_type(&headers), at) {
                (MediaType::OtherCharset(sent) | MediaType::Other(sent), Some(at)) => {
                    assert_eq!(sent, values[at]);
                }
                (said, at) => assert_eq!((said, at), (MediaType::Json, None), "{values:?}"),
            }
        }
        assert_eq!(media_type(&HeaderMap::new()), MediaType::Missing);
    }

    #[test]
    fn the_only_content_encoding_is_identity() {
        for (values, at) in [
            (&[][..], None),
            (&[""], None),
            (&["identity"], None),
            (&["Identity"], None),
            (&["\t IDENTITY "], None),
            (&["identity,identity"], None),
            (&[" , ,"], None),
            (&["identity", "", "identity"], None),
            (&["gzip"], Some(0)),
            (&["GZIP"], Some(0)),
            (&["br"], Some(0)),
            (&["identity, gzip"], Some(0)),
            (&["gzip, identity"], Some(0)),
            (&["identity", "gzip"], Some(1)),
            (&["identity", "deflate, gzip", "br"], Some(1)),
            (&["identity;q=1"], Some(0)),
            (&["identity identity"], Some(0)),
            (&["\"identity\""], Some(0)),
            (&["*"], Some(0)),
            (&["\u{e9}"], Some(0)),
        ] {
            let headers = headers(header::CONTENT_ENCODING, values);
            let found = content_encoding(&headers).map(HeaderValue::as_bytes);
            assert_eq!(
                found,
                at.map(|at: usize| values[at].as_bytes()),
                "{values:?}"
            );
        }
    }
}
