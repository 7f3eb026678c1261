//! A scanned body and the headers that came with it: what the checks look at.

use http::HeaderMap;

use super::envelope::Envelope;
use crate::protocol::json::Text;
use crate::protocol::json::quote::quote;

pub(super) struct Posted<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) text: &'a str,
    pub(super) envelope: &'a Envelope,
}

impl Posted<'_> {
    /// A string of the body, for an error about it.
    #[cold]
    pub(super) fn shown(&self, string: Text) -> String {
        match string.decode(self.text) {
            Some(plain) => quote(&plain),
            None => quote(string.inner(self.text)),
        }
    }
}
