//! Deserializing what a client sent, with errors that name the place.

use serde::Deserialize;

use crate::protocol::json::raw::RawJson;
use crate::protocol::json::{Kind, Scanner, Span, Stop, scan};
use crate::protocol::reply::rpc_error::RpcError;

impl<'a> RawJson<'a> {
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
        serde_json::from_str(self.as_str()).map_err(|error| {
            let position = format!(" at line {} column {}", error.line(), error.column());
            let what = error.to_string();
            let what = what.strip_suffix(&position).unwrap_or(&what);
            let mut path = name.to_owned();
            if let Some(at) = offset(self.as_str(), error.line(), error.column()) {
                // A text that is valid cannot fail here, and a partial path still helps.
                let _ = scan(self.as_str(), |scanner| find(scanner, at, &mut path));
            }
            if path.is_empty() {
                RpcError::invalid_params(what.to_owned())
            } else {
                RpcError::invalid_params(format!("`{path}`: {what}"))
            }
        })
    }
}

/// The byte that an error is about.
///
/// serde_json counts lines and, in them, bytes from 1. What it read counts as read, so its position is
/// the last byte of a value, but the one before an object or array that it did not go into.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before = line.checked_sub(1)?;
    let start = match before.checked_sub(1) {
        None => 0,
        Some(nth) => memchr::memchr_iter(b'\n', text.as_bytes()).nth(nth)? + 1,
    };
    let next = start + column;
    let opens = matches!(text.as_bytes().get(next), Some(b'{' | b'['));
    Some(if opens { next } else { next.saturating_sub(1) })
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
