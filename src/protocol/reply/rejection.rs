//! A request that is refused before it reaches a handler: its error, its status, and the rule.

use bytes::Bytes;
use http::StatusCode;

use super::codes;
use super::rpc_error::RpcError;
use crate::protocol::id::RequestId;

/// A request that reaches no handler. It is boxed, so that the checks return their outcome in a
/// register.
#[derive(Clone, Debug)]
pub(crate) struct Rejection(Box<Answer>);

/// The error that answers it, and what else the answer needs.
#[derive(Clone, Debug)]
struct Answer {
    error: RpcError,
    id: Option<RequestId>,
    reason: &'static str,
}

impl Rejection {
    /// `reason` names the rule, for traces.
    ///
    /// It is cold, so that the code of a request that passes stays together.
    #[cold]
    pub(crate) fn new(
        status: StatusCode,
        code: i64,
        reason: &'static str,
        message: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        Self::of(
            RpcError::new(code, message).with_status(status),
            None,
            reason,
        )
    }

    /// A request from an origin, or to a host, that is not allowed.
    #[cold]
    pub(crate) fn forbidden(
        reason: &'static str,
        message: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            codes::INVALID_REQUEST,
            reason,
            message,
        )
    }

    /// A request that is refused with this error.
    #[cold]
    pub(crate) fn of(error: RpcError, id: Option<RequestId>, reason: &'static str) -> Self {
        Self(Box::new(Answer { error, id, reason }))
    }

    pub(crate) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.0.id = id;
        self
    }

    pub(crate) fn with_data(mut self, data: impl serde::Serialize) -> Self {
        self.0.error = self.0.error.with_data(data);
        self
    }

    /// Appends to the message.
    pub(crate) fn adding(mut self, more: &str) -> Self {
        let message = format!("{}{more}", self.0.error.message());
        self.0.error = self.0.error.with_message(message);
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.error.status()
    }

    pub(crate) fn error(&self) -> &RpcError {
        &self.0.error
    }

    #[cfg(test)]
    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.0.id.as_ref()
    }

    /// Whether the response needs `Allow: POST`.
    pub(crate) fn allow_post(&self) -> bool {
        self.status() == StatusCode::METHOD_NOT_ALLOWED
    }

    /// The rule that was broken, in a few words.
    pub(crate) fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// The body of the response.
    pub(crate) fn to_json(&self) -> Bytes {
        let mut json = Vec::with_capacity(256);
        self.0.error.write_response(self.0.id.as_ref(), &mut json);
        json.into()
    }
}
