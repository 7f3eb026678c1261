//! Real sockets: how the layer behaves behind hyper's and axum's servers.
//!
//! Every wait is bounded by `net::soon`, so that a fault fails a test and does not hang it. Time is
//! waited for only where silence is what is tested.

#[path = "../support/mod.rs"]
mod support;

mod back_pressure;
mod client;
mod disconnects;
mod graceful;
mod http1;
mod http2;
mod live;
mod net;
mod tls;
#[cfg(unix)]
mod unix;
mod write_timeout;
