use super::host::AllowedHosts;
use super::message::Message;
use super::origin::AllowedOrigins;
use super::rejection::Rejection;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepts {
    Both,
    JsonOnly,
    StreamOnly,
}
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    pub(crate) origins: AllowedOrigins,
    pub(crate) hosts: Option<AllowedHosts>,
}
pub(crate) fn check_head(
    _: &Method,
    _: &Uri,
    _: &HeaderMap,
    _: &Policy,
) -> Result<Accepts, Rejection> {
    todo!()
}
pub(crate) fn too_large(_: u64) -> Rejection {
    todo!()
}
pub(crate) fn too_large_for_another() -> Rejection {
    todo!()
}
pub(crate) fn broken_body(_: &dyn std::fmt::Display) -> Rejection {
    todo!()
}
pub(crate) fn check_body(
    _: &HeaderMap,
    _: &Uri,
    _: Accepts,
    _: Bytes,
) -> Result<Message, Rejection> {
    todo!()
}
