//! An HTTP/1.1 response, decoded as its bytes come.

use std::time::Duration;

use crate::events::EventReader;

/// [`Reply::error`] of a response that took longer than its case allows.
pub(crate) const TIMEOUT: &str = "timeout";
/// [`Reply::error`] of a response that the server cut off.
pub(crate) const CUT: &str = "closed before its end";

/// What has come of a response.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: Option<u16>,
    /// Names in lower case; repeats are joined with a comma.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) stream: EventReader,
    /// The body came to its end as HTTP defines it.
    pub(crate) complete: bool,
    pub(crate) error: Option<String>,
    /// From the start of the exchange.
    pub(crate) head_at: Duration,
    /// When the first byte of the body came.
    pub(crate) body_at: Option<Duration>,
    pub(crate) elapsed: Duration,

    pending: Vec<u8>,
    framing: Framing,
}

#[derive(Clone, Copy, Debug, Default)]
enum Framing {
    #[default]
    Head,
    Length(usize),
    Chunked,
    UntilClose,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The media type without its parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.header("content-type")
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
    }

    /// Takes bytes that came at `now`.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Duration) {
        self.pending.extend_from_slice(bytes);
        if let Err(problem) = self.advance(now) {
            self.error.get_or_insert(problem);
        }
    }

    /// The server closed its side.
    pub(crate) fn close(&mut self) {
        match self.framing {
            Framing::UntilClose => self.complete = true,
            _ if self.complete => {}
            _ => drop(self.error.get_or_insert_with(|| CUT.into())),
        }
    }

    fn advance(&mut self, now: Duration) -> Result<(), String> {
        if let Framing::Head = self.framing {
            let Some(end) = find(&self.pending, b"\r\n\r\n") else {
                return Ok(());
            };
            let head: Vec<u8> = self.pending.drain(..end + 4).collect();
            self.head(&String::from_utf8_lossy(&head[..end]))?;
            self.head_at = now;
        }
        let mut used = 0;
        let mut body = Vec::new();
        while !self.complete {
            let rest = &self.pending[used..];
            match self.framing {
                Framing::Head => break,
                Framing::UntilClose => {
                    body.extend_from_slice(rest);
                    used += rest.len();
                    break;
                }
                Framing::Length(left) => {
                    let part = &rest[..left.min(rest.len())];
                    body.extend_from_slice(part);
                    used += part.len();
                    self.framing = Framing::Length(left - part.len());
                    self.complete = left == part.len();
                    if !self.complete {
                        break;
                    }
                }
                Framing::Chunked => match chunk(rest)? {
                    None => break,
                    Some((data, length)) => {
                        body.extend_from_slice(data);
                        self.complete = data.is_empty();
                        used += length;
                    }
                },
            }
        }
        self.pending.drain(..used);
        if !body.is_empty() {
            self.body_at.get_or_insert(now);
        }
        if self.media_type() == "text/event-stream" {
            self.stream.receive(&body, now);
        }
        self.body.append(&mut body);
        if self.complete && !self.pending.is_empty() {
            return Err(format!(
                "{} bytes follow the end of the response",
                self.pending.len()
            ));
        }
        Ok(())
    }

    fn head(&mut self, head: &str) -> Result<(), String> {
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap_or_default();
        let code = status
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| format!("no HTTP/1.1 status line: {status:?}"))?;
        for line in lines {
            let (key, value) = line
                .split_once(':')
                .ok_or_else(|| format!("no header line: {line:?}"))?;
            let (key, value) = (key.to_ascii_lowercase(), value.trim());
            match self.headers.iter_mut().find(|(k, _)| *k == key) {
                Some((_, values)) => values.extend([", ", value]),
                None => self.headers.push((key, value.to_owned())),
            }
        }
        self.framing = match (
            self.header("transfer-encoding"),
            self.header("content-length"),
        ) {
            _ if matches!(code, 204 | 304) => Framing::Length(0),
            (Some(coding), Some(_)) => {
                return Err(format!(
                    "both transfer-encoding {coding:?} and content-length"
                ));
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
            (Some(coding), None) => return Err(format!("transfer-encoding {coding:?}")),
            (None, Some(length)) => Framing::Length(
                length
                    .parse()
                    .map_err(|_| format!("content-length {length:?}"))?,
            ),
            (None, None) => Framing::UntilClose,
        };
        self.complete = matches!(self.framing, Framing::Length(0));
        self.status = Some(code);
        Ok(())
    }
}

/// The first chunk of `bytes` and the length that it takes with its framing, once it is whole. The last chunk has no data.
fn chunk(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let Some(end) = find(bytes, b"\r\n") else {
        return Ok(None);
    };
    let line = String::from_utf8_lossy(&bytes[..end]);
    let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
    let size = size.map_err(|_| format!("no chunk size: {line:?}"))?;
    let start = end + 2;
    let whole = start
        .checked_add(size)
        .and_then(|end| end.checked_add(2))
        .ok_or_else(|| format!("a chunk of {size} bytes"))?;
    if bytes.len() < whole {
        return Ok(None);
    }
    match &bytes[whole - 2..whole] {
        b"\r\n" => Ok(Some((&bytes[start..whole - 2], whole))),
        other => Err(format!(
            "a chunk ends with {:?}",
            String::from_utf8_lossy(other)
        )),
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, what)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Reply};

    /// The response in pieces of `size` bytes, then the close.
    fn reply(text: &str, size: usize) -> Reply {
        let mut reply = Reply::default();
        for piece in text.as_bytes().chunks(size) {
            reply.receive(piece, Duration::ZERO);
        }
        reply.close();
        reply
    }

    #[test]
    fn framing_is_read_in_pieces_of_any_size() {
        let texts = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: 1\r\na: 2\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\na: 1, 2\r\n\r\n2;x=y\r\nhe\r\n003\r\nllo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: 1, 2\r\n\r\nhello",
        ];
        for (text, size) in texts
            .into_iter()
            .flat_map(|text| (1..80).map(move |size| (text, size)))
        {
            let reply = reply(text, size);
            assert_eq!(
                (reply.status, &reply.body[..], reply.complete),
                (Some(200), &b"hello"[..], true),
                "{text} by {size}"
            );
            assert_eq!((reply.header("A"), &reply.error), (Some("1, 2"), &None));
        }
    }

    #[test]
    fn broken_framing_is_an_error() {
        let texts = [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                "closed before its end",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhello",
                "1 bytes follow",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
                "content-length \"x\"",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
                "both",
            ),
            (
                "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\nx",
                "1 bytes follow",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                "closed before its end",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nhello\r\n",
                "no chunk size",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n",
                "a chunk ends with",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n",
                "a chunk of",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
                "1 bytes follow",
            ),
            ("HTTP/1.0 200 OK\r\n\r\n", "no HTTP/1.1 status line"),
            ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "no header line"),
            ("HTTP/1.1 200 OK\r\n", "closed before its end"),
        ];
        for (text, problem) in texts {
            let error = reply(text, 1000).error.unwrap_or_default();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
