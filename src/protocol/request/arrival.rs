//! The rejections of a body that is too large or does not arrive.

use std::fmt;

use http::StatusCode;

use crate::protocol::reply::codes;
use crate::protocol::reply::rejection::Rejection;

/// A body of more than `limit` bytes.
pub(crate) fn too_large(limit: u64) -> Rejection {
    Rejection::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        codes::INVALID_REQUEST,
        "body too large",
        format!(
            "the body is larger than {limit} bytes: send less, or raise the server's `body_limit`"
        ),
    )
}

/// A body that something around this layer found too large, by a limit that is not known here.
pub(crate) fn too_large_for_another() -> Rejection {
    Rejection::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        codes::INVALID_REQUEST,
        "body too large",
        "the body is larger than the server allows: send less, or raise the limit of the middleware \
         around the MCP layer",
    )
}

/// A body that did not arrive.
pub(crate) fn broken_body(error: &dyn fmt::Display) -> Rejection {
    Rejection::new(
        StatusCode::BAD_REQUEST,
        codes::INVALID_REQUEST,
        "broken body",
        format!("the body did not arrive whole: {error}"),
    )
}
