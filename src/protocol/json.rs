//! A validating JSON scanner that allocates nothing.
//!
//! It checks the whole grammar of RFC 8259 and tells where values lie; it builds no tree. Nesting is
//! bounded by [`MAX_DEPTH`] and costs no stack, so that a hostile document costs no more than its
//! bytes.

mod scanner;
mod search;

use std::borrow::Cow;
use std::fmt;

pub(crate) use scanner::Scanner;
pub(crate) use search::special;

/// How deeply arrays and objects may nest.
///
/// serde_json gives up at the same depth, counted from the value it is given: `params` lies one
/// level deeper than the message, so whatever passes here can be deserialized there.
pub(crate) const MAX_DEPTH: u32 = 128;

/// What is wrong with a text that is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    at: usize,
    what: &'static str,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for JsonError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// For messages: "is an array", "is null".
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Kind::Object => "an object",
            Kind::Array => "an array",
            Kind::String => "a string",
            Kind::Number => "a number",
            Kind::Bool => "a boolean",
            Kind::Null => "null",
        }
    }
}

/// Where a value lies in the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// The value's text; empty when `text` is not the one that was scanned.
    #[inline]
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Where a string lies, its quotes included, and whether it contains escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) span: Span,
    pub(crate) escaped: bool,
}

impl Text {
    /// What stands between the quotes, escapes and all.
    #[inline]
    pub(crate) fn inner(self, text: &str) -> &str {
        let inner = Span {
            start: self.span.start + 1,
            end: self.span.end.saturating_sub(1),
        };
        inner.of(text)
    }

    /// Whether this is the string `plain`, once unescaped.
    pub(crate) fn is(self, text: &str, plain: &str) -> bool {
        let inner = self.inner(text);
        if self.escaped {
            code_points(inner).eq(plain.chars().map(u32::from))
        } else {
            inner == plain
        }
    }

    /// The unescaped string; `None` when it holds half of a surrogate pair.
    #[inline]
    pub(crate) fn decode(self, text: &str) -> Option<Cow<'_, str>> {
        let inner = self.inner(text);
        if self.escaped {
            unescaped(inner).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// The unescaped code points; half of a surrogate pair stands for itself.
    pub(crate) fn code_points(self, text: &str) -> CodePoints<'_> {
        code_points(self.inner(text))
    }
}

/// A value of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    escaped: bool,
}

impl Value {
    /// A value other than a string.
    pub(crate) fn plain(kind: Kind, span: Span) -> Self {
        Value {
            kind,
            span,
            escaped: false,
        }
    }

    pub(crate) fn as_text(self) -> Option<Text> {
        (self.kind == Kind::String).then_some(Text {
            span: self.span,
            escaped: self.escaped,
        })
    }
}

#[cold]
fn unescaped(inner: &str) -> Option<String> {
    code_points(inner).map(char::from_u32).collect()
}

pub(crate) fn code_points(inner: &str) -> CodePoints<'_> {
    CodePoints { rest: inner }
}

/// See [`Text::code_points`].
#[derive(Clone, Debug)]
pub(crate) struct CodePoints<'a> {
    rest: &'a str,
}

impl CodePoints<'_> {
    fn unit(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        u32::from_str_radix(digits, 16).ok()
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let mut chars = self.rest.chars();
        let first = chars.next()?;
        if first != '\\' {
            self.rest = chars.as_str();
            return Some(first.into());
        }
        let escape = chars.next()?;
        self.rest = chars.as_str();
        Some(match escape {
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'u' => {
                let high = self.unit()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return Some(high);
                }
                let mut ahead = self.clone();
                ahead.rest = match ahead.rest.strip_prefix("\\u") {
                    Some(rest) => rest,
                    None => return Some(high),
                };
                match ahead.unit() {
                    Some(low) if (0xdc00..0xe000).contains(&low) => {
                        *self = ahead;
                        0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => high,
                }
            }
            other => other.into(),
        })
    }
}
