//! The socket server that every service is put in: hyper's HTTP/1.1 connection, one thread, nothing else.

use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tower::{BoxError, Service, ServiceExt};

use crate::{Context, RequestBody};

/// Serves until standard input ends, that is, until the driver goes away.
pub(crate) fn serve<S, B>(make: impl FnOnce(Arc<Context>) -> S, core: Option<usize>) -> Result<(), BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if let Some(core) = core {
        pin_to(core)?;
    }
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    raise_file_limit()?;
    crate::runtime()?.block_on(async {
        let service = make(Arc::new(Context::new(true)));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        std::io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service.clone();
            let service = service_fn(move |request: Request<Incoming>| service.clone().oneshot(request.map(RequestBody::Incoming)));
            tokio::spawn(async move {
                // A client that hangs up is part of the measurements.
                let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// Keeps this thread, and what it will start, on one core.
pub fn pin_to(core: usize) -> Result<(), BoxError> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| format!("cannot run on core {core}: {error}").into())
}

/// Lets this process open as many files as it may, and returns how many.
pub fn raise_file_limit() -> Result<u64, BoxError> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current.unwrap_or(u64::MAX))
}
