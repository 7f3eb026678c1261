//! One pass over a body: its syntax is checked to the end, and what matters of it is located.
//! Nothing is judged here but duplicates; [`check`](super::check) does the rest.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::json::{JsonError, Kind, Scanner, Span, Stop, Text, Value, scan};

/// The prefix of the `_meta` keys that the protocol reserves for itself.
pub(crate) const RESERVED: &str = "io.modelcontextprotocol/";

/// Where the parts of a message lie.
#[derive(Debug, Default)]
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
    /// Whether any slot was filled twice.
    repeats: bool,
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
    /// Whether any slot was filled twice.
    repeats: bool,
    /// Names under the reserved prefix that are not known here.
    others: Vec<Text>,
}

/// A member that may be there, and may be there twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    span: Option<Span>,
    kind: Kind,
    pub(crate) twice: bool,
}

impl Slot {
    /// Whether it was filled before.
    fn set(&mut self, Value { kind, span }: Value) -> bool {
        self.kind = kind;
        self.twice |= self.span.replace(span).is_some();
        self.twice
    }

    #[inline]
    pub(crate) fn value(&self) -> Option<Value> {
        let kind = self.kind;
        self.span.map(|span| Value { kind, span })
    }

    #[inline]
    pub(crate) fn text(&self) -> Option<Text> {
        self.value().and_then(Value::as_text)
    }
}

impl Envelope {
    /// Reads the whole text into an empty envelope; an error is one of syntax.
    pub(crate) fn read(&mut self, text: &str) -> Result<(), JsonError> {
        scan(text, |scanner| {
            self.kind = scanner.kind()?;
            if self.kind == Kind::Object {
                self.members(scanner)?;
            } else {
                scanner.value()?;
            }
            scanner.end()
        })
    }

    fn members(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        let mut object = scanner.object()?;
        while let Some(key) = scanner.member(&mut object)? {
            let slot = match key.decode(scanner.text()).as_deref() {
                Some("jsonrpc") => &mut self.jsonrpc,
                Some("id") => &mut self.id,
                Some("method") => &mut self.method,
                Some("params") => {
                    let params = self.params(scanner)?;
                    self.repeats |= self.params.set(params);
                    continue;
                }
                other => {
                    self.answers |= matches!(other, Some("result" | "error"));
                    scanner.value()?;
                    continue;
                }
            };
            self.repeats |= slot.set(scanner.any()?);
        }
        Ok(())
    }

    fn params(&mut self, scanner: &mut Scanner<'_>) -> Result<Value, Stop> {
        if self.params.span.is_some() {
            self.forget_params();
        }
        let kind = scanner.kind()?;
        if kind != Kind::Object {
            return scanner.any();
        }
        let mut object = scanner.object()?;
        while let Some(key) = scanner.member(&mut object)? {
            let slot = match key.decode(scanner.text()).as_deref() {
                Some("name") => &mut self.name,
                Some("arguments") => &mut self.arguments,
                Some("uri") => &mut self.uri,
                Some("_meta") => {
                    let meta = self.fields.read(scanner)?;
                    self.repeats |= self.meta.set(meta);
                    continue;
                }
                _ => {
                    scanner.value()?;
                    continue;
                }
            };
            self.repeats |= slot.set(scanner.any()?);
        }
        let span = scanner.span(&object);
        Ok(Value { kind, span })
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

    /// A member that may be there only once and is there twice. `mirrored` is the parameter that the
    /// method has mirrored in a header.
    #[inline]
    pub(crate) fn duplicate<'a>(
        &mut self,
        text: &'a str,
        mirrored: Option<&str>,
    ) -> Option<Cow<'a, str>> {
        if self.repeats || self.fields.repeats || !self.fields.others.is_empty() {
            return self.find_duplicate(text, mirrored);
        }
        None
    }

    #[cold]
    fn find_duplicate<'a>(
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
    fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<Value, Stop> {
        let kind = scanner.kind()?;
        if kind != Kind::Object {
            return scanner.any();
        }
        let text = scanner.text();
        let mut object = scanner.object()?;
        while let Some(key) = scanner.member(&mut object)? {
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
                    other => {
                        self.others.extend(other.map(|_| key));
                        scanner.value()?;
                        continue;
                    }
                },
                // Half of a surrogate pair: it may still stand behind the reserved prefix.
                None => {
                    let mut points = key.code_points(text);
                    let reserved = RESERVED.chars().all(|c| points.next() == Some(c.into()));
                    self.others.extend(reserved.then_some(key));
                    scanner.value()?;
                    continue;
                }
            };
            self.repeats |= slot.set(scanner.any()?);
        }
        let span = scanner.span(&object);
        Ok(Value { kind, span })
    }
}
