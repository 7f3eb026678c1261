//! What all channels of a layer share, and the values that each channel copies from its request.

use std::fmt;

use http::Extensions;

/// How many bytes may wait unsent in each stream, unless the layer is told otherwise.
const DEFAULT_BUFFER_LIMIT: usize = 4 * 1024;

/// What all channels of a layer share.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How many bytes may wait unsent in each stream.
    pub(crate) buffer_limit: usize,
    /// The server's name and version, as JSON.
    pub(crate) server_info: Option<Box<str>>,
    /// Values of the application.
    pub(crate) values: Extensions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            buffer_limit: DEFAULT_BUFFER_LIMIT,
            server_info: None,
            values: Extensions::new(),
        }
    }
}

/// The types of the request extensions that a channel copies.
#[derive(Clone, Default)]
pub(crate) struct CopiedTypes(Vec<fn(&Extensions, &mut Extensions)>);

impl CopiedTypes {
    pub(crate) fn add<T: Clone + Send + Sync + 'static>(&mut self) {
        self.0.push(|from, to| {
            if let Some(value) = from.get::<T>() {
                to.insert(value.clone());
            }
        });
    }

    pub(crate) fn copy(&self, extensions: &Extensions) -> Extensions {
        let mut copied = Extensions::new();
        for copy in &self.0 {
            copy(extensions, &mut copied);
        }
        copied
    }
}

impl fmt::Debug for CopiedTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CopiedTypes").field(&self.0.len()).finish()
    }
}
