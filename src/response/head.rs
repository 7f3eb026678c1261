//! Writes the heads of the responses that the layer makes.

use bytes::{Bytes, BytesMut};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderName, LAST_MODIFIED, TRAILER, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::body::ResponseBody;
use super::streaming::Stream;
use crate::handler::reply::NO_LAYER_HEADER;
use crate::protocol::reply::rejection::Rejection;
use crate::protocol::reply::sse;
use crate::protocol::request::accept::Accepts;

/// Headers that describe a body, and so do not fit another one.
const OF_A_BODY: [HeaderName; 9] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    ETAG,
    LAST_MODIFIED,
    TRAILER,
    TRANSFER_ENCODING,
    NO_LAYER_HEADER,
];

/// A single JSON reply.
///
/// Its length is known, so the server writes a `Content-Length`.
pub(crate) fn single<F, B>(
    status: StatusCode,
    mut headers: HeaderMap,
    json: Bytes,
) -> Response<ResponseBody<F, B>> {
    if !headers.is_empty() {
        for name in OF_A_BODY {
            headers.remove(name);
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    with(status, headers, ResponseBody::full(json))
}

/// An event stream. Proxies are told not to hold it back.
pub(crate) fn stream<F, B>(stream: Stream<F, B>) -> Response<ResponseBody<F, B>> {
    with(
        StatusCode::OK,
        stream_headers(),
        ResponseBody::stream(stream),
    )
}

fn stream_headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    headers
}

/// A reply of the layer's own, in a form that the client takes.
pub(crate) fn answered<F, B>(
    status: StatusCode,
    json: Bytes,
    accepts: Accepts,
) -> Response<ResponseBody<F, B>> {
    if accepts == Accepts::StreamOnly && status == StatusCode::OK {
        let mut event = BytesMut::new();
        sse::append_event(&mut event, &json);
        return with(status, stream_headers(), ResponseBody::full(event.freeze()));
    }
    single(status, HeaderMap::new(), json)
}

/// The answer to a notification.
pub(crate) fn accepted<F, B>() -> Response<ResponseBody<F, B>> {
    with(
        StatusCode::ACCEPTED,
        HeaderMap::new(),
        ResponseBody::default(),
    )
}

/// The answer to a request that reached no handler.
pub(crate) fn rejected<F, B>(rejection: &Rejection) -> Response<ResponseBody<F, B>> {
    crate::trace::debug!(
        reason = rejection.reason(),
        error = rejection.error().message(),
        "rejected a request"
    );
    let mut headers = HeaderMap::new();
    if rejection.allow_post() {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    single(rejection.status(), headers, rejection.to_json())
}

fn with<T>(status: StatusCode, headers: HeaderMap, body: T) -> Response<T> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
