//! The locks, counters and shared pointers of the crate. They come through here, so that a model
//! checker can take their place (`--cfg mcp_loom`) under the code that ships.

#[cfg(mcp_loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};
#[cfg(not(mcp_loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering},
};

/// Locks, also after a panic elsewhere: no code of a user runs under our locks, so what they guard
/// is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
