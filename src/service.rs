//! [`McpChannelService`]: judges the head of each request, and answers it with a response future.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::config::Config;
use crate::error::BoxError;
use crate::handler::request_body::RequestBody;
use crate::protocol::request::admission::check_head;
use crate::response::body::ResponseBody;
use crate::response::future::ResponseFuture;

/// A service that answers as a Model Context Protocol endpoint, with an inner service as handler.
///
/// Made by an [`McpChannelLayer`](crate::McpChannelLayer). The inner service that was made ready
/// with [`poll_ready`](Service::poll_ready) is the one that is called; it is kept, with whatever
/// permit it holds, while the request's body is read.
///
/// The inner service gets a `Request<`[`RequestBody`]`>`, with the [`Channel`](crate::Channel) and
/// the [`Message`](crate::Message) among its extensions, once for each request that was not
/// rejected. It may return a response with any body, or a [`Reply`](crate::Reply),
/// [`Deferred`](crate::Deferred) or [`RpcError`](crate::RpcError) converted into one.
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use mcp_channel::{McpChannelService, Message, RequestBody, RpcError};
///
/// async fn handler(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, http::Error> {
///     let message: &Message = request.extensions().get().expect("the layer is there");
///     Ok(RpcError::method_not_found(message.method()).into())
/// }
///
/// let service = McpChannelService::new(tower::service_fn(handler));
/// ```
#[derive(Clone, Debug)]
pub struct McpChannelService<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> McpChannelService<S> {
    /// Wraps `inner` with the default options.
    pub fn new(inner: S) -> Self {
        Self::with_config(inner, Arc::default())
    }

    pub(crate) fn with_config(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, unwrapped.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, ResB> Service<Request<B>> for McpChannelService<S>
where
    S: Service<Request<RequestBody>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
    ResB: Body,
    ResB::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<S::Future, ResB>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let policy = &self.config.policy;
        match check_head(request.method(), request.uri(), request.headers(), policy) {
            Ok(accepts) => {
                let clone = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, clone);
                ResponseFuture::new(ready, request, accepts, Arc::clone(&self.config))
            }
            Err(rejection) => ResponseFuture::rejected(rejection),
        }
    }
}
