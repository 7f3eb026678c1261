//! Responses that somebody else wrote.

use super::id::RequestId;
use super::json::{Kind, Scanner, Span};
use super::members::Member;

/// Whether `text` is a JSON-RPC response to the request with this id.
pub(crate) fn answers(text: &str, id: &RequestId) -> bool {
    reads(text, id).unwrap_or(false)
}

fn reads(text: &str, id: &RequestId) -> Option<bool> {
    let mut scanner = Scanner::new(text);
    if scanner.kind().ok()? != Kind::Object {
        return None;
    }
    let object: Span = scanner.value().ok()?;
    scanner.end().ok()?;
    let [jsonrpc, got, result, error] =
        Member::find(text, object, ["jsonrpc", "id", "result", "error"]).ok()?;
    let got: RequestId = serde_json::from_str(got?.span.of(text)).ok()?;
    let is_object = |m: Option<Member>| m.is_some_and(|m| m.kind == Kind::Object);
    Some(
        jsonrpc?.span.of(text) == r#""2.0""#
            && got == *id
            && ((is_object(result) && error.is_none()) || (is_object(error) && result.is_none())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_the_id_and_one_of_result_and_error() {
        for (text, id, want) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                RequestId::from(1),
                true,
            ),
            (
                " {\n\"error\":{},\"id\":\"1\",\"jsonrpc\":\"2.0\"}\n",
                "1".into(),
                true,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "1".into(), false),
            (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, 1.into(), false),
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, 1.into(), false),
            (r#"{"id":1,"result":{}}"#, 1.into(), false),
            (r#"{"jsonrpc":"2.0","result":{}}"#, 1.into(), false),
            (r#"{"jsonrpc":"2.0","id":1}"#, 1.into(), false),
            (r#"{"jsonrpc":"2.0","id":1,"result":1}"#, 1.into(), false),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
                1.into(),
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{}} {}"#,
                1.into(),
                false,
            ),
            ("[]", 1.into(), false),
            ("hello", 1.into(), false),
            ("", 1.into(), false),
        ] {
            assert_eq!(answers(text, &id), want, "{text}");
        }
    }
}
