//! Writes the response that carries a result, with the members that the protocol adds.

use std::ops::Range;

use super::members::{SERVER_INFO, SUBSCRIPTION_ID, add_member, find, replace, stamp};
use crate::protocol::id::RequestId;
use crate::protocol::json::{JsonError, Kind, Span};

/// How a response begins.
const ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// What is wrong with a result whose type is none.
pub(super) const NO_TYPE: &str = "the `resultType` of a result is a string, or left out";

/// The type of a result that says none.
const COMPLETE: &[u8] = br#""complete""#;

/// What the layer knows and a result may lack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps<'a> {
    /// The server's name and version, as JSON.
    pub(crate) server_info: Option<&'a str>,
    /// Whether the result ends a `subscriptions/listen` request, and so carries its id.
    pub(crate) subscription: bool,
}

/// Writes a response to `out`, in wire form. `write` writes its result.
///
/// `resultType` and the stamps are added where the result lacks them.
///
/// # Errors
///
/// What is wrong with the result, when it is no object or `write` fails; `out` then holds a part
/// of it.
pub(crate) fn write_response(
    out: &mut Vec<u8>,
    id: &RequestId,
    stamps: Stamps<'_>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(), String> {
    let (of_id, start) = begin(out, id, write)?;
    let object = |out: &Vec<u8>| Span::new(start, out.len()).map_err(no_json);
    let members = |out: &Vec<u8>| {
        let text = std::str::from_utf8(out).unwrap_or_default();
        find(text, object(out)?, ["resultType", "_meta"]).map_err(no_json)
    };
    let [result_type, mut meta] = members(out)?;
    if result_type.is_some_and(|it| !matches!(it.kind, Kind::String | Kind::Null)) {
        return Err(NO_TYPE.to_owned());
    }
    if let Some(info) = stamps.server_info {
        let at = object(out)?;
        stamp(out, at, meta, SERVER_INFO, info.as_bytes()).map_err(no_json)?;
    }
    if stamps.subscription {
        [_, meta] = members(out)?;
        let id = out[of_id].to_vec();
        let at = object(out)?;
        stamp(out, at, meta, SUBSCRIPTION_ID, &id).map_err(no_json)?;
    }
    match result_type {
        None => {
            let at = object(out)?;
            add_member(out, at, "resultType", &[COMPLETE]);
        }
        Some(null) if null.is_null() => {
            // The stamps may have moved it.
            if let [Some(null), _] = members(out)? {
                replace(out, null.span, COMPLETE);
            }
        }
        Some(_) => {}
    }
    out.push(b'}');
    Ok(())
}

/// Writes a response up to the end of its result, which is an object. Where its id stands, and where
/// the result begins.
#[inline]
pub(super) fn begin(
    out: &mut Vec<u8>,
    id: &RequestId,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> Result<(Range<usize>, usize), String> {
    out.extend_from_slice(ID);
    let of_id = out.len();
    id.write_json(out);
    let of_id = of_id..out.len();
    out.extend_from_slice(br#","result":"#);
    let start = out.len();
    write(out).map_err(|e| format!("the result does not serialize: {e}"))?;
    if out.get(start) != Some(&b'{') {
        return Err("a result is a JSON object".to_owned());
    }
    Ok((of_id, start))
}

pub(super) fn no_json(error: JsonError) -> String {
    format!("the result is no JSON: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::reply::sse;
    use serde::Serialize;
    use serde_json::json;

    fn written(result: &impl Serialize, stamps: Stamps<'_>) -> Result<String, String> {
        let mut out = b"before".to_vec();
        let id = RequestId::from(7);
        write_response(&mut out, &id, stamps, |out| sse::encode(out, result))?;
        Ok(String::from_utf8(out).unwrap().split_off("before".len()))
    }

    const ALL: Stamps<'static> = Stamps {
        server_info: Some(r#"{"name":"s"}"#),
        subscription: true,
    };

    #[test]
    fn a_result_gets_what_it_lacks() {
        assert_eq!(
            written(&json!({"a": 1}), Stamps::default()).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"resultType":"complete"}}"#
        );
        assert_eq!(
            written(&json!({}), ALL).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"io.modelcontextprotocol/subscriptionId":7},"resultType":"complete"}}"#
        );
    }

    #[test]
    fn a_result_keeps_what_it_has() {
        let result = json!({
            "resultType": "input_required",
            "_meta": {SERVER_INFO: "mine", SUBSCRIPTION_ID: "other", "k": 1},
        });
        let response: serde_json::Value =
            serde_json::from_str(&written(&result, ALL).unwrap()).unwrap();
        assert_eq!(response["result"], result);
    }

    #[test]
    fn a_result_type_is_a_string_and_null_is_none() {
        assert_eq!(
            written(
                &json!({"_meta": null, "resultType": null, "z": 1}),
                Stamps::default()
            )
            .unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"_meta":null,"resultType":"complete","z":1}}"#
        );
        let stamped = written(&json!({"_meta": {}, "resultType": null}), ALL).unwrap();
        let response: serde_json::Value = serde_json::from_str(&stamped).unwrap();
        assert_eq!(response["result"]["resultType"], "complete");
        assert_eq!(response["result"]["_meta"][SUBSCRIPTION_ID], 7);
        for bad in [json!(1), json!({}), json!(false)] {
            let error = written(&json!({"resultType": bad}), Stamps::default()).unwrap_err();
            assert!(error.contains("`resultType`"));
        }
    }

    #[test]
    fn a_result_is_an_object() {
        for bad in [json!(null), json!([]), json!("{}"), json!(1)] {
            assert!(written(&bad, ALL).unwrap_err().contains("object"));
        }
        let unserializable = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(
            written(&unserializable, ALL)
                .unwrap_err()
                .contains("serialize")
        );
    }
}
