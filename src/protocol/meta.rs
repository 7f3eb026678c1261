#![allow(missing_docs)]
use super::id::ProgressToken;
use super::level::LogLevel;
#[derive(Clone, Debug, Default)]
pub struct RequestMeta {
    t: Option<ProgressToken>,
    l: Option<LogLevel>,
}
impl RequestMeta {
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.t.as_ref()
    }
    pub fn log_level(&self) -> Option<LogLevel> {
        self.l
    }
    pub(crate) fn endpoint(&self) -> &str {
        ""
    }
}
