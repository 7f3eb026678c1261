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

/// Whether the body is declared to be JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    values.next().is_some_and(says_json) && values.all(says_json)
}

fn says_json(value: &HeaderValue) -> bool {
    let json = b"application/json";
    // What nearly every client sends.
    value.as_bytes() == json || {
        let essence = value.as_bytes().split(|&byte| byte == b';').next();
        essence
            .unwrap_or_default()
            .trim_ascii()
            .eq_ignore_ascii_case(json)
    }
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
