//! One pass over a body: checks its syntax to the end, locates the members that matter, and knows
//! which of them may be there only once.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::protocol::json::{JsonError, Kind, Scanner, Span, Stop, Text, Value, scan};

/// The prefix of the `_meta` keys that the protocol reserves for itself.
pub(crate) const RESERVED: &str = "io.modelcontextprotocol/";

/// What is looked for in a message. All that follows `Params` here lies in it, and all that follows
/// `Meta` in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    JsonRpc,
    Id,
    Method,
    /// A `result` or an `error`.
    Answer,
    Params,
    Arguments,
    Name,
    Uri,
    Meta,
    ProgressToken,
    ProtocolVersion,
    ClientInfo,
    ClientCapabilities,
    LogLevel,
    Traceparent,
    Tracestate,
    Baggage,
}

const PARTS: usize = Part::Baggage as usize + 1;

/// The parts that may be there only once; the last two only where a header mirrors them.
const UNIQUE: [Part; 12] = [
    Part::JsonRpc,
    Part::Id,
    Part::Method,
    Part::Params,
    Part::Meta,
    Part::ProgressToken,
    Part::ProtocolVersion,
    Part::ClientInfo,
    Part::ClientCapabilities,
    Part::LogLevel,
    Part::Name,
    Part::Uri,
];

impl Part {
    /// The name of the part in an error: its path, or its key if it lies in `_meta`.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Part::JsonRpc => "jsonrpc",
            Part::Id => "id",
            Part::Method => "method",
            Part::Answer => "result",
            Part::Params => "params",
            Part::Arguments => "params.arguments",
            Part::Name => "params.name",
            Part::Uri => "params.uri",
            Part::Meta => "params._meta",
            Part::ProgressToken => "progressToken",
            Part::ProtocolVersion => "io.modelcontextprotocol/protocolVersion",
            Part::ClientInfo => "io.modelcontextprotocol/clientInfo",
            Part::ClientCapabilities => "io.modelcontextprotocol/clientCapabilities",
            Part::LogLevel => "io.modelcontextprotocol/logLevel",
            Part::Traceparent => "traceparent",
            Part::Tracestate => "tracestate",
            Part::Baggage => "baggage",
        }
    }
}

/// The part that a member of this name is, in the part `outer` or, without one, in the message.
fn part_of(outer: Option<Part>, name: &str) -> Option<Part> {
    match outer {
        None => in_message(name),
        Some(Part::Params) => in_params(name),
        Some(Part::Meta) => in_meta(name),
        Some(_) => None,
    }
}

fn in_message(name: &str) -> Option<Part> {
    Some(match name {
        "jsonrpc" => Part::JsonRpc,
        "id" => Part::Id,
        "method" => Part::Method,
        "params" => Part::Params,
        "result" | "error" => Part::Answer,
        _ => return None,
    })
}

fn in_params(name: &str) -> Option<Part> {
    Some(match name {
        "name" => Part::Name,
        "arguments" => Part::Arguments,
        "uri" => Part::Uri,
        "_meta" => Part::Meta,
        _ => return None,
    })
}

fn in_meta(name: &str) -> Option<Part> {
    Some(match name {
        "progressToken" => Part::ProgressToken,
        "traceparent" => Part::Traceparent,
        "tracestate" => Part::Tracestate,
        "baggage" => Part::Baggage,
        _ => match name.strip_prefix(RESERVED)? {
            "protocolVersion" => Part::ProtocolVersion,
            "clientInfo" => Part::ClientInfo,
            "clientCapabilities" => Part::ClientCapabilities,
            "logLevel" => Part::LogLevel,
            _ => return None,
        },
    })
}

/// Where the parts of a message lie.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// What the whole text is; nothing is found unless it is an object.
    pub(crate) kind: Kind,
    slots: [Slot; PARTS],
    /// Names under the reserved prefix that are not known here.
    others: Vec<Text>,
}

/// A member that may be there, and may be there twice.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    span: Option<Span>,
    kind: Kind,
    twice: bool,
}

impl Envelope {
    /// The part's value. The last one counts where it is repeated.
    #[inline]
    pub(crate) fn value(&self, part: Part) -> Option<Value> {
        let Slot { span, kind, .. } = self.slots[part as usize];
        span.map(|span| Value { kind, span })
    }

    /// The part's kind, when it is there.
    #[inline]
    pub(crate) fn kind(&self, part: Part) -> Option<Kind> {
        self.value(part).map(|value| value.kind)
    }

    /// The part, when it is a string.
    #[inline]
    pub(crate) fn text(&self, part: Part) -> Option<Text> {
        self.value(part).and_then(Value::as_text)
    }

    pub(crate) fn is_repeated(&self, part: Part) -> bool {
        self.slots[part as usize].twice
    }

    /// Reads the whole text into an empty envelope; an error is one of syntax.
    pub(crate) fn read(&mut self, text: &str) -> Result<(), JsonError> {
        scan(text, |scanner| {
            self.kind = scanner.kind()?;
            if self.kind == Kind::Object {
                self.object(scanner, None)?;
            } else {
                scanner.value()?;
            }
            scanner.end()
        })
    }

    /// Reads the object that is the part `outer` or, without one, the message.
    fn object(&mut self, scanner: &mut Scanner<'_>, outer: Option<Part>) -> Result<Span, Stop> {
        let text = scanner.text();
        let mut object = scanner.object()?;
        while let Some(key) = scanner.member(&mut object)? {
            let name = key.decode(text);
            let Some(part) = name.as_deref().and_then(|name| part_of(outer, name)) else {
                if outer == Some(Part::Meta) && is_reserved(key, text) {
                    self.others.push(key);
                }
                scanner.value()?;
                continue;
            };
            let nests = matches!(part, Part::Params | Part::Meta);
            if nests && self.value(part).is_some() {
                self.forget_within(part);
            }
            let value = if nests && scanner.kind()? == Kind::Object {
                Value {
                    kind: Kind::Object,
                    span: self.object(scanner, Some(part))?,
                }
            } else {
                scanner.any()?
            };
            self.slots[part as usize].set(value);
        }
        Ok(scanner.span(&object))
    }

    /// Of a repeated object the last one counts, where it may be repeated.
    #[cold]
    fn forget_within(&mut self, part: Part) {
        self.slots[part as usize + 1..].fill(Slot::default());
        self.others.clear();
    }

    /// A member that may be there only once and is there twice. `mirrored` is the parameter that a
    /// header mirrors for this method.
    pub(crate) fn duplicate<'a>(
        &self,
        text: &'a str,
        mirrored: Option<Part>,
    ) -> Option<Cow<'a, str>> {
        let twice = |part: &Part| match part {
            Part::Name | Part::Uri if mirrored != Some(*part) => false,
            part => self.is_repeated(*part),
        };
        if let Some(part) = UNIQUE.into_iter().find(twice) {
            return Some(Cow::Borrowed(part.shown()));
        }
        // A set of unescaped names, since a hostile client may send very many.
        let mut seen = HashSet::new();
        let name = |key: &Text| {
            let points = || key.code_points(text).collect::<Vec<_>>();
            key.decode(text).ok_or_else(points)
        };
        let twice = self.others.iter().find(|key| !seen.insert(name(key)))?;
        Some(name(twice).unwrap_or_else(|_| Cow::Borrowed(twice.inner(text))))
    }
}

impl Slot {
    fn set(&mut self, Value { kind, span }: Value) {
        self.kind = kind;
        self.twice |= self.span.replace(span).is_some();
    }
}

/// Whether a name is under the prefix that the protocol reserves, even if half of a surrogate pair
/// stands behind it.
fn is_reserved(key: Text, text: &str) -> bool {
    let mut points = key.code_points(text);
    RESERVED.chars().all(|c| points.next() == Some(c.into()))
}
