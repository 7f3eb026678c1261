//! One request and its response over a plain socket of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::case::{Exchange, Stop};
use crate::request;
use crate::response::{Reply, TIMEOUT};
use crate::server::Target;

/// How long connecting and each write may take.
const STALL: Duration = Duration::from_secs(5);
/// How often a quiet exchange looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// How long bytes that have no business there may take to follow the response.
const SURPLUS: Duration = Duration::from_millis(30);

/// An exchange whose request is sent.
pub(crate) struct Running {
    socket: TcpStream,
    started: Instant,
    timeout: Duration,
    stop: Stop,
    keep_alive: bool,
    reply: Reply,
}

impl Running {
    /// Connects and sends the whole request.
    ///
    /// # Errors
    ///
    /// No connection. That the server stops reading before the end is no error: it may have answered already.
    pub(crate) fn start(target: &Target, exchange: &Exchange) -> io::Result<Self> {
        let started = Instant::now();
        let mut socket = TcpStream::connect_timeout(&target.address, STALL)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(STALL))?;
        let mut reply = Reply::default();
        if let Err(error) = socket.write_all(&request::bytes(&exchange.request, target)) {
            reply.error = unread(&error);
        }
        let request = &exchange.request;
        Ok(Self {
            socket,
            started,
            timeout: exchange.timeout,
            stop: request.stop,
            keep_alive: request.keep_alive,
            reply,
        })
    }

    /// Reads until the response is whole, the client's own end, or the time-out; then closes the connection.
    pub(crate) fn finish(mut self) -> Reply {
        let ended = self.read();
        self.reply.elapsed = self.started.elapsed();
        if let Err(error) = ended {
            self.reply.error.get_or_insert(error.to_string());
        }
        if self.reply.complete && !self.keep_alive && self.reply.error.is_none() {
            self.look_for_surplus();
        }
        self.reply
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if self.reply.complete || self.stopped() {
                return Ok(());
            }
            let Some(left) = self
                .timeout
                .checked_sub(self.started.elapsed())
                .filter(|left| !left.is_zero())
            else {
                return Err(io::Error::other(TIMEOUT));
            };
            self.socket.set_read_timeout(Some(left.min(TICK)))?;
            match self.socket.read(&mut buffer) {
                Ok(0) => {
                    self.reply.close();
                    return Ok(());
                }
                Ok(n) => {
                    let broken = self.reply.error.is_some();
                    self.reply.receive(&buffer[..n], self.started.elapsed());
                    if !broken && self.reply.error.is_some() {
                        return Ok(());
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the case has the client go away now. It never does before the head is there.
    fn stopped(&self) -> bool {
        let (stop, stream) = (&self.stop, &self.reply.stream);
        self.reply.status.is_some()
            && (stop.after_events.is_some_and(|n| stream.events.len() >= n)
                || stop.after_comments.is_some_and(|n| stream.comments >= n)
                || stop
                    .after_ms
                    .is_some_and(|ms| self.started.elapsed() >= Duration::from_millis(ms)))
    }

    fn look_for_surplus(&mut self) {
        let mut byte = [0];
        let read = self
            .socket
            .set_read_timeout(Some(SURPLUS))
            .and_then(|()| self.socket.read(&mut byte));
        if let Ok(1..) = read {
            self.reply.error = Some("bytes follow the end of the response".into());
        }
    }
}

/// Why the request was not sent to its end, unless it is because the server has answered.
fn unread(error: &io::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => None,
        _ => Some(format!("the server does not read the request: {error}")),
    }
}
