#[derive(Debug)]
pub(crate) struct Rejection;
impl Rejection {
    pub(crate) fn allow_post(&self) -> bool {
        false
    }
    pub(crate) fn status(&self) -> http::StatusCode {
        todo!()
    }
    pub(crate) fn to_json(&self) -> bytes::Bytes {
        todo!()
    }
}
