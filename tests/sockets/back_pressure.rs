//! A client that reads slowly slows the handler down; one that does not read stops it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_channel::{Channel, Deferred, Reply};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use crate::client::{Client, Raw};
use crate::net::{
    Alive, Endpoint, Server, both, hyper_builder, hyper_over, hyper_with, listen, soon, telling,
};
use crate::support::request::{Call, served};
use crate::write_timeout::{Listener, WriteTimeout};

/// How many messages a flood has, each of [`PAD`] bytes and a few more: much more than all buffers
/// between a handler and a client take.
pub(crate) const FLOOD: usize = 400;
const PAD: usize = 4000;

/// Sends as fast as the client takes it, and counts.
pub(crate) async fn flood(channel: Channel, sent: Arc<AtomicUsize>) -> Reply {
    let pad = "x".repeat(PAD);
    for n in 0..FLOOD {
        let notification = json!({"method": "notifications/flood", "params": {"n": n, "pad": pad}});
        channel
            .send_notification(notification)
            .await
            .expect("a client");
        sent.fetch_add(1, Ordering::SeqCst);
    }
    Reply::result(json!({"content": []}))
}

/// Waits until a count stays as it is, and gives it.
pub(crate) async fn settled(count: &AtomicUsize) -> usize {
    let settle = async {
        let mut last = usize::MAX;
        let mut same = 0;
        while same < 10 {
            // There is no event to wait for: that nothing comes is what is looked for.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = count.load(Ordering::SeqCst);
            same = if now == last && now > 0 { same + 1 } else { 0 };
            last = now;
        }
        last
    };
    soon("the handler's stop", settle).await
}

fn flooding() -> (Endpoint, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let handlers = Arc::clone(&sent);
    let endpoint = served(move |channel, _| flood(channel, Arc::clone(&handlers)));
    (endpoint, sent)
}

/// And all that it cost meanwhile is what fits into the buffers between.
#[tokio::test]
async fn a_client_that_stops_reading_stops_the_handler_which_goes_on_when_the_client_does() {
    let (endpoint, sent) = flooding();
    for server in both(endpoint) {
        for version in ["HTTP/1.1", "HTTP/2"] {
            sent.store(0, Ordering::SeqCst);
            let stream = server.connect_small().await;
            let mut client = match version {
                "HTTP/1.1" => Client::http1(stream).await,
                _ => Client::http2(stream).await,
            };
            let mut messages = client.stream(&Call::tool("x")).await;
            let stopped = settled(&sent).await;
            let bytes = stopped * PAD;
            assert!(bytes < 512 * 1024, "{version}: {bytes} bytes wait unread");

            for n in 0..FLOOD {
                let message = messages.next().await.expect("a frame");
                assert_eq!(message["params"]["n"], n, "{version}");
            }
            assert!(messages.next().await.expect("a result")["result"].is_object());
            assert_eq!(messages.next().await, None);
            assert_eq!(sent.load(Ordering::SeqCst), FLOOD);
        }
    }
}

/// A task is not driven by the client, so it is told that there is no room, and may do something
/// about it. This bounds a stream of HTTP/2 that is not read, on a connection that is.
#[tokio::test]
async fn a_task_can_give_up_on_a_client_that_does_not_read() {
    let (tell, mut told) = telling();
    let endpoint = served(move |channel: Channel, _| {
        let tell = tell.clone();
        async move {
            tokio::spawn(async move {
                let note = json!({"method": "notifications/x", "params": {"pad": "x".repeat(PAD)}});
                let patience = Duration::from_millis(200);
                let mut bytes = 0;
                while let Ok(sent) = timeout(patience, channel.send_notification(&note)).await {
                    sent.expect("a client");
                    bytes += PAD;
                    assert!(bytes < 1024 * 1024, "{bytes} bytes wait unread");
                }
                let full = channel.try_send_notification(&note).expect_err("no room");
                channel.close().expect("an open channel");
                tell.send(full.is_full()).expect("a test");
            });
            Deferred
        }
    });
    for server in both(endpoint) {
        for version in ["HTTP/1.1", "HTTP/2"] {
            let stream = server.connect_small().await;
            let mut client = match version {
                "HTTP/1.1" => Client::http1(stream).await,
                _ => Client::http2(stream).await,
            };
            let mut messages = client.stream(&Call::tool("x")).await;
            assert!(told.next("the end of its patience").await);
            // What was sent before is there, and then the stream ends.
            assert!(!messages.rest().await.is_empty());
        }
    }
}

// The stalled client

/// The recipe for servers of one's own, and that for `axum::serve`.
#[tokio::test]
async fn a_write_time_out_on_the_connection_bounds_a_client_that_does_not_read() {
    let (tell, mut gone) = telling();
    let endpoint = served(move |channel, _| {
        let alive = Alive(tell.clone());
        async move {
            let reply = flood(channel, Arc::default()).await;
            drop(alive);
            reply
        }
    });
    let limit = Duration::from_millis(300);
    let hyper = hyper_over(hyper_builder(), endpoint.clone(), move |stream| {
        WriteTimeout::new(stream, limit)
    });
    let listener = Listener {
        listener: listen(),
        limit,
    };
    let address = listener.listener.local_addr().expect("an address");
    let router: axum::Router = axum::Router::new().route_service("/mcp", endpoint);
    let axum = tokio::spawn(async move { axum::serve(listener, router).await });
    for server in [hyper, Server::new(address, axum.abort_handle())] {
        let mut client = Raw::new(server.connect_small().await);
        client.send(&Call::tool("x")).await;
        assert!(client.head().await.is_stream());
        gone.next("the handler's end").await;

        // A client that reads, if slowly, is served to its end.
        let mut client = Raw::new(server.connect_small().await);
        client.send(&Call::tool("x")).await;
        assert!(client.head().await.is_stream());
        let mut pieces = 0;
        while client.chunk().await.is_some() {
            pieces += 1;
            if pieces % 100 == 0 {
                // A third of what would be too long.
                tokio::time::sleep(limit / 3).await;
            }
        }
        gone.next("the handler's end").await;
    }
}

/// On HTTP/2 the window of a stream may be used up before the socket's buffers are, so that no
/// write waits. A connection whose client has stopped to read answers no pings, though.
#[tokio::test]
async fn pings_find_a_client_of_http2_that_does_not_read_at_all() {
    let (tell, mut gone) = telling();
    let endpoint = served(move |channel, _| {
        let alive = Alive(tell.clone());
        async move {
            let reply = flood(channel, Arc::default()).await;
            drop(alive);
            reply
        }
    });
    let mut builder = hyper_builder();
    builder
        .http2()
        .keep_alive_interval(Duration::from_millis(100))
        .keep_alive_timeout(Duration::from_millis(300));
    let server = hyper_with(builder, endpoint);
    let shut = Arc::new(AtomicBool::new(false));
    let gate = Gate {
        stream: server.connect().await,
        shut: Arc::clone(&shut),
    };
    let mut client = Client::http2(gate).await;
    let messages = client.stream(&Call::tool("x")).await;
    shut.store(true, Ordering::SeqCst);
    gone.next("the handler's end").await;
    drop(messages);
}

/// A stream from which nothing can be read once it is shut.
struct Gate<S> {
    stream: S,
    shut: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.shut.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The wrapper itself: a write that waits fails in time, one that goes on does not.
#[tokio::test(start_paused = true)]
async fn a_write_that_makes_no_progress_fails_after_the_limit() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (near, mut far) = tokio::io::duplex(10);
    let mut near = WriteTimeout::new(near, Duration::from_secs(5));
    near.write_all(&[0; 10]).await.expect("room");
    for _ in 0..3 {
        // Four seconds without room, again and again.
        let mut write = Box::pin(near.write_all(&[0; 10]));
        let polled = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        tokio::time::advance(Duration::from_secs(4)).await;
        far.read_exact(&mut [0; 10]).await.expect("bytes");
        write.await.expect("room");
    }
    let start = tokio::time::Instant::now();
    let error = near.write_all(&[0; 10]).await.expect_err("no room");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}
