//! The channel between a handler and the response: messages in, the bytes of the response out. The
//! one place with locks.
//!
//! A handler holds a [`Channel`], whoever writes the response an [`Outlet`], and both hold the one
//! [`Shared`]. Imports from the protocol and the state machine.

mod coalescing;
mod enqueue;
mod futures;
mod handle;
mod locked;
mod options;
mod outlet;
mod queue;
mod send;
mod shared;
mod subscription;
pub(crate) mod sync;
mod waiters;

pub(crate) use coalescing::{Piece, Slots};
pub use futures::{Closed, Flush, Sending};
pub(crate) use handle::Handle;
pub use handle::{Channel, Status};
pub(crate) use options::{CopiedTypes, Options};
pub use outlet::Outlet;
pub(crate) use outlet::{Decided, Returned, Step};
pub(crate) use queue::FinalReply;
pub(crate) use shared::{Info, Shared};
pub(crate) use sync::Arc;
