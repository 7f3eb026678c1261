//! [`RequestMeta`]: what a request says about itself in `params._meta`, kept without its body.

use std::fmt;
use std::sync::Arc;

use http::Uri;
use serde::Serialize;
use serde_json::{Map, Value as JsonValue};

use super::envelope::{Envelope, Part};
use crate::protocol::era::Era;
use crate::protocol::id::ProgressToken;
use crate::protocol::json::raw::RawJson;
use crate::protocol::json::scratch::Scratch;
use crate::protocol::json::{Kind, Text};
use crate::protocol::notification::level::LogLevel;
use crate::protocol::reply::rpc_error::RpcError;

/// What a request says about itself in `params._meta`: who sends it, what the client can do, and what
/// it wants to hear while the request is worked on.
///
/// Cloning is cheap, and nothing here keeps the request's body alive. A notification may come without
/// any of it.
#[derive(Clone, Default)]
pub struct RequestMeta {
    /// All texts, in the order of the constants, with a NUL after each; none of them contains one.
    /// Absent texts at the end are left out; `None` when all are absent.
    texts: Option<Arc<[u8]>>,
    progress_token: Option<ProgressToken>,
    log_level: Option<LogLevel>,
    era: Era,
}

const ENDPOINT: usize = 0;
const PROTOCOL_VERSION: usize = 1;
const CLIENT_INFO: usize = 2;
const CLIENT_CAPABILITIES: usize = 3;
const TRACEPARENT: usize = 4;
const TRACESTATE: usize = 5;
const BAGGAGE: usize = 6;

impl RequestMeta {
    /// Keeps what is there and well-formed, and leaves out the rest.
    ///
    /// `legacy` is the earlier revision that the request is written in, if it is.
    pub(crate) fn new(
        envelope: &Envelope,
        text: &str,
        uri: &Uri,
        legacy: Option<&'static str>,
    ) -> Self {
        let object = |part: Part| {
            envelope
                .value(part)
                .filter(|value| value.kind == Kind::Object)
                .map_or("", |value| value.span.of(text))
        };
        let mut texts = Gather(Scratch::take());
        if let Some(scheme) = uri.scheme_str() {
            texts.push(scheme);
            texts.push("://");
        }
        if let Some(authority) = uri.authority() {
            texts.push(authority.as_str());
        }
        texts.push(uri.path());
        if let Some(query) = uri.query() {
            texts.push("?");
            texts.push(query);
        }
        texts.end();
        match legacy {
            None => {
                texts.push_string(envelope.text(Part::ProtocolVersion), text, has_no_nul);
            }
            Some(version) => {
                texts.push(version);
                texts.end();
            }
        }
        texts.push(object(Part::ClientInfo));
        texts.end();
        texts.push(object(Part::ClientCapabilities));
        texts.end();
        if envelope.text(Part::Traceparent).is_some() || envelope.text(Part::Baggage).is_some() {
            texts.push_trace(envelope, text);
        }
        Self {
            texts: texts.finish(),
            progress_token: envelope
                .value(Part::ProgressToken)
                .and_then(|value| ProgressToken::from_json(value, text)),
            log_level: envelope
                .text(Part::LogLevel)
                .and_then(|level| level.decode(text)?.parse().ok()),
            era: match legacy {
                None => Era::Modern,
                Some(_) => Era::Legacy,
            },
        }
    }

    fn text(&self, which: usize) -> Option<&str> {
        let text = self.texts.as_deref()?.split(|byte| *byte == 0).nth(which)?;
        // Only whole strings are ever put in.
        let text = std::str::from_utf8(text).unwrap_or_default();
        (!text.is_empty()).then_some(text)
    }

    /// The token under which the client wants the progress, if it wants any.
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.progress_token.as_ref()
    }

    /// The least severe level of log messages that the client wants; without one it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Which era of the protocol the request belongs to.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The protocol version that the request is written in. One with a NUL in it is left out.
    ///
    /// A request of an [earlier revision](Era::Legacy) names it in its header, or else is taken for
    /// `2025-03-26`.
    pub fn protocol_version(&self) -> Option<&str> {
        self.text(PROTOCOL_VERSION)
    }

    /// The client's name and version, an object. It is what the client claims: fit for display and
    /// logs, not for decisions.
    pub fn client_info(&self) -> Option<RawJson<'_>> {
        self.text(CLIENT_INFO).map(RawJson::new)
    }

    /// What the client can do in this request, an object.
    ///
    /// [`require_capabilities`](Self::require_capabilities) checks it.
    pub fn client_capabilities(&self) -> Option<RawJson<'_>> {
        self.text(CLIENT_CAPABILITIES).map(RawJson::new)
    }

    /// The caller's position in a trace, in the form of the `traceparent` header of W3C Trace Context.
    /// A malformed one is left out.
    pub fn traceparent(&self) -> Option<&str> {
        self.text(TRACEPARENT)
    }

    /// What vendors add to the trace, in the form of the `tracestate` header. Only there with a
    /// [`traceparent`](Self::traceparent).
    pub fn tracestate(&self) -> Option<&str> {
        self.text(TRACESTATE)
    }

    /// Names and values that travel with the trace, in the form of the W3C `baggage` header.
    pub fn baggage(&self) -> Option<&str> {
        self.text(BAGGAGE)
    }

    /// The URI that the request was sent to; empty when it is not known.
    pub(crate) fn endpoint(&self) -> &str {
        self.text(ENDPOINT).unwrap_or_default()
    }

    /// For a request that named no level.
    pub(crate) fn default_log_level(&mut self, level: Option<LogLevel>) {
        self.log_level = self.log_level.or(level);
    }

    /// For a client that takes no stream: there is nowhere to send progress and log messages.
    pub(crate) fn clear_progress_token_and_log_level(&mut self) {
        self.progress_token = None;
        self.log_level = None;
    }

    /// Checks that the client declared every capability in `required`, an object shaped like the
    /// client's own: `{"sampling": {"tools": {}}}` asks for `sampling` and in it `tools`.
    ///
    /// # Errors
    ///
    /// -32021 with the missing ones as `requiredCapabilities` in the data. -32603 when `required` is
    /// no object or does not serialize.
    pub fn require_capabilities(&self, required: impl Serialize) -> Result<(), RpcError> {
        let Ok(JsonValue::Object(required)) = serde_json::to_value(required) else {
            return Err(RpcError::internal(
                "the capabilities that this request requires are not written as an object",
            ));
        };
        let declared: Map<String, JsonValue> = self
            .client_capabilities()
            .and_then(|declared| declared.parse().ok())
            .unwrap_or_default();
        let missing = missing(&required, &declared);
        if missing.is_empty() {
            return Ok(());
        }
        let mut names = String::new();
        list(&missing, &required, &declared, "", &mut names);
        Err(RpcError::missing_capability(missing).with_message(format!(
            "The request needs client capabilities that it does not declare in \
             `_meta[\"io.modelcontextprotocol/clientCapabilities\"]`: {names}"
        )))
    }
}

/// What of `required` is not in `declared`, in the shape of `required`.
fn missing(
    required: &Map<String, JsonValue>,
    declared: &Map<String, JsonValue>,
) -> Map<String, JsonValue> {
    required
        .iter()
        .filter_map(|(name, inner)| {
            let lacking = match (declared.get(name), inner) {
                (None | Some(JsonValue::Null), _) => inner.clone(),
                (Some(JsonValue::Object(declared)), JsonValue::Object(inner)) => {
                    let lacking = missing(inner, declared);
                    if lacking.is_empty() {
                        return None;
                    }
                    lacking.into()
                }
                (Some(_), JsonValue::Object(inner)) if !inner.is_empty() => inner.clone().into(),
                _ => return None,
            };
            Some((name.clone(), lacking))
        })
        .collect()
}

/// Appends the dotted names of the missing capabilities.
fn list(
    missing: &Map<String, JsonValue>,
    required: &Map<String, JsonValue>,
    declared: &Map<String, JsonValue>,
    prefix: &str,
    names: &mut String,
) {
    for (name, lacking) in missing {
        match (lacking, required.get(name), declared.get(name)) {
            (
                JsonValue::Object(lacking),
                Some(JsonValue::Object(required)),
                Some(JsonValue::Object(declared)),
            ) => list(
                lacking,
                required,
                declared,
                &format!("{prefix}{name}."),
                names,
            ),
            _ => {
                let comma = if names.is_empty() { "" } else { ", " };
                names.push_str(&format!("{comma}{prefix}{name}"));
            }
        }
    }
}

impl fmt::Debug for RequestMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestMeta")
            .field("era", &self.era)
            .field("progress_token", &self.progress_token)
            .field("log_level", &self.log_level)
            .field("protocol_version", &self.protocol_version())
            .field("client_info", &self.client_info())
            .field("client_capabilities", &self.client_capabilities())
            .field("traceparent", &self.traceparent())
            .field("tracestate", &self.tracestate())
            .field("baggage", &self.baggage())
            .finish()
    }
}

/// Collects texts in a recycled buffer, so that they cost a single allocation.
struct Gather(Scratch);

impl Gather {
    #[inline(never)]
    fn push(&mut self, text: &str) {
        self.0.0.extend_from_slice(text.as_bytes());
    }

    #[inline(never)]
    fn push_trace(&mut self, envelope: &Envelope, text: &str) {
        // Without a trace the state of one means nothing.
        let traced = self.push_string(envelope.text(Part::Traceparent), text, is_traceparent);
        let tracestate = envelope.text(Part::Tracestate).filter(|_| traced);
        self.push_string(tracestate, text, is_header_text);
        self.push_string(envelope.text(Part::Baggage), text, is_header_text);
    }

    /// Appends a string, unescaped, if it is there and fits, and ends it.
    fn push_string(
        &mut self,
        string: Option<Text>,
        text: &str,
        fits: impl Fn(&str) -> bool,
    ) -> bool {
        let string = string.and_then(|string| string.decode(text));
        let string = string.filter(|string| fits(string));
        if let Some(string) = &string {
            self.push(string);
        }
        self.end();
        string.is_some()
    }

    fn end(&mut self) {
        self.0.0.push(0);
    }

    fn finish(mut self) -> Option<Arc<[u8]>> {
        while self.0.0.pop_if(|last| *last == 0).is_some() {}
        (!self.0.0.is_empty()).then(|| self.0.0.as_slice().into())
    }
}

/// Whether a text can be kept among the others. No URI and no JSON text contains a NUL; only an
/// unescaped string may.
fn has_no_nul(text: &str) -> bool {
    !text.contains('\0')
}

/// `version-traceid-parentid-flags` in lower-case hexadecimal. Later versions may append more.
fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str| {
        part.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let mut parts = text.splitn(5, '-');
    let mut part = |length| {
        parts
            .next()
            .filter(|part| part.len() == length && hex(part))
    };
    let (Some(version), Some(trace), Some(parent), Some(_flags)) =
        (part(2), part(32), part(16), part(2))
    else {
        return false;
    };
    version != "ff"
        && !zero(trace)
        && !zero(parent)
        && match parts.next() {
            None => true,
            Some(more) => version != "00" && is_header_text(more),
        }
}

/// Text that a header could carry.
fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}
