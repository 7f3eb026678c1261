//! Notifications: makes the JSON that a server sends before it answers.
//!
//! This room imports from [`json`](super::json), [`id`](super::id) and [`reply`](super::reply).

pub(crate) mod level;
pub(crate) mod progress;
pub(crate) mod shape;
pub(crate) mod types;
