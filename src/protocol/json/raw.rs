use std::fmt;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use super::{Kind, Scanner, Span, Stop, scan};
use crate::protocol::reply::rpc_error::RpcError;

/// A JSON text that has been validated but not read: any value, borrowed from the message.
///
/// ```
/// # fn check(capabilities: mcp_channel::RawJson<'_>) -> Result<(), mcp_channel::RpcError> {
/// #[derive(serde::Deserialize)]
/// struct Capabilities {
///     sampling: Option<serde_json::Value>,
/// }
///
/// let capabilities: Capabilities = capabilities.parse()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// The text must be valid JSON.
    pub(crate) fn new(valid: &'a str) -> Self {
        RawJson(valid)
    }

    /// The JSON text as the client wrote it.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Deserializes the value, borrowing from it where `T` can.
    ///
    /// # Errors
    ///
    /// -32602 with a message that tells where the value differs from `T`, and how.
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, RpcError> {
        self.parse_as("")
    }

    /// As [`parse`](Self::parse); messages call the value `name`.
    pub(crate) fn parse_as<T: Deserialize<'a>>(self, name: &str) -> Result<T, RpcError> {
        serde_json::from_str(self.0).map_err(|error| {
            let position = format!(" at line {} column {}", error.line(), error.column());
            let what = error.to_string();
            let what = what.strip_suffix(&position).unwrap_or(&what);
            let mut path = name.to_owned();
            if let Some(at) = offset(self.0, error.line(), error.column()) {
                // A text that is valid cannot fail here, and a partial path still helps.
                let _ = scan(self.0, |scanner| find(scanner, at, &mut path));
            }
            if path.is_empty() {
                RpcError::invalid_params(what.to_owned())
            } else {
                RpcError::invalid_params(format!("`{path}`: {what}"))
            }
        })
    }
}

/// The byte that serde_json's position points at: it counts lines and, in them, bytes from 1.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before = line.checked_sub(1)?;
    let start = match before.checked_sub(1) {
        None => 0,
        Some(nth) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(nth)? + 1,
    };
    Some(start + column.saturating_sub(1))
}

/// Extends `path` by the way to the innermost value that contains the byte `at`. The scanner bounds
/// the recursion.
fn find(scanner: &mut Scanner<'_>, at: usize, path: &mut String) -> Result<Span, Stop> {
    let text = scanner.text();
    match scanner.kind()? {
        Kind::Object => {
            let mut object = scanner.object()?;
            while let Some(name) = scanner.member(&mut object)? {
                let dot = if path.is_empty() { "" } else { "." };
                let name = name.decode(text).unwrap_or(name.inner(text).into());
                step(scanner, at, path, &format!("{dot}{name}"))?;
            }
            Ok(scanner.span(&object))
        }
        Kind::Array => {
            let mut array = scanner.array()?;
            let mut index = 0;
            while scanner.element(&mut array)? {
                step(scanner, at, path, &format!("[{index}]"))?;
                index += 1;
            }
            Ok(scanner.span(&array))
        }
        _ => scanner.value(),
    }
}

/// Extends `path` by `part` and what [`find`] finds in the value that comes next, if the byte is there.
fn step(scanner: &mut Scanner<'_>, at: usize, path: &mut String, part: &str) -> Result<(), Stop> {
    let length = path.len();
    path.push_str(part);
    let found = find(scanner, at, path)?;
    if !found.range().contains(&at) {
        path.truncate(length);
    }
    Ok(())
}

impl fmt::Display for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({})", self.0)
    }
}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.0)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}
