//! `Host`: the names by which an endpoint may be called, and the check of a request's.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::{HeaderMap, Uri, header};

use super::origin::HostName;
use crate::protocol::json::quote::quote_bytes;
use crate::protocol::reply::rejection::Rejection;

/// A name under which the endpoint is reached, with or without a port: `mcp.example.com`,
/// `localhost:8080`, `[::1]`.
///
/// Without a port every port matches. With one, the request must name that port; clients leave out
/// the default one.
///
/// ```
/// use mcp_channel::Host;
///
/// let host: Host = "MCP.example.com:8443".parse()?;
/// assert_eq!(host.to_string(), "mcp.example.com:8443");
/// assert!("https://mcp.example.com".parse::<Host>().is_err());
/// # Ok::<(), mcp_channel::InvalidHost>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    name: Box<str>,
    port: Option<u16>,
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(host: &str) -> Result<Self, InvalidHost> {
        let (name, port) = HostName::split(host).ok_or(InvalidHost(()))?;
        Ok(Self {
            name: name.canonical(),
            port,
        })
    }
}

impl TryFrom<&str> for Host {
    type Error = InvalidHost;

    fn try_from(host: &str) -> Result<Self, InvalidHost> {
        host.parse()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// The text is not a [`Host`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidHost(());

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid host: expected a name or address in ASCII and optionally a port, without a \
             scheme, like `mcp.example.com`, `localhost:8080` or `[::1]`",
        )
    }
}

impl std::error::Error for InvalidHost {}

/// Under which names the endpoint may be addressed, by the `Host` header or, in HTTP/2, the
/// `:authority`.
///
/// It guards a server on the user's machine or network against *DNS rebinding*: a page whose own
/// name has been pointed at the server's address makes the browser address the server by that name.
/// A request that names no host, several, or one that is not listed is rejected with 403.
///
/// Behind a proxy the name is the one that the proxy passes on.
///
/// ```
/// use mcp_channel::{AllowedHosts, Host};
///
/// let public: Host = "mcp.example.com".parse()?;
/// let hosts = AllowedHosts::loopback().or(AllowedHosts::list([public]));
/// # Ok::<(), mcp_channel::InvalidHost>(())
/// ```
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    loopback: bool,
    list: Arc<[Host]>,
}

impl AllowedHosts {
    /// `localhost`, addresses in 127.0.0.0/8 and `[::1]`, with any port.
    pub fn loopback() -> Self {
        Self {
            loopback: true,
            list: Arc::default(),
        }
    }

    /// These names. An empty list allows none.
    pub fn list(hosts: impl IntoIterator<Item = Host>) -> Self {
        Self {
            loopback: false,
            list: hosts.into_iter().collect(),
        }
    }

    /// What either of the two allows.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            loopback: self.loopback || other.loopback,
            list: self.list.iter().chain(&*other.list).cloned().collect(),
        }
    }

    /// `host` is the header's value or the authority.
    pub(crate) fn allows(&self, host: &[u8]) -> bool {
        let Some((name, port)) = std::str::from_utf8(host).ok().and_then(HostName::split) else {
            return false;
        };
        (self.loopback && name.is_loopback())
            || self.list.iter().any(|allowed| {
                name.is(&allowed.name) && (allowed.port.is_none() || allowed.port == port)
            })
    }
}

/// Every name that the request gives must be allowed, since proxies differ in which they look at.
pub(super) fn check_host(
    uri: &Uri,
    headers: &HeaderMap,
    allowed: &AllowedHosts,
) -> Result<(), Rejection> {
    let mut lines = headers.get_all(header::HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(Rejection::forbidden(
            "several hosts",
            "`Host` is there more than once; send it once",
        ));
    }
    let authority = uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let named = [authority, line.map(|line| line.as_bytes().trim_ascii())];
    if named.iter().all(Option::is_none) {
        return Err(Rejection::forbidden(
            "no host",
            "`Host` is missing: name the host that the request is for",
        ));
    }
    for host in named.into_iter().flatten() {
        if !allowed.allows(host) {
            return Err(Rejection::forbidden(
                "host not allowed",
                format!(
                    "`Host` {} is not allowed: add it to the server's allowed hosts if the endpoint \
                     is reached by this name",
                    quote_bytes(host)
                ),
            ));
        }
    }
    Ok(())
}
