//! The revisions of the protocol that are served.

/// The revision of the protocol that is served.
pub const PROTOCOL_VERSION: &str = "2026-07-28";

/// Every revision that is served.
pub(crate) const SERVED_VERSIONS: &[&str] = &[PROTOCOL_VERSION];
