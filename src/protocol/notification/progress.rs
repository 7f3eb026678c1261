//! Progress: its numbers, and the frame that reports it.

use std::borrow::Cow;
use std::cmp::Ordering;

use bytes::{BufMut, BytesMut};

use crate::protocol::id::ProgressToken;
use crate::protocol::json::encode;

/// How each progress event begins.
const HEAD: &[u8] = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":";

/// How far a request has come: an amount, the total where it is known, and a text for people.
///
/// Made from a number, `(progress, total)` or `(progress, total, message)`:
///
/// ```
/// use mcp_channel::Progress;
///
/// let _ = Progress::from(25);
/// let _ = Progress::from((0.25, 1.0));
/// let _ = Progress::from((25, 100, "indexing"));
/// let _ = Progress::from(25).message(format!("{} of many", 25));
/// ```
///
/// Integers stay integers on the wire and fractions stay fractions. The protocol requires the
/// amount to increase with each notification of a request.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    pub(crate) progress: ProgressNumber,
    total: Option<ProgressNumber>,
    message: Option<Cow<'a, str>>,
}

impl<'a> Progress<'a> {
    /// The total amount of work, in the unit of the progress.
    #[must_use]
    pub fn total(mut self, total: impl Into<ProgressNumber>) -> Self {
        self.total = Some(total.into());
        self
    }

    /// A text that tells a person what is being done.
    #[must_use]
    pub fn message(mut self, message: impl Into<Cow<'a, str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Whether the numbers can be written as JSON. NaN and the infinities cannot.
    pub(crate) fn is_finite(&self) -> bool {
        self.progress.is_finite() && self.total.is_none_or(ProgressNumber::is_finite)
    }

    /// Appends the notification as one event. Runs no user code.
    pub(crate) fn append_event(&self, out: &mut BytesMut, token: &ProgressToken) {
        out.reserve(192);
        out.put_slice(HEAD);
        token.write_json(out);
        out.put_slice(br#","progress":"#);
        self.progress.append(out);
        if let Some(total) = self.total {
            out.put_slice(br#","total":"#);
            total.append(out);
        }
        if let Some(message) = &self.message {
            out.put_slice(br#","message":"#);
            encode::put_string(out, message);
        }
        out.put_slice(b"}}\n\n");
    }
}

impl<N: Into<ProgressNumber>> From<N> for Progress<'_> {
    fn from(progress: N) -> Self {
        Self {
            progress: progress.into(),
            total: None,
            message: None,
        }
    }
}

impl<N: Into<ProgressNumber>, T: Into<ProgressNumber>> From<(N, T)> for Progress<'_> {
    fn from((progress, total): (N, T)) -> Self {
        Self::from(progress).total(total)
    }
}

impl<'a, N, T, M> From<(N, T, M)> for Progress<'a>
where
    N: Into<ProgressNumber>,
    T: Into<ProgressNumber>,
    M: Into<Cow<'a, str>>,
{
    fn from((progress, total, message): (N, T, M)) -> Self {
        Self::from(progress).total(total).message(message)
    }
}

/// An amount of progress: any integer of up to 64 bits, or a finite fraction.
#[derive(Clone, Copy, Debug)]
pub struct ProgressNumber(Number);

#[derive(Clone, Copy, Debug)]
enum Number {
    Unsigned(u64),
    Negative(i64),
    /// Apart from `Double`, so that 0.1 stays 0.1.
    Single(f32),
    Double(f64),
}

impl ProgressNumber {
    fn is_finite(self) -> bool {
        match self.0 {
            Number::Unsigned(_) | Number::Negative(_) => true,
            Number::Single(n) => n.is_finite(),
            Number::Double(n) => n.is_finite(),
        }
    }

    /// Whether this is more than `last`. Two integers compare exactly, whatever their size.
    pub(crate) fn is_more_than(self, last: Self) -> bool {
        let order = match (self.0, last.0) {
            (Number::Unsigned(a), Number::Unsigned(b)) => Some(a.cmp(&b)),
            (Number::Negative(a), Number::Negative(b)) => Some(a.cmp(&b)),
            (Number::Unsigned(_), Number::Negative(_)) => Some(Ordering::Greater),
            (Number::Negative(_), Number::Unsigned(_)) => Some(Ordering::Less),
            _ => self.as_f64().partial_cmp(&last.as_f64()),
        };
        order == Some(Ordering::Greater)
    }

    fn as_f64(self) -> f64 {
        match self.0 {
            Number::Unsigned(n) => n as f64,
            Number::Negative(n) => n as f64,
            Number::Single(n) => n.into(),
            Number::Double(n) => n,
        }
    }

    fn append(self, out: &mut BytesMut) {
        let written = match self.0 {
            Number::Unsigned(n) => {
                out.put_slice(itoa::Buffer::new().format(n).as_bytes());
                Ok(())
            }
            Number::Negative(n) => {
                out.put_slice(itoa::Buffer::new().format(n).as_bytes());
                Ok(())
            }
            Number::Single(n) => serde_json::to_writer(out.writer(), &n),
            Number::Double(n) => serde_json::to_writer(out.writer(), &n),
        };
        debug_assert!(written.is_ok(), "writing to memory does not fail");
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for ProgressNumber {
            fn from(n: $integer) -> Self {
                // None is wider than 64 bits, and a number that is not negative fits into a `u64`.
                Self(match u64::try_from(n) {
                    Ok(n) => Number::Unsigned(n),
                    Err(_) => Number::Negative(n as i64),
                })
            }
        }
    )*};
}

from_integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl From<f32> for ProgressNumber {
    fn from(n: f32) -> Self {
        Self(Number::Single(n))
    }
}

impl From<f64> for ProgressNumber {
    fn from(n: f64) -> Self {
        Self(Number::Double(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event<'a>(progress: impl Into<Progress<'a>>) -> String {
        let mut out = BytesMut::new();
        progress
            .into()
            .append_event(&mut out, &ProgressToken::from("t"));
        let text = String::from_utf8(out.to_vec()).unwrap();
        let json = text
            .strip_prefix("event: message\ndata: ")
            .and_then(|t| t.strip_suffix("}}\n\n"));
        json.unwrap()
            .strip_prefix(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":"#)
            .unwrap()
            .to_owned()
    }

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(event(1), "1");
        assert_eq!(event(-1i8), "-1");
        assert_eq!(event(u64::MAX), "18446744073709551615");
        assert_eq!(event(i64::MIN), "-9223372036854775808");
        assert_eq!(event(2.5), "2.5");
        assert_eq!(event(0.1f32), "0.1");
        assert_eq!(event((1usize, 4u8)), r#"1,"total":4"#);
        assert_eq!(
            event((1, 4.5, "a\n\"\u{2028}")),
            r#"1,"total":4.5,"message":"a\n\"\u2028""#
        );
        assert_eq!(event(Progress::from(3).message("m")), r#"3,"message":"m""#);
    }

    #[test]
    fn only_finite_numbers_have_json() {
        assert!(Progress::from((1, 2.5)).is_finite());
        for bad in [
            Progress::from(f64::NAN),
            Progress::from(f32::INFINITY),
            Progress::from((1, f64::NEG_INFINITY)),
        ] {
            assert!(!bad.is_finite());
        }
    }

    #[test]
    fn more_is_exact_between_integers() {
        let n = ProgressNumber::from;
        assert!(n(9_007_199_254_740_993u64).is_more_than(n(9_007_199_254_740_992u64)));
        assert!(!n(5u64).is_more_than(n(5u64)));
        assert!(ProgressNumber::from(5.5).is_more_than(n(5)));
        assert!(!ProgressNumber::from(0.1f32).is_more_than(ProgressNumber::from(0.2)));
    }
}
