//! [`ServerInfo`]: the name and version of a server.

use serde::Serialize;

use super::sse;

/// The server's name and version, and what else a client may show of it.
///
/// ```
/// use mcp_channel::ServerInfo;
///
/// let info = ServerInfo::new("weather", "1.2.0")
///     .title("Weather for everybody")
///     .website_url("https://weather.example.com");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct ServerInfo {
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<String>,
}

impl ServerInfo {
    /// A server with this name, which is for programs, and this version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
        }
    }

    /// The name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What the server is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The URL of a page where a person can read more.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.website_url = Some(url.into());
        self
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = Vec::new();
        let written = sse::encode(&mut json, self);
        debug_assert!(written.is_ok(), "strings serialize");
        String::from_utf8(json).unwrap_or_default()
    }
}
