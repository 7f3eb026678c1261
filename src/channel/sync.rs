//! The locks, counters and shared pointers of the crate.
//!
//! They are imported from here, so that with `--cfg mcp_loom` a model checker takes their place
//! under the code that ships.

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

/// Locks, even after a panic elsewhere: no user code runs under our locks, so what they guard is
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
