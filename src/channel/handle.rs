//! A handle that sends nothing.

use super::shared::Shared;
use super::sync::Arc;

/// Keeps a channel open, as a [`Channel`](super::Channel) does, in half of its size.
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.add_handle();
        Self(Arc::clone(shared))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.drop_handle();
    }
}
