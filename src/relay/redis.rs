//! [`RedisRelay`]: the relay over Redis.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::{AsyncConnectionConfig, Client, cmd};
use tokio::time::{Instant, timeout, timeout_at};

use super::backoff::Backoff;
use super::outbox::{Batch, Outbox};
use crate::subscriptions::Subscriptions;

/// How long Redis may take for an answer, and for a connection.
const ANSWER: Duration = Duration::from_secs(5);

/// Carries changes between the nodes of a server with Redis's publish and subscribe. Valkey and
/// other servers with the same commands work, too.
///
/// It has two connections, one to publish and one to listen. When either is lost, both are made
/// again, after a wait that grows from 50 milliseconds to 5 seconds; changes of this node are kept
/// until then. Whenever it has subscribed again, every subscriber of this node is notified of
/// everything that it subscribed to, since something may have been missed. A node also sends a
/// heartbeat through the channel. A connection on which it does not receive its own heartbeat
/// counts as lost.
///
/// Needs the feature `redis`. For `rediss://` URLs, turn on a TLS feature of the crate `redis` in
/// your own `Cargo.toml`, `tokio-rustls-comp` for instance.
///
/// ```no_run
/// use mcp_channel::relay::RedisRelay;
/// use mcp_channel::subscriptions::Subscriptions;
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let relay = RedisRelay::new("redis://127.0.0.1/")?.channel("my-server:mcp:changes");
/// let subscriptions = Subscriptions::builder().relay(relay.outbox()).build();
/// tokio::spawn(relay.run(subscriptions.clone()));
/// # Ok(())
/// # }
/// ```
#[must_use = "changes are carried while `run` is polled"]
pub struct RedisRelay {
    client: Client,
    channel: String,
    heartbeat: Duration,
    outbox: Outbox,
}

/// Why a relay could not be made, or lost its connection.
#[derive(Debug)]
pub struct RelayError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Url(redis::RedisError),
    Redis(redis::RedisError),
    Ended,
    Silent,
    Slow,
}

impl RedisRelay {
    /// A relay over the Redis at `url`, `redis://user:password@host:6379/` for instance. Does not
    /// connect yet.
    ///
    /// # Errors
    ///
    /// The URL is malformed, or needs something that the crate `redis` was built without. The
    /// message does not repeat the URL, which may contain a password.
    pub fn new(url: &str) -> Result<Self, RelayError> {
        let client = Client::open(url).map_err(|error| RelayError {
            kind: Kind::Url(error),
        })?;
        Ok(Self {
            client,
            channel: "mcp:changes".to_owned(),
            heartbeat: Duration::from_secs(5),
            outbox: Outbox::new(),
        })
    }

    /// The name of the channel in Redis. All nodes of a server use the same name, and no other
    /// server does. Channels do not belong to a database, so servers that share a Redis need
    /// different names. Default: `mcp:changes`.
    pub fn channel(mut self, name: impl Into<String>) -> Self {
        self.channel = name.into();
        self
    }

    /// How often to send a heartbeat while there is nothing else to send. When none comes back for
    /// three intervals, the connection counts as lost. At least 10 milliseconds and at most an
    /// hour. Default: 5 seconds.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.clamp(Duration::from_millis(10), Duration::from_secs(3600));
        self
    }

    /// Takes the changes of this node, for [`Builder::relay`](crate::subscriptions::Builder::relay).
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Connects, and carries changes in both directions until it is dropped. Spawn it, and give it
    /// the subscriptions that were built with its [`outbox`](Self::outbox).
    ///
    /// Must be polled in a tokio runtime with its timer and its network enabled. The client library
    /// drives each connection in a task of that runtime, which ends with the connection.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, its connections are closed, and changes that were not sent wait in the
    /// outbox.
    pub async fn run(self, subscriptions: Subscriptions) -> Infallible {
        let mut backoff = Backoff::new();
        loop {
            let begun = Instant::now();
            let Err(error) = self.session(&subscriptions).await;
            backoff.lasted(begun.elapsed());
            let wait = backoff.next();
            let milliseconds = wait.as_millis();
            crate::trace::error!(%error, milliseconds, "no relay over Redis: connecting again after a wait");
            tokio::time::sleep(wait).await;
        }
    }

    /// One pair of connections, until either is lost.
    async fn session(&self, subscriptions: &Subscriptions) -> Result<Infallible, RelayError> {
        let listening = in_time(async {
            let mut listening = self.client.get_async_pubsub().await?;
            listening.subscribe(&self.channel).await?;
            Ok(listening.into_on_message())
        })
        .await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER))
            .set_response_timeout(Some(ANSWER));
        let connect = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let publishing = in_time(connect).await?;

        // It is subscribed by now: what was missed until here is made up for, and what comes from
        // here on is received.
        subscriptions.deliver_all();
        crate::trace::debug!("connected to the relay's Redis");
        let publish = pin!(self.publish(publishing));
        let listen = pin!(self.listen(listening, subscriptions));
        match select(publish, listen).await {
            Either::Left((lost, _)) | Either::Right((lost, _)) => lost,
        }
    }

    /// Sends the changes of this node, or a heartbeat.
    async fn publish(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<Infallible, RelayError> {
        // The first heartbeat shows whether messages get through at all.
        let mut next = None;
        loop {
            let heartbeat = self.outbox.heartbeat();
            let message = next.as_ref().map_or(&*heartbeat, Batch::as_str);
            let mut publish = cmd("PUBLISH");
            publish.arg(&self.channel).arg(message);
            in_time(publish.query_async::<()>(&mut connection)).await?;
            if let Some(batch) = next {
                batch.sent();
            }
            next = timeout(self.heartbeat, self.outbox.next()).await.ok();
        }
    }

    /// Delivers the changes of the other nodes, as long as this node receives its own messages.
    async fn listen(
        &self,
        mut messages: PubSubStream,
        subscriptions: &Subscriptions,
    ) -> Result<Infallible, RelayError> {
        let patience = self.heartbeat * 3;
        let mut deadline = Instant::now() + patience;
        loop {
            let message = match timeout_at(deadline, messages.next()).await {
                Ok(Some(message)) => message,
                Ok(None) => return Err(Kind::Ended.into()),
                Err(_) => return Err(Kind::Silent.into()),
            };
            if self
                .outbox
                .receive(message.get_payload_bytes(), subscriptions)
            {
                deadline = Instant::now() + patience;
            }
        }
    }
}

/// Waits for Redis's answer, for [`ANSWER`] at most.
async fn in_time<T>(answer: impl Future<Output = redis::RedisResult<T>>) -> Result<T, RelayError> {
    match timeout(ANSWER, answer).await {
        Ok(answer) => answer.map_err(|error| Kind::Redis(error).into()),
        Err(_) => Err(Kind::Slow.into()),
    }
}

impl From<Kind> for RelayError {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Url(_) => f.write_str(
                "the URL of the relay's Redis cannot be used: it has the form redis://[user:password@]host[:port][/database]",
            ),
            Kind::Redis(error) => write!(f, "the relay's Redis answered with an error: {error}"),
            Kind::Ended => f.write_str("the relay's Redis closed the connection"),
            Kind::Silent => f.write_str("the node does not hear its own heartbeat through Redis"),
            Kind::Slow => f.write_str("the relay's Redis did not answer in time"),
        }
    }
}

impl std::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Url(error) | Kind::Redis(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Debug for RedisRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its URL may contain a password.
        f.debug_struct("RedisRelay")
            .field("channel", &self.channel)
            .field("heartbeat", &self.heartbeat)
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_is_told_without_its_password() {
        for url in [
            "",
            "http://u:secret@h/",
            "redis://u:secret@h:port/",
            "rediss://u:secret@h/",
        ] {
            let Err(error) = RedisRelay::new(url) else {
                // TLS may be in the build.
                assert!(url.starts_with("rediss"), "{url}");
                continue;
            };
            let said = format!("{error} {error:?}");
            assert!(error.to_string().contains("redis://"), "{error}");
            assert!(!said.contains("secret"), "{said}");
        }
        let relay = RedisRelay::new("redis://u:secret@h/").unwrap();
        assert!(!format!("{relay:?}").contains("secret"));
    }
}
