//! The channel between a handler and its response: messages go in, the bytes of the response come
//! out.
//!
//! A handler holds a [`Channel`], the code that writes the response holds an [`Outlet`], and both
//! share one [`Shared`]. All locks of the crate are those of [`sync`]. This room imports from the
//! protocol and the state machine.

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
