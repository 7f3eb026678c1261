//! `Origin`: the web pages that may call an endpoint, and the check of a request's.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use http::{HeaderMap, header};

use crate::protocol::json::quote::quote_bytes;
use crate::protocol::reply::rejection::Rejection;

/// A host as it stands in an origin or a `Host` header. Case is folded where it is compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostName<'a> {
    V6(Ipv6Addr),
    Name(&'a str),
}

impl<'a> HostName<'a> {
    /// Reads `host` or `host:port`.
    pub(super) fn split(authority: &'a str) -> Option<(Self, Option<u16>)> {
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']')?;
                let port = match after {
                    "" => None,
                    _ => Some(after.strip_prefix(':')?),
                };
                (HostName::V6(address.parse().ok()?), port)
            }
            None => {
                let (name, port) = match authority.split_once(':') {
                    Some((name, port)) => (name, Some(port)),
                    None => (authority, None),
                };
                let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                if name.is_empty() || !name.bytes().all(legal) {
                    return None;
                }
                (HostName::Name(name), port)
            }
        };
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some((host, port))
    }

    /// Lower case; an IPv6 address in its canonical form with brackets.
    pub(super) fn canonical(self) -> Box<str> {
        match self {
            HostName::V6(address) => format!("[{address}]").into(),
            HostName::Name(name) => name.to_ascii_lowercase().into(),
        }
    }

    pub(super) fn is(self, canonical: &str) -> bool {
        match self {
            HostName::Name(name) => name.eq_ignore_ascii_case(canonical),
            HostName::V6(address) => canonical
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .is_some_and(|text| text.parse() == Ok(address)),
        }
    }

    /// `localhost`, 127.0.0.0/8 or `[::1]`.
    pub(super) fn is_loopback(self) -> bool {
        match self {
            HostName::V6(address) => address.is_loopback(),
            HostName::Name(name) => {
                name.eq_ignore_ascii_case("localhost")
                    || name
                        .parse::<Ipv4Addr>()
                        .is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Parts<'a> {
    scheme: &'a str,
    host: HostName<'a>,
    /// `None` for the scheme's default.
    port: Option<u16>,
}

fn parts(origin: &str) -> Option<Parts<'_>> {
    let (scheme, authority) = origin.split_once("://")?;
    let mut letters = scheme.bytes();
    if !letters.next()?.is_ascii_alphabetic()
        || !letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return None;
    }
    let (host, port) = HostName::split(authority)?;
    let is_default = |port: &u16| {
        (scheme.eq_ignore_ascii_case("http") && *port == 80)
            || (scheme.eq_ignore_ascii_case("https") && *port == 443)
    };
    Some(Parts {
        scheme,
        host,
        port: port.filter(|port| !is_default(port)),
    })
}

/// The origin of a web page: scheme, host and port, `https://app.example.com` for instance.
///
/// Scheme and host are compared without regard to case, and a port that is the scheme's default is
/// the same as none. A host with other than ASCII letters is written in its `xn--` form, as browsers
/// send it.
///
/// ```
/// use mcp_channel::Origin;
///
/// let origin: Origin = "https://APP.example.com:443".parse()?;
/// assert_eq!(origin.to_string(), "https://app.example.com");
/// assert!("https://app.example.com/path".parse::<Origin>().is_err());
/// # Ok::<(), mcp_channel::InvalidOrigin>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Box<str>,
    host: Box<str>,
    port: Option<u16>,
}

impl Origin {
    fn is(&self, page: &Parts<'_>) -> bool {
        page.scheme.eq_ignore_ascii_case(&self.scheme)
            && page.port == self.port
            && page.host.is(&self.host)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(origin: &str) -> Result<Self, InvalidOrigin> {
        let parts = parts(origin).ok_or(InvalidOrigin(()))?;
        Ok(Self {
            scheme: parts.scheme.to_ascii_lowercase().into(),
            host: parts.host.canonical(),
            port: parts.port,
        })
    }
}

impl TryFrom<&str> for Origin {
    type Error = InvalidOrigin;

    fn try_from(origin: &str) -> Result<Self, InvalidOrigin> {
        origin.parse()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// The text is not an [`Origin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOrigin(());

impl fmt::Display for InvalidOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid origin: expected a scheme, `://`, a host in ASCII and optionally a port, with \
             nothing after it, like `https://app.example.com` or `http://localhost:8080`",
        )
    }
}

impl std::error::Error for InvalidOrigin {}

/// Which web pages may talk to the endpoint, by the `Origin` header that browsers add.
///
/// By default none may. Programs send no `Origin` and are not concerned.
///
/// A page anywhere can have a browser send requests to a server that only the user's machine or
/// network reaches. With *DNS rebinding*, the page's own name is pointed at that server's address, so
/// that the browser takes both for one site and lets the page read the answers. The header then still
/// names the page, which is why it is checked. An allowed page acts with all rights of the user who
/// visits it. [`AllowedHosts`](crate::AllowedHosts) adds a second check for requests without `Origin`.
///
/// ```
/// use mcp_channel::{AllowedOrigins, Origin};
///
/// let app: Origin = "https://app.example.com".parse()?;
/// let origins = AllowedOrigins::loopback().or(AllowedOrigins::list([app]));
/// # Ok::<(), mcp_channel::InvalidOrigin>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AllowedOrigins {
    any: bool,
    loopback: bool,
    list: Arc<[Origin]>,
}

impl AllowedOrigins {
    /// Every page, `null` included. Only for endpoints that hold no private data.
    pub fn any() -> Self {
        Self {
            any: true,
            ..Self::default()
        }
    }

    /// Pages that this machine serves over http or https: on `localhost`, on 127.0.0.0/8 or on
    /// `[::1]`, with any port.
    pub fn loopback() -> Self {
        Self {
            loopback: true,
            ..Self::default()
        }
    }

    /// These pages.
    pub fn list(origins: impl IntoIterator<Item = Origin>) -> Self {
        Self {
            list: origins.into_iter().collect(),
            ..Self::default()
        }
    }

    /// What either of the two allows.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            any: self.any || other.any,
            loopback: self.loopback || other.loopback,
            list: self.list.iter().chain(&*other.list).cloned().collect(),
        }
    }

    /// Whether the page may call the endpoint. `origin` is the value of its `Origin` header.
    ///
    /// This is for other code that has to know it, such as CORS, which lets the same pages read the
    /// answers.
    ///
    /// ```
    /// use mcp_channel::AllowedOrigins;
    ///
    /// let origins = AllowedOrigins::loopback();
    /// assert!(origins.allows(b"http://localhost:8080"));
    /// assert!(!origins.allows(b"https://app.example.com"));
    /// ```
    #[must_use]
    pub fn allows(&self, origin: &[u8]) -> bool {
        if self.any {
            return true;
        }
        let Some(page) = std::str::from_utf8(origin).ok().and_then(parts) else {
            return false;
        };
        let web =
            page.scheme.eq_ignore_ascii_case("http") || page.scheme.eq_ignore_ascii_case("https");
        (self.loopback && web && page.host.is_loopback())
            || self.list.iter().any(|allowed| allowed.is(&page))
    }
}

pub(super) fn check_origin(headers: &HeaderMap, allowed: &AllowedOrigins) -> Result<(), Rejection> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else {
        return Ok(());
    };
    if origins.next().is_some() {
        return Err(Rejection::forbidden(
            "several origins",
            "`Origin` is there more than once; send it once",
        ));
    }
    if allowed.allows(origin.as_bytes().trim_ascii()) {
        return Ok(());
    }
    Err(Rejection::forbidden(
        "origin not allowed",
        format!(
            "`Origin` {} is not allowed: add it to the server's allowed origins if its pages may use \
             this endpoint",
            quote_bytes(origin.as_bytes())
        ),
    ))
}
