use bytes::Bytes;
use http::StatusCode;

use super::id::RequestId;
use super::rpc_error::RpcError;

/// A request that reaches no handler: the error that answers it, and what else the answer needs.
#[derive(Clone, Debug)]
pub(crate) struct Rejection {
    error: RpcError,
    id: Option<RequestId>,
    reason: &'static str,
}

impl Rejection {
    /// `reason` names the rule, for traces.
    ///
    /// Cold, so that what the checks run through lies together.
    #[cold]
    pub(crate) fn new(
        status: StatusCode,
        code: i64,
        reason: &'static str,
        message: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        Self {
            error: RpcError::new(code, message).with_status(status),
            id: None,
            reason,
        }
    }

    /// A request that is refused with this error.
    #[cold]
    pub(crate) fn of(error: RpcError, id: Option<RequestId>, reason: &'static str) -> Self {
        Self { error, id, reason }
    }

    pub(crate) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    pub(crate) fn with_data(mut self, data: impl serde::Serialize) -> Self {
        self.error = self.error.with_data(data);
        self
    }

    /// Appends to the message.
    pub(crate) fn adding(mut self, more: &str) -> Self {
        let message = format!("{}{more}", self.error.message());
        self.error = self.error.with_message(message);
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.error.status()
    }

    pub(crate) fn error(&self) -> &RpcError {
        &self.error
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Whether the response needs `Allow: POST`.
    pub(crate) fn allow_post(&self) -> bool {
        self.status() == StatusCode::METHOD_NOT_ALLOWED
    }

    /// The rule that was broken, in a few words.
    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }

    /// The body of the response.
    pub(crate) fn to_json(&self) -> Bytes {
        let mut json = Vec::with_capacity(256);
        self.error.write_response(self.id.as_ref(), &mut json);
        json.into()
    }
}
