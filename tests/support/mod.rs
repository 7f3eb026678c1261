//! What several test files need. Each of them is a crate of its own and uses only a part of this.

#[allow(dead_code, reason = "not every test file drives a channel by hand")]
pub(crate) mod by_hand;
#[allow(dead_code, reason = "not every test file listens")]
pub(crate) mod listener;
#[allow(dead_code, reason = "not every test file makes requests of all kinds")]
pub(crate) mod request;
#[allow(dead_code, reason = "not every test file validates messages")]
pub(crate) mod schema;
#[allow(dead_code, reason = "not every test file reads event streams")]
pub(crate) mod sse;
