//! A lean HTTP/1.1 client: one connection, one exchange at a time, a body that is handed on as it comes. It knows just
//! enough of the protocol to follow the servers measured here, so that it is never what limits them.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection to a server on this machine.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub content_type: String,
    framing: Framing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
}

impl Connection {
    pub async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::new() })
    }

    /// Sends a whole request.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Reads the response's head.
    pub async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                let head = Head::parse(&self.buffer[..end + 2])?;
                self.buffer.advance(end + 4);
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// Reads the body up to its end and hands it on piece by piece.
    pub async fn body(&mut self, head: &Head, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
        let mut decoder = Decoder::new(head.framing);
        while !decoder.decode(&mut self.buffer, &mut sink)? {
            self.fill().await?;
        }
        Ok(())
    }

    /// Reads a stream's body until its first event is whole, and leaves the rest.
    pub async fn first_event(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::new(head.framing);
        let mut event = Vec::new();
        loop {
            let ended = decoder.decode(&mut self.buffer, &mut |piece: &[u8]| event.extend_from_slice(piece))?;
            if memchr::memmem::find(&event, b"\n\n").is_some() {
                return Ok(event);
            }
            if ended {
                return Err(invalid(format!("the stream ended without an event: {:?}", String::from_utf8_lossy(&event))));
            }
            self.fill().await?;
        }
    }

    /// One exchange, with the whole body.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<(Head, Vec<u8>)> {
        self.send(request).await?;
        let head = self.head().await?;
        let mut body = Vec::new();
        self.body(&head, |piece| body.extend_from_slice(piece)).await?;
        Ok((head, body))
    }

    /// Gives the read buffer back; what it holds is lost.
    pub fn release(&mut self) {
        self.buffer = BytesMut::new();
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(64 * 1024);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server hung up in the middle of a response")),
            _ => Ok(()),
        }
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Head {
    /// `head` ends with the last field's line end.
    fn parse(head: &[u8]) -> io::Result<Self> {
        let bad = || invalid(format!("not a response that this client can read: {:?}", String::from_utf8_lossy(head)));
        let text = std::str::from_utf8(head).map_err(|_| bad())?;
        let mut lines = text.split_terminator("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|line| line.get(..3)).ok_or_else(bad)?;
        let status = status.parse().map_err(|_| bad())?;
        let (mut content_type, mut framing) = ("", None);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(bad)?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-type") {
                content_type = value;
            } else if name.eq_ignore_ascii_case("content-length") {
                framing = Some(Framing::Length(value.parse().map_err(|_| bad())?));
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
                framing = Some(Framing::Chunked);
            }
        }
        Ok(Self { status, content_type: content_type.to_owned(), framing: framing.ok_or_else(bad)? })
    }
}

/// Takes a body out of the bytes of a connection.
#[derive(Debug)]
struct Decoder {
    state: State,
}

#[derive(Debug)]
enum State {
    /// So much of a body with a length is missing.
    Length(u64),
    /// A chunk's size comes next.
    Size,
    /// So much of a chunk is missing.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// The empty line after the last chunk; no server here sends trailers.
    LastEnd,
    Done,
}

impl Decoder {
    fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size,
        };
        Self { state }
    }

    /// Takes what it can, and tells whether the body has ended. What is left in the buffer belongs to what follows.
    fn decode(&mut self, buffer: &mut BytesMut, sink: &mut impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            self.state = match self.state {
                State::Done => return Ok(true),
                State::Length(left) | State::Chunk(left) => {
                    if buffer.is_empty() {
                        return Ok(false);
                    }
                    let here = left.min(buffer.len() as u64);
                    sink(&buffer[..here as usize]);
                    buffer.advance(here as usize);
                    match (&self.state, left - here) {
                        (State::Length(_), 0) => State::Done,
                        (State::Length(_), left) => State::Length(left),
                        (_, 0) => State::ChunkEnd,
                        (_, left) => State::Chunk(left),
                    }
                }
                State::Size => {
                    let Some(end) = memchr::memchr(b'\n', buffer) else {
                        return Ok(false);
                    };
                    let line = std::str::from_utf8(&buffer[..end]).unwrap_or("").trim_end();
                    let size = u64::from_str_radix(line, 16).map_err(|_| invalid(format!("{line:?} is no chunk size")))?;
                    buffer.advance(end + 1);
                    if size == 0 { State::LastEnd } else { State::Chunk(size) }
                }
                State::ChunkEnd | State::LastEnd => {
                    if buffer.len() < 2 {
                        return Ok(false);
                    }
                    if &buffer[..2] != b"\r\n" {
                        return Err(invalid("a chunk does not end where its size says".to_owned()));
                    }
                    buffer.advance(2);
                    if matches!(self.state, State::ChunkEnd) { State::Size } else { State::Done }
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"5\r\nhello\r\nC\r\n, wide world\r\n0\r\n\r\n";

    /// Feeds the input in two pieces and then byte by byte; returns the body and what was left over.
    fn decode(framing: Framing, pieces: &[&[u8]]) -> (Vec<u8>, bool, Vec<u8>) {
        let (mut decoder, mut buffer, mut body, mut ended) = (Decoder::new(framing), BytesMut::new(), Vec::new(), false);
        for piece in pieces {
            buffer.extend_from_slice(piece);
            ended = decoder.decode(&mut buffer, &mut |piece: &[u8]| body.extend_from_slice(piece)).expect("a right body");
        }
        (body, ended, buffer.to_vec())
    }

    #[test]
    fn a_chunked_body_may_be_cut_anywhere() {
        for cut in 0..=CHUNKED.len() {
            let (body, ended, left) = decode(Framing::Chunked, &[&CHUNKED[..cut], &CHUNKED[cut..]]);
            assert_eq!((body.as_slice(), ended, left.len()), (b"hello, wide world".as_slice(), true, 0), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = CHUNKED.chunks(1).collect();
        assert_eq!(decode(Framing::Chunked, &bytes).0, b"hello, wide world");
    }

    #[test]
    fn what_follows_a_body_is_left() {
        assert_eq!(decode(Framing::Length(3), &[b"abcHTTP"]), (b"abc".to_vec(), true, b"HTTP".to_vec()));
        assert!(!decode(Framing::Length(3), &[b"ab"]).1);
        assert_eq!(decode(Framing::Length(0), &[b"HTTP"]).2, b"HTTP");
    }

    #[test]
    fn a_wrong_chunk_is_an_error() {
        for wrong in [b"x\r\n".as_slice(), b"1\r\nab\r\n"] {
            let mut buffer = BytesMut::from(wrong);
            assert!(Decoder::new(Framing::Chunked).decode(&mut buffer, &mut |_: &[u8]| ()).is_err());
        }
    }

    #[test]
    fn a_head_tells_status_type_and_framing() {
        let head = Head::parse(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n").expect("a head");
        assert_eq!(head, Head { status: 200, content_type: "text/event-stream".to_owned(), framing: Framing::Chunked });
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\n").is_err(), "a body that only the end of the connection ends");
        assert!(Head::parse(b"SSH-2.0\r\n").is_err());
    }
}
