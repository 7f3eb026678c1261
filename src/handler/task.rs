//! A layer that runs its handler in a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::JoinHandle;
use tower_layer::Layer;
use tower_service::Service;

/// Runs each call of the inner service in a tokio task of its own.
///
/// Put it *inside* an [`McpChannelLayer`](crate::McpChannelLayer). Without it, a handler is polled
/// by its response, and so everything in it stops, its timers too, while its client does not read.
/// In a task it goes on, and only its sends wait for room. It costs a task for each request.
///
/// When the response is dropped, because the client went away, the task is aborted at its next
/// await. With [`detached`](Self::detached) it runs to its end.
///
/// # Panics
///
/// The service panics when it is called outside of a tokio runtime, and its future when the runtime
/// ends before the handler. A panic of the handler continues where the response is polled, so the
/// layer outside answers it like any other.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::post};
/// use mcp_channel::{Channel, McpChannelLayer, Reply, TaskLayer};
/// use tower::ServiceBuilder;
///
/// async fn handler(channel: Channel) -> Reply {
///     // Runs to its end, whether or not anybody reads this.
///     let _ = channel.try_send_progress(1);
///     Reply::result(serde_json::json!({"content": []}))
/// }
///
/// let layers = ServiceBuilder::new()
///     .layer(McpChannelLayer::new())
///     .layer(TaskLayer::new().detached());
/// let app: Router = Router::new().route("/mcp", post(handler).layer(layers));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct TaskLayer {
    detached: bool,
}

impl TaskLayer {
    /// Aborts the task when the response is dropped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the task run to its end when the response is dropped. Its channel is closed then.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }
}

impl<S> Layer<S> for TaskLayer {
    type Service = TaskService<S>;

    fn layer(&self, inner: S) -> TaskService<S> {
        TaskService {
            inner,
            detached: self.detached,
        }
    }
}

/// The service that a [`TaskLayer`] makes.
#[derive(Clone, Debug)]
pub struct TaskService<S> {
    inner: S,
    detached: bool,
}

impl<S, R> Service<R> for TaskService<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = TaskFuture<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        TaskFuture {
            task: tokio::spawn(self.inner.call(request)),
            detached: self.detached,
        }
    }
}

/// The response of a [`TaskService`], to come.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TaskFuture<T, E> {
    task: JoinHandle<Result<T, E>>,
    detached: bool,
}

impl<T, E> Future for TaskFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(Pin::new(&mut self.task).poll(cx)) {
            Ok(output) => Poll::Ready(output),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Nobody else has the handle to abort it.
                Err(_) => panic!("the runtime ended before the handler did"),
            },
        }
    }
}

impl<T, E> Drop for TaskFuture<T, E> {
    fn drop(&mut self) {
        if !self.detached {
            self.task.abort();
        }
    }
}
