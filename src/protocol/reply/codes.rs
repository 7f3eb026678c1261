//! The error codes of JSON-RPC and of the protocol, for [`RpcError`](crate::RpcError).

/// The body is not one JSON text.
pub const PARSE_ERROR: i64 = -32700;
/// The body is JSON but not a request or notification.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not served.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method's parameters are not what it takes.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// A header does not match the body, or is missing or malformed.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare.
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The request's protocol version is not served.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// A resource is not there, in revisions before `2026-07-28`; see
/// [`RpcError::resource_not_found`](crate::RpcError::resource_not_found).
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
