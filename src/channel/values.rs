//! Values of the application that a channel carries beside what the protocol knows.

use std::fmt;
use std::sync::Arc;

use http::Extensions;

/// How a type's value gets from the request's extensions into the channel.
type Copy = fn(&Extensions, &mut Extensions);

/// Which values the channels of a layer carry.
#[derive(Clone, Default)]
pub(crate) struct ValueSources {
    fixed: Option<Arc<Extensions>>,
    copies: Vec<Copy>,
}

impl ValueSources {
    pub(crate) fn fix<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        let mut fixed = self
            .fixed
            .take()
            .map_or_else(Extensions::new, |arc| (*arc).clone());
        fixed.insert(value);
        self.fixed = Some(Arc::new(fixed));
    }

    pub(crate) fn copy<T: Clone + Send + Sync + 'static>(&mut self) {
        self.copies.push(|from, to| {
            if let Some(value) = from.get::<T>() {
                to.insert(value.clone());
            }
        });
    }

    pub(crate) fn for_request(&self, extensions: &Extensions) -> Values {
        let mut copied = Extensions::new();
        for copy in &self.copies {
            copy(extensions, &mut copied);
        }
        Values {
            fixed: self.fixed.clone(),
            copied,
        }
    }
}

impl fmt::Debug for ValueSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueSources")
            .field("fixed", &self.fixed)
            .field("copied_types", &self.copies.len())
            .finish()
    }
}

/// The values of one channel.
#[derive(Debug, Default)]
pub(crate) struct Values {
    fixed: Option<Arc<Extensions>>,
    copied: Extensions,
}

impl Values {
    pub(crate) fn new(copied: Extensions) -> Self {
        Self {
            fixed: None,
            copied,
        }
    }

    /// One that was copied from the request wins over a fixed one.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.copied
            .get()
            .or_else(|| self.fixed.as_ref().and_then(|fixed| fixed.get()))
    }
}
