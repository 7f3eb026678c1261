//! Server-sent events, read as their bytes come and marked with the time at which they became whole.

use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct EventReader {
    pub(crate) events: Vec<Event>,
    pub(crate) comments: usize,

    line: Vec<u8>,
    data: Option<String>,
    after_cr: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) data: String,
    /// From the start of the exchange.
    pub(crate) at: Duration,
}

impl EventReader {
    pub(crate) fn receive(&mut self, mut bytes: &[u8], now: Duration) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                return;
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.line(&String::from_utf8_lossy(&line), now);
        }
    }

    /// Whether the last event is not closed by a blank line; readers drop such a one.
    pub(crate) fn is_within_event(&self) -> bool {
        self.data.is_some() || !self.line.is_empty()
    }

    fn line(&mut self, line: &str, now: Duration) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        match field {
            "" if line.is_empty() => self
                .events
                .extend(self.data.take().map(|data| Event { data, at: now })),
            "" => self.comments += 1,
            "data" => {
                let value = value.strip_prefix(' ').unwrap_or(value);
                match &mut self.data {
                    Some(data) => data.extend(["\n", value]),
                    None => self.data = Some(value.to_owned()),
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, EventReader};

    #[test]
    fn events_are_read_in_pieces_of_any_size_and_with_any_line_end() {
        let text = "event: message\ndata: é1\n\n:\n\n: quiet\n\ndata:2\ndata: 3\nid: 4\n\nevent: none\n\ndata\n\ndata: cut";
        for end in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', end);
            for size in 1..text.len() {
                let mut reader = EventReader::default();
                for piece in text.as_bytes().chunks(size) {
                    reader.receive(piece, Duration::ZERO);
                }
                let data: Vec<_> = reader
                    .events
                    .iter()
                    .map(|event| event.data.as_str())
                    .collect();
                assert_eq!(
                    (data, reader.comments),
                    (vec!["é1", "2\n3", ""], 2),
                    "{end:?} by {size}"
                );
            }
        }
    }
}
