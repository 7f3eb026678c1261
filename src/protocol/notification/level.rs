//! The levels of log records.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How severe a log message is, in the order of syslog (RFC 5424).
///
/// A request names the least severe level that it wants; without one it gets no log messages.
///
/// ```
/// use mcp_channel::LogLevel;
///
/// assert!(LogLevel::Debug < LogLevel::Emergency);
/// assert_eq!("warning".parse(), Ok(LogLevel::Warning));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for debugging, such as function entry and exit.
    Debug,
    /// General information, such as progress of an operation.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warning conditions.
    Warning,
    /// Error conditions.
    Error,
    /// Critical conditions, such as the failure of a component.
    Critical,
    /// Something must be done at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// Every level, the least severe first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The level as the protocol spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(level: &str) -> Result<Self, UnknownLogLevel> {
        LogLevel::ALL
            .into_iter()
            .find(|known| known.as_str() == level)
            .ok_or(UnknownLogLevel(()))
    }
}

/// The text names no [`LogLevel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLogLevel(());

impl fmt::Display for UnknownLogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "unknown log level: expected debug, info, notice, warning, error, critical, alert or \
             emergency",
        )
    }
}

impl std::error::Error for UnknownLogLevel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_in_syslog_order_and_keep_their_spelling() {
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
            let json = serde_json::to_string(&level).unwrap();
            assert_eq!(json, format!("\"{}\"", level.as_str()));
            assert_eq!(serde_json::from_str::<LogLevel>(&json).unwrap(), level);
        }
    }

    #[test]
    fn another_spelling_is_no_level() {
        for text in ["", "Debug", "warn", "loud", " info"] {
            assert_eq!(text.parse::<LogLevel>(), Err(UnknownLogLevel(())), "{text}");
        }
    }
}
