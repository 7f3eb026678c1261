//! The checks of a request's head, in the protocol's order.

use http::{HeaderMap, Method, StatusCode, Uri, header};

use super::accept::{Accepts, MediaType, accepts, content_encoding, media_type};
use super::host::{AllowedHosts, check_host};
use super::origin::{AllowedOrigins, check_origin};
use crate::protocol::json::quote::quote_bytes;
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::codes::INVALID_REQUEST;
use crate::protocol::reply::rejection::Rejection;

/// Who may talk to the endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) origins: AllowedOrigins,
    /// `None`: the host is not checked.
    pub(crate) hosts: Option<AllowedHosts>,
    pub(crate) legacy: LegacyClients,
}

/// What clients of earlier revisions get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegacyClients {
    pub(crate) served: bool,
    /// The level of log records of a request that names none.
    pub(crate) log_level: Option<LogLevel>,
}

impl Default for LegacyClients {
    fn default() -> Self {
        Self {
            served: true,
            log_level: Some(LogLevel::Info),
        }
    }
}

/// The rules on origin, host, method, media types, in this order.
pub(crate) fn check_head(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    policy: &Policy,
) -> Result<Accepts, Rejection> {
    // Programs send neither of these. One look along the names costs less than to look up both.
    let (mut origin, mut encoding) = (false, false);
    for name in headers.keys() {
        origin |= *name == header::ORIGIN;
        encoding |= *name == header::CONTENT_ENCODING;
    }
    if origin {
        check_origin(headers, &policy.origins)?;
    }
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
    check_media_type(headers)?;
    if encoding {
        check_encoding(headers)?;
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

fn check_media_type(headers: &HeaderMap) -> Result<(), Rejection> {
    let message = match media_type(headers) {
        MediaType::Json => return Ok(()),
        MediaType::OtherCharset(sent) => format!(
            "`Content-Type` is {}, but JSON is sent in UTF-8: leave `charset` out",
            quote_bytes(sent.as_bytes())
        ),
        MediaType::Other(sent) => format!(
            "`Content-Type` is {}, but must be `application/json`",
            quote_bytes(sent.as_bytes())
        ),
        MediaType::Missing => "`Content-Type` is missing: send `application/json`".to_owned(),
    };
    Err(unsupported("content type is not JSON", message))
}

fn check_encoding(headers: &HeaderMap) -> Result<(), Rejection> {
    match content_encoding(headers) {
        None => Ok(()),
        Some(sent) => Err(unsupported(
            "body is encoded",
            format!(
                "`Content-Encoding` is {}, but only `identity` is taken: send the body as it is, or \
                 put tower-http's `RequestDecompressionLayer` around the MCP layer",
                quote_bytes(sent.as_bytes())
            ),
        )),
    }
}

#[cold]
fn unsupported(reason: &'static str, message: String) -> Rejection {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Rejection::new(status, INVALID_REQUEST, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::request::host::Host;
    use crate::protocol::request::origin::Origin;

    const JSON: (&str, &str) = ("content-type", "application/json");

    fn check(
        method: Method,
        uri: &str,
        list: &[(&str, &str)],
        policy: &Policy,
    ) -> Result<Accepts, Rejection> {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(
                name,
                http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        check_head(&method, &uri.parse().unwrap(), &headers, policy)
    }

    #[track_caller]
    fn refused(outcome: Result<Accepts, Rejection>, status: u16, message: &str) {
        let rejection = outcome.expect_err(message);
        assert_eq!(rejection.status(), status);
        assert_eq!(rejection.error().code(), INVALID_REQUEST);
        assert_eq!(rejection.allow_post(), status == 405);
        assert!(rejection.id().is_none());
        let said = rejection.error().message();
        assert!(said.contains(message), "{message:?} is not in {said:?}");
    }

    fn origins(allowed: AllowedOrigins) -> Policy {
        Policy {
            origins: allowed,
            hosts: None,
            ..Policy::default()
        }
    }

    fn app() -> AllowedOrigins {
        AllowedOrigins::list(["https://App.example.com".parse::<Origin>().unwrap()])
    }

    #[test]
    fn an_origin_is_allowed_only_when_it_is_listed() {
        for (allowed, origin, ok) in [
            (AllowedOrigins::default(), "https://app.example.com", false),
            (AllowedOrigins::default(), "null", false),
            (AllowedOrigins::any(), "null", true),
            (AllowedOrigins::any(), "https://evil.example", true),
            (app(), "https://app.example.com", true),
            (app(), "HTTPS://APP.EXAMPLE.COM:443", true),
            (app(), "https://app.example.com:444", false),
            (app(), "https://app.example.com.", false),
            (app(), "https://app.example.com/", false),
            (app(), "http://app.example.com", false),
            (app(), "https://app.example.com.evil.example", false),
            (app(), "https://x@app.example.com", false),
            (app(), "https://evil.example#app.example.com", false),
            (app(), "https://app.example.com https://evil.example", false),
            (app(), "http://localhost", false),
            (app(), "", false),
            (app(), "\u{e9}", false),
            (AllowedOrigins::loopback(), "http://localhost", true),
            (AllowedOrigins::loopback(), "https://LOCALHOST:8080", true),
            (AllowedOrigins::loopback(), "http://127.0.0.1:3000", true),
            (AllowedOrigins::loopback(), "http://127.255.0.9", true),
            (AllowedOrigins::loopback(), "http://[::1]:3000", true),
            (AllowedOrigins::loopback(), "http://[0:0:0:0:0:0:0:1]", true),
            (AllowedOrigins::loopback(), "http://[::2]", false),
            (AllowedOrigins::loopback(), "http://128.0.0.1", false),
            (
                AllowedOrigins::loopback(),
                "http://127.0.0.1.evil.example",
                false,
            ),
            (
                AllowedOrigins::loopback(),
                "http://localhost.evil.example",
                false,
            ),
            (AllowedOrigins::loopback(), "http://localhost:99999", false),
            (AllowedOrigins::loopback(), "http://localhost:+80", false),
            (AllowedOrigins::loopback(), "ftp://localhost", false),
            (AllowedOrigins::loopback(), "null", false),
            (
                AllowedOrigins::loopback().or(app()),
                "https://app.example.com",
                true,
            ),
            (
                app().or(AllowedOrigins::loopback()),
                "http://localhost:1",
                true,
            ),
        ] {
            let outcome = check(
                Method::POST,
                "/",
                &[JSON, ("origin", origin)],
                &origins(allowed),
            );
            if ok {
                assert_eq!(outcome.unwrap(), Accepts::Both, "{origin}");
            } else {
                refused(outcome, 403, "`Origin`");
            }
        }
        let twice = [JSON, ("origin", "http://a"), ("origin", "http://a")];
        refused(
            check(Method::POST, "/", &twice, &origins(AllowedOrigins::any())),
            403,
            "more than once",
        );
    }

    #[test]
    fn a_host_is_allowed_only_when_it_is_listed() {
        let host = |text: &str| text.parse::<Host>().unwrap();
        let hosts = AllowedHosts::loopback().or(AllowedHosts::list([
            host("mcp.example.com"),
            host("[2001:db8::1]:8443"),
        ]));
        let policy = Policy {
            origins: AllowedOrigins::default(),
            hosts: Some(hosts),
            ..Policy::default()
        };
        for (uri, hosts, ok) in [
            ("/", &["localhost:3000"][..], true),
            ("/", &["127.0.0.1"], true),
            ("/", &["[::1]:1"], true),
            ("/", &["MCP.example.com"], true),
            ("/", &["mcp.example.com:8080"], true),
            ("/", &["[2001:db8:0::1]:8443"], true),
            ("/", &["[2001:db8::1]"], false),
            ("/", &["evil.example"], false),
            ("/", &["mcp.example.com.evil.example"], false),
            ("/", &["localhost@evil.example"], false),
            ("/", &[""], false),
            ("/", &[], false),
            ("/", &["localhost", "localhost"], false),
            ("https://mcp.example.com/mcp", &[], true),
            ("https://evil.example/mcp", &[], false),
            ("https://evil.example/mcp", &["localhost"], false),
            ("https://mcp.example.com/mcp", &["evil.example"], false),
        ] {
            let mut list = vec![JSON];
            list.extend(hosts.iter().map(|host| ("host", *host)));
            let outcome = check(Method::POST, uri, &list, &policy);
            if ok {
                outcome.expect(uri);
            } else {
                refused(outcome, 403, "`Host`");
            }
            check(Method::POST, uri, &list, &Policy::default()).expect("not checked");
        }
    }

    #[test]
    fn only_post_is_served() {
        for method in ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "post"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            refused(check(method, "/", &[], &Policy::default()), 405, "POST");
        }
        let foreign = [("origin", "https://evil.example")];
        refused(
            check(Method::GET, "/", &foreign, &Policy::default()),
            403,
            "`Origin`",
        );
    }

    #[test]
    fn only_json_is_read() {
        for (list, ok) in [
            (&[][..], false),
            (&["application/json"], true),
            (&["Application/JSON; charset=utf-8"], true),
            (
                &["application/json", "application/json; charset=utf-16"],
                false,
            ),
            (&[" application/json ;x"], true),
            (&["application/json", "application/json"], true),
            (&["application/json", "text/plain"], false),
            (&["text/plain"], false),
            (&["application/jsonx"], false),
            (&["application/json, text/plain"], false),
            (&["application/problem+json"], false),
            (&[""], false),
        ] {
            let list: Vec<_> = list.iter().map(|value| ("content-type", *value)).collect();
            let outcome = check(Method::POST, "/", &list, &Policy::default());
            if ok {
                outcome.unwrap();
            } else {
                refused(outcome, 415, "`Content-Type`");
            }
        }
    }

    #[test]
    fn a_body_that_is_not_utf_8_or_encoded_is_told_what_to_do() {
        let utf_16 = ("content-type", "application/json;charset=utf-16");
        let gzip = ("content-encoding", "gzip");
        let html = ("accept", "text/html");
        for (list, says) in [
            (&[utf_16][..], "leave `charset` out"),
            (&[JSON, gzip], "`Content-Encoding` is 'gzip'"),
            (&[JSON, gzip], "tower-http's `RequestDecompressionLayer`"),
            // After the media type, and before what is accepted.
            (&[utf_16, gzip], "`charset`"),
            (&[gzip], "`Content-Type` is missing"),
            (&[JSON, gzip, html], "`Content-Encoding`"),
            (
                &[JSON, ("content-encoding", "\u{e9}\u{a0}")],
                "`Content-Encoding`",
            ),
        ] {
            refused(
                check(Method::POST, "/", list, &Policy::default()),
                415,
                says,
            );
        }
        let head = [JSON, ("content-encoding", "identity")];
        let outcome = check(Method::POST, "/", &head, &Policy::default());
        assert_eq!(outcome.unwrap(), Accepts::Both);
    }

    #[test]
    fn accept_decides_the_forms_of_the_answer() {
        use Accepts::{Both, JsonOnly, StreamOnly};
        for (list, want) in [
            (&[][..], Some(Both)),
            (&["application/json, text/event-stream"], Some(Both)),
            (
                &["text/event-stream;q=0.5 , application/json;q=0.9"],
                Some(Both),
            ),
            (&["application/json", "text/event-stream"], Some(Both)),
            (&["Application/JSON, TEXT/Event-Stream"], Some(Both)),
            (&["*/*"], Some(Both)),
            (&["text/html, */*;q=0.1"], Some(Both)),
            (&["application/*, text/*"], Some(Both)),
            (&[""], Some(Both)),
            (&[" , ,"], Some(Both)),
            (&["application/json"], Some(JsonOnly)),
            (&["application/*"], Some(JsonOnly)),
            (&["application/json;charset=utf-8"], Some(JsonOnly)),
            (&["application/json, text/event-stream;q=0"], Some(JsonOnly)),
            (&["*/*, text/event-stream;q=0.000"], Some(JsonOnly)),
            (&["*/*, text/*; Q=0"], Some(JsonOnly)),
            (
                &["application/json;x=\", text/event-stream\""],
                Some(JsonOnly),
            ),
            (
                &["application/json;x=\"\\\", text/event-stream\""],
                Some(JsonOnly),
            ),
            (&["text/event-stream"], Some(StreamOnly)),
            (&["text/*"], Some(StreamOnly)),
            (&["application/json;q=0, */*"], Some(StreamOnly)),
            (
                &["application/*;q=0, application/json, text/event-stream"],
                Some(Both),
            ),
            (&["text/html"], None),
            (&["*/*;q=0"], None),
            (&["application/jsonx, text/event-streams"], None),
            (&["\u{ff}"], None),
        ] {
            let mut headers = vec![JSON];
            headers.extend(list.iter().map(|value| ("accept", *value)));
            let outcome = check(Method::POST, "/", &headers, &Policy::default());
            match want {
                Some(want) => assert_eq!(outcome.unwrap(), want, "{list:?}"),
                None => refused(outcome, 406, "`Accept`"),
            }
        }
    }

    #[test]
    fn origins_and_hosts_that_are_none_are_refused_when_they_are_written() {
        for text in [
            "",
            "null",
            "example.com",
            "https://",
            "https://a/",
            "https://a b",
            "https://ä",
            "https://a:x",
            "://a",
            "https://[::1",
            "https://[x]",
        ] {
            let error = text.parse::<Origin>().expect_err(text);
            assert!(error.to_string().contains("https://app.example.com"));
        }
        for text in ["", "https://a", "a/b", "a:b", "a:1:2", "[::1]x", "ä"] {
            let error = text.parse::<Host>().expect_err(text);
            assert!(error.to_string().contains("localhost:8080"));
        }
        let shown = |text: &str| text.parse::<Origin>().unwrap().to_string();
        assert_eq!(shown("HTTP://A.b:80"), "http://a.b");
        assert_eq!(shown("http://[0::1]:81"), "http://[::1]:81");
        assert_eq!(shown("chrome-extension://abc"), "chrome-extension://abc");
    }
}
