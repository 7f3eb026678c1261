//! A `redis-server` of our own, on a free port of this machine.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct RedisServer {
    port: u16,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts one on a free port, and waits until it listens.
    pub(crate) async fn start() -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut server = Self {
            port,
            process: None,
        };
        server.restart().await?;
        Ok(server)
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills it, without a chance to say good-bye.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Starts it on the port that it had, and waits until it listens.
    pub(crate) async fn restart(&mut self) -> io::Result<()> {
        self.kill()?;
        let port = self.port.to_string();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                let advice = "cannot start redis-server: install it, with \
                              `apt-get install redis-server` for instance";
                io::Error::new(error.kind(), format!("{advice}: {error}"))
            })?;
        let process = self.process.insert(process);
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .await
            .is_err()
        {
            if let Some(status) = process.try_wait()? {
                return Err(io::Error::other(format!(
                    "redis-server ended at once: {status}"
                )));
            }
            if Instant::now() > deadline {
                return Err(io::Error::other("redis-server does not listen"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The number of its process.
    #[must_use]
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.kill();
    }
}
