//! A JSON value that keeps what a client may rely on: the digits of its numbers and the order of its keys.
//!
//! `serde_json::Value` turns an integer beyond 64 bits into a float, and the feature that prevents it would be switched on for
//! the crate under test as well. So numbers stay the text that they were.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deeper documents than this are refused; the parser below recurses.
const MAX_DEPTH: usize = 128;

#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    String(String),
    Array(Vec<Json>),
    /// In the order in which the keys came; no key is there twice.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    fn parse_at(text: &str, depth: usize) -> Result<Self, serde_json::Error> {
        if depth > MAX_DEPTH {
            return Err(serde_json::Error::custom("nested too deeply"));
        }
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = serde_json::from_str(text)?;
                let mut members: Vec<(String, Self)> = Vec::with_capacity(pairs.len());
                for (key, raw) in pairs {
                    if members.iter().any(|(k, _)| *k == key) {
                        return Err(serde_json::Error::custom(format_args!(
                            "duplicate key {key:?}"
                        )));
                    }
                    members.push((key.into_owned(), Self::parse_at(raw.get(), depth + 1)?));
                }
                Self::Object(members)
            }
            Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(text)?
                .into_iter()
                .map(|raw| Self::parse_at(raw.get(), depth + 1))
                .collect::<Result<_, _>>()
                .map(Self::Array)?,
            Some(b'"') => Self::String(serde_json::from_str(text)?),
            Some(b't' | b'f') => Self::Bool(serde_json::from_str(text)?),
            Some(b'n') => Self::Null,
            _ => Self::Number(text.to_owned()),
        })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .iter()
                .find(|(k, _)| k == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Equal as a reader of JSON sees it: `1` and `1.0` are one number, the order of keys does not count.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.equal(other, |a, b| match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a == b,
            _ => matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b),
        })
    }

    /// [`same`](Self::same), and integers are integers, digit for digit.
    pub(crate) fn exactly(&self, other: &Self) -> bool {
        self.equal(other, |a, b| match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a == b,
            (None, None) => {
                matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
            }
            _ => false,
        })
    }

    fn equal(&self, other: &Self, numbers: fn(&str, &str) -> bool) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => numbers(a, b),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equal(b, numbers))
            }
            (Self::Object(a), Self::Object(_)) => {
                let Self::Object(b) = other else { return false };
                a.len() == b.len()
                    && a.iter()
                        .all(|(key, a)| other.get(key).is_some_and(|b| a.equal(b, numbers)))
            }
            _ => false,
        }
    }
}

/// The digits of an integer literal; none for one with a fraction or an exponent.
fn integer(literal: &str) -> Option<&str> {
    let integer = !literal.contains(['.', 'e', 'E']);
    integer.then_some(if literal == "-0" { "0" } else { literal })
}

/// The same text again, without white space.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::to_string(text).map_err(|_| fmt::Error);
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => f.write_str(&quoted(text)?),
            Self::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (i, (key, value)) in members.iter().enumerate() {
                    write!(
                        f,
                        "{}{}:{value}",
                        if i == 0 { "" } else { "," },
                        quoted(key)?
                    )?;
                }
                f.write_str("}")
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::parse_at(raw.get(), 0).map_err(D::Error::custom)
    }
}

/// An object's members as text; a map type would lose their order and hide duplicates.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    pairs.push((Cow::Owned(key), value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_keep_their_digits() {
        for digits in [
            "36893488147419103233",
            "9007199254740993",
            "-7",
            "1.50",
            "1e2",
        ] {
            assert_eq!(json(digits).to_string(), digits);
        }
        assert!(!json("36893488147419103233").same(&json("36893488147419103232")));
        assert!(json("1").same(&json("1.0")) && !json("1").exactly(&json("1.0")));
        assert!(json("2.5").exactly(&json("2.50")));
        assert!(!json("1").same(&json("true")) && !json("1").same(&json("\"1\"")));
    }

    #[test]
    fn the_order_of_keys_is_kept_and_does_not_count() {
        assert_eq!(
            json(r#" {"b": [1, {"c": null}], "a": "\u2028"} "#).to_string(),
            "{\"b\":[1,{\"c\":null}],\"a\":\"\u{2028}\"}"
        );
        assert!(json(r#"{"a":1,"b":2}"#).exactly(&json(r#"{"b":2,"a":1}"#)));
        assert!(!json(r#"{"a":1}"#).same(&json(r#"{"a":1,"b":2}"#)));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "nul",
            "1 2",
            "[1,]",
            "{\"a\":1,\"a\":1}",
            "NaN",
            "\"\u{1}\"",
            "01",
            "\u{feff}1",
        ] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        assert!(Json::parse(&[b'['; 100_000]).is_err());
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert!(Json::parse(&deep).is_err());
    }
}
