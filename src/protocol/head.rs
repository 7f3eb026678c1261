//! What can be judged before the body is read.

use http::{HeaderMap, Method, StatusCode, Uri, header};

use super::accept::{Accepts, accepts, is_json};
use super::codes::INVALID_REQUEST;
use super::host::AllowedHosts;
use super::origin::AllowedOrigins;
use super::quote::quote_bytes;
use super::rejection::Rejection;

/// Who may talk to the endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) origins: AllowedOrigins,
    /// `None`: the host is not checked.
    pub(crate) hosts: Option<AllowedHosts>,
}

/// The rules on origin, host, method, media types, in this order.
pub(crate) fn check_head(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    policy: &Policy,
) -> Result<Accepts, Rejection> {
    check_origin(headers, &policy.origins)?;
    if let Some(hosts) = &policy.hosts {
        check_host(uri, headers, hosts)?;
    }
    if method != Method::POST {
        return Err(Rejection::new(
            StatusCode::METHOD_NOT_ALLOWED,
            INVALID_REQUEST,
            "method is not POST",
            format!("{method} is not served: send each message as its own POST"),
        ));
    }
    if !is_json(headers) {
        return Err(Rejection::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            INVALID_REQUEST,
            "content type is not JSON",
            "`Content-Type` must be `application/json`",
        ));
    }
    accepts(headers).ok_or_else(|| {
        Rejection::new(
            StatusCode::NOT_ACCEPTABLE,
            INVALID_REQUEST,
            "nothing acceptable",
            "`Accept` must list `application/json` and `text/event-stream`",
        )
    })
}

fn check_origin(headers: &HeaderMap, allowed: &AllowedOrigins) -> Result<(), Rejection> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else {
        return Ok(());
    };
    if origins.next().is_some() {
        return Err(forbidden(
            "several origins",
            "`Origin` is there more than once; send it once".to_owned(),
        ));
    }
    if allowed.allows(origin.as_bytes().trim_ascii()) {
        return Ok(());
    }
    Err(forbidden(
        "origin not allowed",
        format!(
            "`Origin` {} is not allowed: add it to the server's allowed origins if its pages may use \
             this endpoint",
            quote_bytes(origin.as_bytes())
        ),
    ))
}

/// Every name that the request gives must be allowed, since proxies differ in which they look at.
fn check_host(uri: &Uri, headers: &HeaderMap, allowed: &AllowedHosts) -> Result<(), Rejection> {
    let mut lines = headers.get_all(header::HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(forbidden(
            "several hosts",
            "`Host` is there more than once; send it once".to_owned(),
        ));
    }
    let authority = uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let named = [authority, line.map(|line| line.as_bytes().trim_ascii())];
    if named.iter().all(Option::is_none) {
        return Err(forbidden(
            "no host",
            "`Host` is missing: name the host that the request is for".to_owned(),
        ));
    }
    for host in named.into_iter().flatten() {
        if !allowed.allows(host) {
            return Err(forbidden(
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

fn forbidden(reason: &'static str, message: String) -> Rejection {
    Rejection::new(StatusCode::FORBIDDEN, INVALID_REQUEST, reason, message)
}
