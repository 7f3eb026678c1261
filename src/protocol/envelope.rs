//! One pass over a body: its syntax is checked to the end, and what matters of it is located.
//! Nothing is judged here but duplicates; [`check`](super::check) does the rest.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::json::{JsonError, Kind, Scanner, Text, Value};

/// The prefix of the `_meta` keys that the protocol reserves for itself.
pub(crate) const RESERVED: &str = "io.modelcontextprotocol/";

/// Where the parts of a message lie.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// What the whole text is; nothing else is filled in unless it is an object.
    pub(crate) kind: Kind,
    pub(crate) jsonrpc: Slot,
    pub(crate) id: Slot,
    pub(crate) method: Slot,
    pub(crate) params: Slot,
    /// `params.arguments`
    pub(crate) arguments: Slot,
    /// `params.name`
    pub(crate) name: Slot,
    /// `params.uri`
    pub(crate) uri: Slot,
    /// `params._meta`
    pub(crate) meta: Slot,
    /// Whether there is a `result` or an `error`.
    pub(crate) answers: bool,
    pub(crate) fields: MetaFields,
}

/// Where the parts of `params._meta` lie.
#[derive(Debug, Default)]
pub(crate) struct MetaFields {
    pub(crate) progress_token: Slot,
    pub(crate) protocol_version: Slot,
    pub(crate) client_info: Slot,
    pub(crate) client_capabilities: Slot,
    pub(crate) log_level: Slot,
    pub(crate) traceparent: Slot,
    pub(crate) tracestate: Slot,
    pub(crate) baggage: Slot,
    /// Names under the reserved prefix that are not known here.
    others: Vec<Text>,
}

/// A member that may be there, and may be there twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) value: Option<Value>,
    pub(crate) twice: bool,
}

impl Slot {
    fn set(&mut self, value: Value) {
        self.twice |= self.value.replace(value).is_some();
    }

    pub(crate) fn text(&self) -> Option<Text> {
        self.value.and_then(Value::as_text)
    }
}

impl Envelope {
    /// Reads the whole text; an error is one of syntax.
    pub(crate) fn read(text: &str) -> Result<Self, JsonError> {
        let mut scanner = Scanner::new(text);
        let mut envelope = Envelope {
            kind: scanner.kind()?,
            jsonrpc: Slot::default(),
            id: Slot::default(),
            method: Slot::default(),
            params: Slot::default(),
            arguments: Slot::default(),
            name: Slot::default(),
            uri: Slot::default(),
            meta: Slot::default(),
            answers: false,
            fields: MetaFields::default(),
        };
        if envelope.kind == Kind::Object {
            scanner.object(|scanner, key| envelope.member(scanner, key))?;
        } else {
            scanner.value()?;
        }
        scanner.end()?;
        Ok(envelope)
    }

    fn member(&mut self, scanner: &mut Scanner<'_>, key: Text) -> Result<(), JsonError> {
        let slot = match key.decode(scanner.text()).as_deref() {
            Some("jsonrpc") => &mut self.jsonrpc,
            Some("id") => &mut self.id,
            Some("method") => &mut self.method,
            Some("params") => {
                if self.params.value.is_some() {
                    self.forget_params();
                }
                let kind = scanner.kind()?;
                let span = if kind == Kind::Object {
                    scanner.object(|scanner, key| self.param(scanner, key))?
                } else {
                    scanner.value()?
                };
                self.params.set(Value::plain(kind, span));
                return Ok(());
            }
            other => {
                self.answers |= matches!(other, Some("result" | "error"));
                scanner.value()?;
                return Ok(());
            }
        };
        slot.set(scanner.any()?);
        Ok(())
    }

    /// Of parameters that are there twice the last ones count, where nobody minds.
    #[cold]
    fn forget_params(&mut self) {
        for slot in [
            &mut self.arguments,
            &mut self.name,
            &mut self.uri,
            &mut self.meta,
        ] {
            *slot = Slot::default();
        }
        self.fields = MetaFields::default();
    }

    fn param(&mut self, scanner: &mut Scanner<'_>, key: Text) -> Result<(), JsonError> {
        let slot = match key.decode(scanner.text()).as_deref() {
            Some("name") => &mut self.name,
            Some("arguments") => &mut self.arguments,
            Some("uri") => &mut self.uri,
            Some("_meta") => {
                let kind = scanner.kind()?;
                let span = if kind == Kind::Object {
                    let fields = &mut self.fields;
                    scanner.object(|scanner, key| fields.member(scanner, key))?
                } else {
                    scanner.value()?
                };
                self.meta.set(Value::plain(kind, span));
                return Ok(());
            }
            _ => {
                scanner.value()?;
                return Ok(());
            }
        };
        slot.set(scanner.any()?);
        Ok(())
    }

    /// A member that may be there only once and is there twice. `mirrored` is the parameter that the
    /// method has mirrored in a header.
    pub(crate) fn duplicate<'a>(
        &mut self,
        text: &'a str,
        mirrored: Option<&str>,
    ) -> Option<Cow<'a, str>> {
        let fields = &mut self.fields;
        let known = [
            (self.jsonrpc.twice, "jsonrpc"),
            (self.id.twice, "id"),
            (self.method.twice, "method"),
            (self.params.twice, "params"),
            (self.meta.twice, "params._meta"),
            (fields.progress_token.twice, "progressToken"),
            (
                fields.protocol_version.twice,
                "io.modelcontextprotocol/protocolVersion",
            ),
            (
                fields.client_info.twice,
                "io.modelcontextprotocol/clientInfo",
            ),
            (
                fields.client_capabilities.twice,
                "io.modelcontextprotocol/clientCapabilities",
            ),
            (fields.log_level.twice, "io.modelcontextprotocol/logLevel"),
        ];
        if let Some((_, name)) = known.iter().find(|(twice, _)| *twice) {
            return Some(Cow::Borrowed(name));
        }
        match mirrored {
            Some("name") if self.name.twice => return Some(Cow::Borrowed("params.name")),
            Some("uri") if self.uri.twice => return Some(Cow::Borrowed("params.uri")),
            _ => {}
        }
        // Sorted, since a hostile client may send very many.
        let compare = |a: &Text, b: &Text| a.code_points(text).cmp(b.code_points(text));
        fields.others.sort_unstable_by(compare);
        fields
            .others
            .windows(2)
            .find(|pair| compare(&pair[0], &pair[1]) == Ordering::Equal)
            .map(|pair| Cow::Borrowed(pair[0].inner(text)))
    }
}

impl MetaFields {
    fn member(&mut self, scanner: &mut Scanner<'_>, key: Text) -> Result<(), JsonError> {
        let text = scanner.text();
        let name = key.decode(text);
        let slot = match name.as_deref() {
            Some("progressToken") => &mut self.progress_token,
            Some("traceparent") => &mut self.traceparent,
            Some("tracestate") => &mut self.tracestate,
            Some("baggage") => &mut self.baggage,
            Some(name) => match name.strip_prefix(RESERVED) {
                Some("protocolVersion") => &mut self.protocol_version,
                Some("clientInfo") => &mut self.client_info,
                Some("clientCapabilities") => &mut self.client_capabilities,
                Some("logLevel") => &mut self.log_level,
                Some(_) => return self.other(scanner, key),
                None => return scanner.value().map(drop),
            },
            // Half of a surrogate pair: it may still stand behind the reserved prefix.
            None => {
                let mut points = key.code_points(text);
                if RESERVED.chars().all(|c| points.next() == Some(c.into())) {
                    return self.other(scanner, key);
                }
                return scanner.value().map(drop);
            }
        };
        slot.set(scanner.any()?);
        Ok(())
    }

    fn other(&mut self, scanner: &mut Scanner<'_>, key: Text) -> Result<(), JsonError> {
        self.others.push(key);
        scanner.value().map(drop)
    }
}
