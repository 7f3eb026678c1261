#![allow(missing_docs)]
use super::id::RequestId;
use super::meta::RequestMeta;
use bytes::Bytes;
#[derive(Clone, Debug)]
pub struct Message {
    id: Option<RequestId>,
    m: RequestMeta,
    b: Bytes,
}
impl Message {
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }
    pub fn meta(&self) -> &RequestMeta {
        &self.m
    }
    pub fn is_notification(&self) -> bool {
        false
    }
    pub(crate) fn is_subscription(&self) -> bool {
        false
    }
    pub fn body(&self) -> &Bytes {
        &self.b
    }
}
