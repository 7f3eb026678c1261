//! JSON-RPC responses that a handler wrote by itself: recognizes them, and stamps them.

use super::members::{SUBSCRIPTION_ID, find, stamp};
use crate::protocol::id::RequestId;
use crate::protocol::json::{JsonError, Kind, Scanner, Span, scan};

/// Whether `text` is a JSON-RPC response to the request with this id.
pub(crate) fn answers(text: &str, id: &RequestId) -> bool {
    answer(text, id).is_some()
}

/// What a JSON-RPC response to the request with this id says; none when `text` is no such response.
pub(super) fn answer(text: &str, id: &RequestId) -> Option<Answer> {
    let whole = scan(text, |scanner| {
        let value = scanner.any()?;
        scanner.end()?;
        Ok(value)
    });
    let object = whole.ok().filter(|it| it.kind == Kind::Object)?.span;
    let [jsonrpc, got, result, error] =
        find(text, object, ["jsonrpc", "id", "result", "error"]).ok()?;
    let got: RequestId = serde_json::from_str(got?.span.of(text)).ok()?;
    if jsonrpc?.span.of(text) != r#""2.0""# || got != *id {
        return None;
    }
    match (result, error) {
        (Some(result), None) if result.kind == Kind::Object => Some(Answer::Result(result.span)),
        (None, Some(error)) if error.kind == Kind::Object => Some(Answer::Error),
        _ => None,
    }
}

/// What a response says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// With the place of the result.
    Result(Span),
    Error,
}

/// Adds the subscription id to the result in `json`, which is a response, unless it has one.
/// Returns whether there is a result; an error stays as it is.
pub(crate) fn stamp_result(json: &mut Vec<u8>, id: &RequestId) -> Result<bool, JsonError> {
    let text = std::str::from_utf8(json).unwrap_or_default();
    let object = scan(text, Scanner::value)?;
    let [Some(result)] = find(text, object, ["result"])? else {
        return Ok(false);
    };
    let [meta] = find(text, result.span, ["_meta"])?;
    let mut value = Vec::with_capacity(40);
    id.write_json(&mut value);
    stamp(json, result.span, meta, SUBSCRIPTION_ID, &value)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_stamped_and_an_error_is_not() {
        for (json, want) in [
            (
                r#" {"id":1,"result":{"a":2}} "#,
                r#" {"id":1,"result":{"a":2,"_meta":{"io.modelcontextprotocol/subscriptionId":1}}} "#,
            ),
            (
                r#"{"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}},"id":1}"#,
                r#"{"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}},"id":1}"#,
            ),
            (r#"{"id":1,"error":{}}"#, r#"{"id":1,"error":{}}"#),
        ] {
            let mut stamped = json.as_bytes().to_vec();
            let has_result = stamp_result(&mut stamped, &RequestId::from(1)).unwrap();
            assert_eq!(String::from_utf8(stamped).unwrap(), want);
            assert_eq!(has_result, !json.contains("error"));
        }
    }

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
