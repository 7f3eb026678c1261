//! [`ResourceMatch`]: which subscriptions the update of a resource concerns.

use std::fmt;
use std::sync::Arc;

/// Which subscriptions the update of a resource concerns.
///
/// The protocol lets an update name a part of a resource that a client subscribed to.
#[derive(Clone, Default)]
pub struct ResourceMatch(Kind);

type Matcher = dyn Fn(&str, &str) -> bool + Send + Sync;

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Exact,
    Parts,
    Custom(Arc<Matcher>),
}

impl ResourceMatch {
    /// Those to exactly this URI. This is the default.
    #[must_use]
    pub fn exact() -> Self {
        Self(Kind::Exact)
    }

    /// Those to this URI, and to every URI that it is a part of: an update of `docs://a/b#c` also
    /// concerns `docs://a/b`, `docs://a/` and `docs://a`.
    ///
    /// A publish looks up the URI, and at most two more for each `/`, `?` and `#` in it.
    #[must_use]
    pub fn parts() -> Self {
        Self(Kind::Parts)
    }

    /// Those to each URI for which `concerns(subscribed, updated)` is true.
    ///
    /// A publish calls it for each URI that anybody on this node subscribed to. If it panics, the
    /// publish panics.
    #[must_use]
    pub fn custom(concerns: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Kind::Custom(Arc::new(concerns)))
    }

    /// The subscribed URIs that the update of `uri` concerns, the closest first.
    pub(crate) fn concerned(
        &self,
        uri: &str,
        subscribed: impl FnOnce() -> Vec<Arc<str>>,
    ) -> Vec<Arc<str>> {
        match &self.0 {
            Kind::Exact => vec![Arc::from(uri)],
            Kind::Parts => {
                let mut wholes: Vec<_> = wholes(uri).map(Arc::from).collect();
                wholes.reverse();
                wholes
            }
            Kind::Custom(concerns) => {
                let mut uris = subscribed();
                uris.retain(|subscribed| concerns(subscribed, uri));
                uris.sort_by_key(|subscribed| **subscribed != *uri);
                uris
            }
        }
    }

    /// Whether updates of several resources can concern a subscription to one.
    pub(crate) fn is_inexact(&self) -> bool {
        !matches!(self.0, Kind::Exact)
    }
}

/// The URI and every URI that it is a part of, with and without the separator at the end.
fn wholes(uri: &str) -> impl Iterator<Item = &str> {
    let authority = uri.find("://").map_or(0, |at| at + 3);
    let cuts = uri
        .char_indices()
        .filter(move |(at, c)| *at >= authority && matches!(c, '/' | '?' | '#'))
        .flat_map(|(at, _)| [at, at + 1]);
    cuts.filter(move |cut| *cut > authority && *cut < uri.len())
        .chain([uri.len()])
        .map(|cut| &uri[..cut])
}

impl fmt::Debug for ResourceMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Exact => "exact",
            Kind::Parts => "parts",
            Kind::Custom(_) => "custom",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_concerns_its_wholes() {
        let all = |uri| wholes(uri).collect::<Vec<_>>();
        assert_eq!(
            all("docs://a/b#c"),
            [
                "docs://a",
                "docs://a/",
                "docs://a/b",
                "docs://a/b#",
                "docs://a/b#c"
            ]
        );
        assert_eq!(all("docs://a/"), ["docs://a", "docs://a/"]);
        assert_eq!(all("file:///x"), ["file:///", "file:///x"]);
        assert_eq!(all("urn:x"), ["urn:x"]);
        assert_eq!(all(""), [""]);
    }
}
