//! A response of the handler's own, for a client of an earlier revision: read to its end, and put
//! into that client's form.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Response};
use http_body::Body;
use pin_project::pin_project;

use super::last_event::poll_read;
use crate::channel::Outlet;
use crate::error::BoxError;
use crate::protocol::reply::legacy::Form;

/// Yields what the inner body was, as one piece.
#[pin_project]
pub(crate) struct Translated<B> {
    #[pin]
    body: B,
    outlet: Outlet,
    read: Vec<u8>,
    limit: u64,
    done: bool,
}

impl<B> Translated<B> {
    /// Wraps a response that is to be translated, or gives it back: what is no JSON, is encoded, or
    /// is larger than `limit` bytes passes as it is.
    pub(crate) fn new(
        mut response: Response<B>,
        outlet: Outlet,
        limit: u64,
    ) -> Result<Response<Self>, Response<B>>
    where
        B: Body,
    {
        let wanted = match outlet.form() {
            Form::Modern => false,
            Form::Initialize(_) => true,
            Form::Legacy { .. } => response.body().size_hint().upper() <= Some(limit),
        };
        if !wanted || outlet.request_id().is_none() || !is_plain_json(response.headers()) {
            return Err(response);
        }
        response.headers_mut().remove(CONTENT_LENGTH);
        Ok(response.map(|body| Self {
            body,
            outlet,
            read: Vec::new(),
            limit,
            done: false,
        }))
    }

    /// The whole, and then nothing.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let this = self.project();
        if *this.done {
            return Poll::Ready(None);
        }
        let whole = ready!(poll_read(this.body, this.read, *this.limit, cx));
        *this.done = true;
        let read = std::mem::take(this.read);
        if !whole {
            return Poll::Ready(Some(Err("the response body could not be read".into())));
        }
        let bytes = this.outlet.translated(&read).unwrap_or(read);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(bytes.into())))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    content_type.is_some_and(|it| it.starts_with(b"application/json"))
        && !headers.contains_key(CONTENT_ENCODING)
}
