//! The options of a layer, as its services share them.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::{CopiedTypes, Options};
use crate::protocol::request::admission::Policy;
use crate::shutdown::Shutdown;

/// The default of `keep_alive` and of `stream_after`.
pub(crate) const DEFAULT_QUIET: Duration = Duration::from_secs(15);
/// The default of `body_limit`, in bytes.
pub(crate) const DEFAULT_BODY_LIMIT: u64 = 4 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) policy: Policy,
    pub(crate) body_limit: u64,
    pub(crate) channel: Arc<Options>,
    pub(crate) copied_types: CopiedTypes,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) stream_after: Option<Duration>,
    pub(crate) shutdown: Option<Shutdown>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            body_limit: DEFAULT_BODY_LIMIT,
            channel: Arc::default(),
            copied_types: CopiedTypes::default(),
            keep_alive: Some(DEFAULT_QUIET),
            stream_after: Some(DEFAULT_QUIET),
            shutdown: None,
        }
    }
}
