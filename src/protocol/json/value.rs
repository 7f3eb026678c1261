//! Where values lie in a JSON text, and what a string says once it is unescaped.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;

/// The longest text that is read, in bytes: the positions in it have [`POSITION_BITS`].
pub(crate) const MAX_LENGTH: usize = (1 << POSITION_BITS) - 1;

const POSITION_BITS: u32 = 31;

/// What is wrong with a text that is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl JsonError {
    const TOO_LONG: Self = Self {
        at: MAX_LENGTH,
        what: "2 GiB of text or more",
    };
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for JsonError {}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first variant, so that the default is all zero bits.
    #[default]
    Null,
    Object,
    Array,
    String,
    Number,
    Bool,
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

/// Where a value lies in the text, in bytes, and whether it is a string with escapes.
///
/// It is one word, so that functions return it in a register. The lower half holds the start and
/// the upper half the end; the highest bit of each half is one of the flags below.
#[derive(Clone, Copy)]
pub(crate) struct Span(NonZeroU64);

impl Span {
    const POSITION: u64 = MAX_LENGTH as u64;
    /// Always set, so that `Option<Span>` takes no more space.
    const THERE: NonZeroU64 = NonZeroU64::new(1 << POSITION_BITS).unwrap();
    const ESCAPED: u64 = 1 << (32 + POSITION_BITS);

    /// A span; an error when the text is too long to be read.
    pub(crate) fn new(start: usize, end: usize) -> Result<Self, JsonError> {
        if end > MAX_LENGTH {
            return Err(JsonError::TOO_LONG);
        }
        Ok(Self::in_reach(start, end))
    }

    /// A span in a text that is known to be short enough.
    #[inline]
    pub(super) fn in_reach(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= MAX_LENGTH);
        Self(Self::THERE | start as u64 | (end as u64) << 32)
    }

    /// The same span, marked as a string with escapes.
    pub(super) fn escaped(self) -> Self {
        Self(self.0 | Self::ESCAPED)
    }

    #[inline]
    fn start(self) -> u64 {
        self.0.get() & Self::POSITION
    }

    #[inline]
    fn end(self) -> u64 {
        self.0.get() >> 32 & Self::POSITION
    }

    #[inline]
    pub(crate) fn range(self) -> Range<usize> {
        self.start() as usize..self.end() as usize
    }

    /// A span that was found within `outer`, as a span of the text that `outer` lies in.
    #[inline]
    pub(crate) fn within(self, outer: Span) -> Self {
        let start = outer.start();
        // The sums are in range, so they leave the flags alone. `THERE` is set already; setting it
        // again shows the compiler that the sum is not zero.
        Self(Self::THERE | (self.0.get() + (start | start << 32)))
    }

    /// The value's text; empty when `text` is not the one that was scanned.
    #[inline]
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    /// As [`of`](Self::of), for bytes that are only compared.
    #[inline]
    pub(crate) fn bytes_of(self, text: &[u8]) -> &[u8] {
        text.get(self.range()).unwrap_or_default()
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range().fmt(f)
    }
}

/// Where a string lies, its quotes included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(pub(crate) Span);

impl Text {
    #[inline]
    pub(crate) fn is_escaped(self) -> bool {
        self.0.0.get() & Span::ESCAPED != 0
    }

    /// The span between the quotes, with its escapes.
    #[inline]
    pub(crate) fn between_quotes(self) -> Span {
        let Range { start, end } = self.0.range();
        Span::in_reach(start + 1, end - 1)
    }

    /// The text between the quotes, with its escapes.
    #[inline]
    pub(crate) fn inner(self, text: &str) -> &str {
        self.between_quotes().of(text)
    }

    /// Whether this is the string `plain`, once unescaped.
    #[inline]
    pub(crate) fn is(self, text: &str, plain: &str) -> bool {
        if self.is_escaped() {
            self.code_points(text).eq(plain.chars().map(u32::from))
        } else {
            self.between_quotes().bytes_of(text.as_bytes()) == plain.as_bytes()
        }
    }

    /// The unescaped string; `None` when it holds half of a surrogate pair.
    #[inline]
    pub(crate) fn decode(self, text: &str) -> Option<Cow<'_, str>> {
        self.decode_inner(self.inner(text))
    }

    /// As [`decode`](Self::decode), for the text between the quotes.
    #[inline]
    pub(crate) fn decode_inner(self, inner: &str) -> Option<Cow<'_, str>> {
        if self.is_escaped() {
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
}

impl Value {
    pub(crate) fn is_null(self) -> bool {
        self.kind == Kind::Null
    }

    #[inline]
    pub(crate) fn as_text(self) -> Option<Text> {
        (self.kind == Kind::String).then_some(Text(self.span))
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
