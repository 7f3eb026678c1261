//! The protocol itself: pure functions between bytes and values. They need no runtime, no service
//! and no lock.
//!
//! The rooms, each of which imports from those above it:
//!
//! - [`json`]: scanning, quoting and writing JSON text;
//! - [`id`]: request ids and progress tokens, and [`era`]: the revisions that are served; every other
//!   room speaks of them;
//! - [`reply`]: what a server answers;
//! - [`notification`]: what a server sends before it answers;
//! - [`request`]: what a client sent, read and checked.

pub(crate) mod era;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod notification;
pub(crate) mod reply;
pub(crate) mod request;
