//! Servers on free loopback ports, and waiting without hanging.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use mcp_channel::{McpChannelService, RequestBody};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tower::util::BoxCloneSyncService;

/// Longer than anything here takes on the slowest machine.
const LONGEST: Duration = Duration::from_secs(20);

/// What `served` and `served_by` make.
pub(crate) type Endpoint =
    McpChannelService<BoxCloneSyncService<Request<RequestBody>, Response<Full<Bytes>>, Infallible>>;

/// Waits for what must come soon.
#[track_caller]
pub(crate) fn soon<F: IntoFuture>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    let future = tokio::time::timeout(LONGEST, future);
    async move {
        future
            .await
            .unwrap_or_else(|_| panic!("{what}: not within {LONGEST:?}, at {caller}"))
    }
}

/// A server that ends, with all its connections, when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: AbortHandle,
}

impl Server {
    pub(crate) fn new(address: SocketAddr, task: AbortHandle) -> Self {
        Self { address, task }
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> TcpStream {
        let stream = soon("a connection", TcpStream::connect(self.address)).await;
        let stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        stream
    }

    /// A connection to it that takes in little before its reader reads.
    pub(crate) async fn connect_small(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(SMALL).expect("a socket");
        let stream = soon("a connection", socket.connect(self.address)).await;
        stream.expect("a connection")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// For the buffers of sockets whose filling is what is tested, in bytes.
const SMALL: u32 = 16 * 1024;

/// A listener on a free port. Its connections send with a small buffer.
pub(crate) fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(SMALL).expect("a socket");
    socket
        .bind(([127, 0, 0, 1], 0).into())
        .expect("a free port");
    socket.listen(64).expect("a listener")
}

/// hyper's server for HTTP/1.1 and HTTP/2 on one port.
pub(crate) fn hyper_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    builder
}

/// Serves an endpoint with hyper, as its defaults are.
pub(crate) fn hyper(endpoint: Endpoint) -> Server {
    hyper_with(hyper_builder(), endpoint)
}

pub(crate) fn hyper_with(builder: Builder<TokioExecutor>, endpoint: Endpoint) -> Server {
    hyper_over(builder, endpoint, |stream| stream)
}

/// Serves an endpoint with hyper over what `wrap` makes of each connection.
pub(crate) fn hyper_over<W, I>(
    builder: Builder<TokioExecutor>,
    endpoint: Endpoint,
    wrap: W,
) -> Server
where
    W: Fn(TcpStream) -> I + Send + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let accept = async move {
        // Dropped with this task, and its connections with it.
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let io = TokioIo::new(wrap(stream));
            let service = TowerToHyperService::new(endpoint.clone());
            let builder = builder.clone();
            connections.spawn(async move {
                // An error is that of a client which is gone, as many here are.
                let _ = builder.serve_connection(io, service).await;
            });
        }
    };
    Server::new(address, tokio::spawn(accept).abort_handle())
}

/// Serves an endpoint with axum, at `/mcp`.
pub(crate) fn axum(endpoint: Endpoint) -> Server {
    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let router: axum::Router = axum::Router::new().route_service("/mcp", endpoint);
    // axum's connections are tasks of their own, and end with their clients.
    let task = tokio::spawn(async move { axum::serve(listener, router).await });
    Server::new(address, task.abort_handle())
}

/// Both servers, for what must hold behind each.
pub(crate) fn both(endpoint: Endpoint) -> [Server; 2] {
    [hyper(endpoint.clone()), axum(endpoint)]
}

/// What a handler tells its test.
#[derive(Debug)]
pub(crate) struct Told<T>(mpsc::UnboundedReceiver<T>);

impl<T> Told<T> {
    pub(crate) async fn next(&mut self, what: &str) -> T {
        soon(what, self.0.recv()).await.expect("a handler")
    }

    /// What was told so far and not read yet.
    pub(crate) fn so_far(&mut self) -> usize {
        std::iter::from_fn(|| self.0.try_recv().ok()).count()
    }
}

/// For a handler to tell its test something.
pub(crate) fn telling<T>() -> (mpsc::UnboundedSender<T>, Told<T>) {
    let (tell, told) = mpsc::unbounded_channel();
    (tell, Told(told))
}

/// Tells when it is dropped: what a handler has for as long as it lives.
#[derive(Debug)]
pub(crate) struct Alive(pub(crate) mpsc::UnboundedSender<()>);

impl Drop for Alive {
    fn drop(&mut self) {
        // A test that is over does not listen.
        let _ = self.0.send(());
    }
}
