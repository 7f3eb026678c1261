//! Recycled buffers for what is encoded outside of the lock.

use std::cell::Cell;

use bytes::Bytes;

/// A buffer of more bytes than this is not kept, and is handed on instead of copied.
const KEPT: usize = 16 * 1024;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer that goes back to its thread when dropped.
#[derive(Debug, Default)]
pub(crate) struct Scratch(pub(crate) Vec<u8>);

impl Scratch {
    pub(crate) fn take() -> Self {
        Self(SPARE.try_with(Cell::take).unwrap_or_default())
    }

    /// The content in an allocation of its own size.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        if self.0.len() > KEPT {
            return std::mem::take(&mut self.0).into();
        }
        Bytes::copy_from_slice(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if (1..=KEPT).contains(&self.0.capacity()) {
            let mut buffer = std::mem::take(&mut self.0);
            buffer.clear();
            // While a thread ends there is nowhere to keep it.
            let _ = SPARE.try_with(|spare| spare.set(buffer));
        }
    }
}
