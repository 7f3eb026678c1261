//! What a server tells a client before it answers: values in; the JSON of a notification out.
//!
//! Imports from [`json`](super::json), [`id`](super::id) and [`reply`](super::reply).

pub(crate) mod level;
pub(crate) mod progress;
pub(crate) mod shape;
pub(crate) mod types;
