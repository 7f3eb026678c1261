//! [`RawJson`]: a valid JSON text that was not deserialized.

use std::fmt;

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

/// A JSON text that has been validated but not deserialized: any value, borrowed from the message.
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
