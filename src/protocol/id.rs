//! Request ids and progress tokens: a string or an integer, given back as it came.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::BufMut;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::json::{Kind, Scanner, Text, Value, scan};
use crate::protocol::json::encode::{has_separator, put_integer, put_json, put_string};

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// An integer that is written as Rust would write it.
    Integer(i64),
    /// Canonical JSON: `-0`, digits past 64 bits, or a string with its quotes.
    Json(Arc<str>),
}

impl Repr {
    fn from_string(string: &str) -> Self {
        let mut json = Vec::with_capacity(string.len() + 2);
        put_string(&mut json, string);
        Repr::Json(String::from_utf8_lossy(&json).into())
    }

    fn fits(value: Value, text: &str) -> bool {
        match value.kind {
            Kind::String => true,
            Kind::Number => !value
                .span
                .of(text)
                .bytes()
                .any(|byte| matches!(byte, b'.' | b'e' | b'E')),
            _ => false,
        }
    }

    /// `None` when the value is neither a string nor an integer.
    fn from_value(value: Value, text: &str) -> Option<Self> {
        let json = value.span.of(text);
        if !Self::fits(value, text) {
            return None;
        }
        match value.kind {
            Kind::String => {
                let string = value.as_text()?;
                if !string.is_escaped() && !has_separator(json.as_bytes()) {
                    return Some(Repr::Json(json.into()));
                }
                Some(match string.decode(text) {
                    Some(plain) => Repr::from_string(&plain),
                    // Half of a surrogate pair has no other spelling.
                    None => {
                        let mut kept = Vec::with_capacity(json.len());
                        put_json(&mut kept, json);
                        Repr::Json(String::from_utf8_lossy(&kept).into())
                    }
                })
            }
            Kind::Number => Some(match json.parse() {
                Ok(integer) if json != "-0" => Repr::Integer(integer),
                _ => Repr::Json(json.into()),
            }),
            _ => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self {
            Repr::Integer(integer) => Some(*integer),
            Repr::Json(json) => json.parse().ok(),
        }
    }

    fn as_str(&self) -> Option<Cow<'_, str>> {
        match self {
            Repr::Json(json) if json.starts_with('"') => string_of(json)?.decode(json),
            _ => None,
        }
    }

    fn write_json(&self, out: &mut impl BufMut) {
        match self {
            Repr::Integer(integer) => put_integer(out, *integer),
            Repr::Json(json) => out.put_slice(json.as_bytes()),
        }
    }
}

fn string_of(json: &str) -> Option<Text> {
    scan(json, Scanner::string).ok()
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repr::Integer(integer) => integer.fmt(f),
            Repr::Json(json) => f.pad(json),
        }
    }
}

impl Serialize for Repr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Repr::Integer(integer) => serializer.serialize_i64(*integer),
            Repr::Json(json) => match self.as_str() {
                // serde_json would write the separators as they are, so only plain strings go here.
                Some(Cow::Borrowed(plain)) => serializer.serialize_str(plain),
                _ => serde_json::from_str::<&RawValue>(json)
                    .map_err(serde::ser::Error::custom)?
                    .serialize(serializer),
            },
        }
    }
}

impl<'de> Deserialize<'de> for Repr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        scan(raw.get(), Scanner::any)
            .ok()
            .and_then(|value| Repr::from_value(value, raw.get()))
            .ok_or_else(|| D::Error::custom("expected a string or an integer"))
    }
}

macro_rules! string_or_integer {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        ///
        /// It is given back exactly as it came: `1` and `"1"` differ, and integers keep every digit
        /// however large they are. Cloning is cheap.
        ///
        /// `Display` shows the JSON text, a string with its quotes. Deserializing keeps all digits
        /// and therefore works with serde_json alone.
        #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Repr);

        impl $name {
            /// The integer, when it is one and fits into 64 bits.
            pub fn as_i64(&self) -> Option<i64> {
                self.0.as_i64()
            }

            /// The string, when it is one; `None` also for a string that is not Unicode because it
            /// holds half of a surrogate pair.
            ///
            /// Borrowed unless it contains characters that JSON escapes.
            pub fn as_str(&self) -> Option<Cow<'_, str>> {
                self.0.as_str()
            }

            /// `None` when the value is neither a string nor an integer. A number written with a
            /// fraction or an exponent is no integer.
            pub(crate) fn from_json(value: Value, text: &str) -> Option<Self> {
                Repr::from_value(value, text).map(Self)
            }

            /// Appends the JSON text, which holds no line end of any kind.
            pub(crate) fn write_json(&self, out: &mut impl BufMut) {
                self.0.write_json(out);
            }
        }

        impl From<i64> for $name {
            fn from(integer: i64) -> Self {
                Self(Repr::Integer(integer))
            }
        }

        impl From<&str> for $name {
            fn from(string: &str) -> Self {
                Self(Repr::from_string(string))
            }
        }

        impl From<String> for $name {
            fn from(string: String) -> Self {
                Self(Repr::from_string(&string))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

string_or_integer! {
    /// A request's id: a string or an integer that the client chose.
    RequestId
}

string_or_integer! {
    /// The token under which a client wants a request's progress: a string or an integer.
    ProgressToken
}

impl ProgressToken {
    /// Whether [`from_json`](Self::from_json) would return a token.
    pub(crate) fn fits(value: Value, text: &str) -> bool {
        Repr::fits(value, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<RequestId> {
        RequestId::from_json(scan(json, Scanner::any).unwrap(), json)
    }

    fn written(id: &RequestId) -> String {
        let mut out = Vec::new();
        id.write_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn type_and_digits_are_kept() {
        for json in [
            "0",
            "-0",
            "-7",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551616",
            "36893488147419103233",
            "-36893488147419103233",
            r#""""#,
            r#""1""#,
            r#""a b é""#,
            r#""\ud800x""#,
        ] {
            let id = read(json).unwrap();
            assert_eq!(written(&id), json);
            assert_eq!(id.to_string(), json);
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
            assert_eq!(serde_json::from_str::<RequestId>(json).unwrap(), id);
        }
        assert_ne!(read("1"), read(r#""1""#));
        assert_ne!(read("0"), read("-0"));
    }

    #[test]
    fn small_integers_and_large_ones_are_told_apart() {
        assert_eq!(read("5"), Some(5.into()));
        assert_eq!(read("5").unwrap().as_i64(), Some(5));
        assert_eq!(read("36893488147419103233").unwrap().as_i64(), None);
        assert_eq!(read("36893488147419103233").unwrap().as_str(), None);
        assert_eq!(read(r#""5""#).unwrap().as_i64(), None);
    }

    #[test]
    fn a_string_is_the_same_however_it_was_written() {
        for (json, plain, canonical) in [
            (r#""\u0061\/""#, "a/", r#""a/""#),
            (r#""a\nb\u0000""#, "a\nb\0", r#""a\nb\u0000""#),
            (
                "\"\u{2028}\u{2029}\u{85}\"",
                "\u{2028}\u{2029}\u{85}",
                r#""\u2028\u2029\u0085""#,
            ),
            (r#""\ud83d\ude00""#, "😀", r#""😀""#),
        ] {
            let id = read(json).unwrap();
            assert_eq!(id, RequestId::from(plain));
            assert_eq!(id, RequestId::from(plain.to_owned()));
            assert_eq!(id.as_str().unwrap(), plain);
            assert_eq!(written(&id), canonical);
            assert_eq!(serde_json::to_string(&id).unwrap(), canonical);
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_kept_as_it_was_written() {
        let json = "\"\\ud800\u{2028}\"";
        let id = read(json).unwrap();
        assert_eq!(id.as_str(), None);
        assert_eq!(written(&id), r#""\ud800\u2028""#);
    }

    #[test]
    fn nothing_else_is_an_id() {
        for json in [
            "null", "true", "{}", "[]", "1.5", "1.0", "1e3", "1E3", "-0.0",
        ] {
            assert_eq!(read(json), None, "{json}");
            assert!(serde_json::from_str::<RequestId>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn it_fits_into_24_bytes() {
        assert!(size_of::<Option<RequestId>>() <= 24);
    }
}
