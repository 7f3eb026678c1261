//! [`Era`]: the revisions of the protocol that are served, and by whose rules a request is judged.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The revision of the protocol that handlers are written for.
pub const PROTOCOL_VERSION: &str = "2026-07-28";

/// Every revision that a client may name in a request's metadata.
pub(crate) const SERVED_VERSIONS: &[&str] = &[PROTOCOL_VERSION];

/// The revisions that begin with an `initialize` request, oldest first.
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// What a client is offered that asks for a revision which has no `initialize` request.
pub(crate) const NEWEST_LEGACY: &str = "2025-11-25";

/// What a request of an earlier revision is taken for that has no version header.
pub(crate) const ASSUMED_LEGACY: &str = "2025-03-26";

/// The method that opens a subscription.
pub(crate) const LISTEN: &str = "subscriptions/listen";
/// The method that asks a server for its versions and capabilities.
pub(crate) const DISCOVER: &str = "server/discover";

pub(crate) static MCP_PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("mcp-protocol-version");
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Which of the protocol's two eras a request belongs to: each has its own rules for requests and for
/// what answers them.
///
/// The layer decides it for each request by itself, in this order:
///
/// 1. `params._meta` names a protocol version: modern.
/// 2. The `MCP-Protocol-Version` header names an earlier revision: legacy. It names anything else, or
///    is repeated with different values: modern.
/// 3. There is neither. An `Mcp-Method` header, or a method that earlier revisions do not have
///    (`server/discover`, `subscriptions/listen`): modern. Anything else is legacy, and taken for
///    revision `2025-03-26`.
///
/// A request is then judged by the rules of its era, so a modern one that lacks something is told
/// what it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Era {
    /// Revision `2026-07-28`: each request says which version and which capabilities its client has.
    #[default]
    Modern,
    /// Revisions `2024-11-05`, `2025-03-26`, `2025-06-18` and `2025-11-25`: the client begins with an
    /// `initialize` request.
    Legacy,
}

impl Era {
    /// The era of a request as far as its headers tell, for routing before a body is read.
    ///
    /// No valid modern request is taken for a legacy one, since a valid one has its version header. So
    /// requests that are legacy by this can be steered to a service of their own, with
    /// [`tower::steer`](https://docs.rs/tower/latest/tower/steer/) for instance; the layer goes around
    /// the other one.
    ///
    /// ```
    /// use http::{HeaderMap, HeaderValue};
    /// use mcp_channel::Era;
    ///
    /// let mut headers = HeaderMap::new();
    /// assert_eq!(Era::from_headers(&headers), Era::Legacy);
    /// headers.insert("mcp-protocol-version", HeaderValue::from_static("2026-07-28"));
    /// assert_eq!(Era::from_headers(&headers), Era::Modern);
    /// headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-06-18"));
    /// assert_eq!(Era::from_headers(&headers), Era::Legacy);
    /// ```
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        match Claim::of(headers) {
            Claim::Legacy(_) | Claim::Nothing => Self::Legacy,
            Claim::Modern => Self::Modern,
        }
    }
}

impl fmt::Display for Era {
    /// `modern` or `legacy`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        })
    }
}

/// What a request's headers say of its era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Modern,
    /// With the revision.
    Legacy(&'static str),
    Nothing,
}

impl Claim {
    fn of(headers: &HeaderMap) -> Self {
        let mut versions = headers.get_all(&MCP_PROTOCOL_VERSION).iter();
        let Some(first) = versions.next().map(trimmed) else {
            return if headers.contains_key(&MCP_METHOD) {
                Self::Modern
            } else {
                Self::Nothing
            };
        };
        match legacy_version(first) {
            Some(version) if versions.all(|other| trimmed(other) == first) => Self::Legacy(version),
            _ => Self::Modern,
        }
    }
}

fn trimmed(value: &HeaderValue) -> &[u8] {
    value.as_bytes().trim_ascii()
}

/// The earlier revision of this name.
pub(crate) fn legacy_version(name: &[u8]) -> Option<&'static str> {
    LEGACY_VERSIONS
        .into_iter()
        .find(|version| version.as_bytes() == name)
}

/// The earlier revision that a request is written in, or none for a modern one.
///
/// `named` says whether `params._meta` names a version, whatever it is.
pub(crate) fn legacy_revision(
    headers: &HeaderMap,
    named: bool,
    method: &str,
) -> Option<&'static str> {
    if named {
        return None;
    }
    match Claim::of(headers) {
        Claim::Modern => None,
        Claim::Legacy(version) => Some(version),
        Claim::Nothing if matches!(method, LISTEN | DISCOVER) => None,
        Claim::Nothing => Some(ASSUMED_LEGACY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "mcp-protocol-version";
    const METHOD: &str = "mcp-method";

    /// Headers, whether the metadata names a version, the method; and the earlier revision.
    type Case = (
        &'static [(&'static str, &'static str)],
        bool,
        &'static str,
        Option<&'static str>,
    );

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn the_era_is_what_the_metadata_then_the_headers_then_the_method_say() {
        let legacy = Some("2025-03-26");
        #[rustfmt::skip]
        let cases: &[Case] = &[
            // The metadata decides.
            (&[], true, "tools/call", None),
            (&[(VERSION, "2025-11-25")], true, "tools/call", None),
            (&[], true, "initialize", None),
            // Then the version header.
            (&[(VERSION, "2024-11-05")], false, "tools/call", Some("2024-11-05")),
            (&[(VERSION, "2025-03-26")], false, "tools/call", Some("2025-03-26")),
            (&[(VERSION, "2025-06-18")], false, "tools/call", Some("2025-06-18")),
            (&[(VERSION, "2025-11-25")], false, "tools/call", Some("2025-11-25")),
            (&[(VERSION, " 2025-11-25\t")], false, "tools/call", Some("2025-11-25")),
            (&[(VERSION, "2025-11-25"), (METHOD, "tools/call")], false, "tools/call", Some("2025-11-25")),
            (&[(VERSION, "2025-11-25")], false, "subscriptions/listen", Some("2025-11-25")),
            (&[(VERSION, "2025-11-25"), (VERSION, "2025-11-25")], false, "ping", Some("2025-11-25")),
            (&[(VERSION, "2025-11-25"), (VERSION, "2025-06-18")], false, "ping", None),
            (&[(VERSION, "2025-11-25"), (VERSION, "2026-07-28")], false, "ping", None),
            (&[(VERSION, "2026-07-28")], false, "tools/call", None),
            (&[(VERSION, "2026-07-28")], false, "initialize", None),
            (&[(VERSION, "2099-01-01")], false, "initialize", None),
            (&[(VERSION, "")], false, "tools/call", None),
            (&[(VERSION, "2025-11-25, 2025-11-25")], false, "tools/call", None),
            (&[(VERSION, "2025-11-2\u{e9}")], false, "tools/call", None),
            (&[(VERSION, "DRAFT-2025-v2")], false, "tools/call", None),
            // Then the mirror and the method.
            (&[(METHOD, "tools/call")], false, "tools/call", None),
            (&[(METHOD, "initialize")], false, "initialize", None),
            (&[(METHOD, "")], false, "tools/call", None),
            (&[("mcp-name", "echo")], false, "tools/call", legacy),
            (&[], false, "server/discover", None),
            (&[], false, "subscriptions/listen", None),
            (&[], false, "Server/Discover", legacy),
            (&[], false, "initialize", legacy),
            (&[], false, "tools/call", legacy),
            (&[], false, "notifications/initialized", legacy),
            (&[], false, "", legacy),
        ];
        for (list, named, method, revision) in cases {
            let headers = headers(list);
            assert_eq!(
                legacy_revision(&headers, *named, method),
                *revision,
                "{list:?} {named} {method}"
            );
            // The headers alone never lead a request astray that is legacy.
            if revision.is_some() {
                assert_eq!(Era::from_headers(&headers), Era::Legacy, "{list:?}");
            }
        }
    }

    #[test]
    fn a_valid_modern_request_is_modern_by_its_headers() {
        for list in [
            &[(VERSION, "2026-07-28"), (METHOD, "tools/call")][..],
            &[(VERSION, "2026-07-28"), (VERSION, "2026-07-28")],
            &[(VERSION, " 2026-07-28 ")],
        ] {
            assert_eq!(Era::from_headers(&headers(list)), Era::Modern, "{list:?}");
        }
    }
}
