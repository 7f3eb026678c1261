//! Adding members to JSON objects that were already written.
//!
//! A user's value is not built as a tree first. It is written once and scanned, and the few members
//! that the protocol adds are inserted where they belong.

use std::ops::Range;

use crate::protocol::json::{JsonError, Kind, Span, Value, scan};

/// The `_meta` key that ties a message to its `subscriptions/listen` request.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The `_meta` key in which a server names itself.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Finds the values of `keys` in the object at `span` of `text`. Where a key is repeated, the last
/// one counts.
pub(crate) fn find<const N: usize>(
    text: &str,
    span: Span,
    keys: [&str; N],
) -> Result<[Option<Value>; N], JsonError> {
    let mut found = [None; N];
    let object = span.of(text);
    scan(object, |scanner| {
        let mut members = scanner.object()?;
        while let Some(key) = scanner.member(&mut members)? {
            let value = scanner.any()?;
            if let Some(n) = keys.iter().position(|k| key.is(object, k)) {
                let span = value.span.within(span);
                found[n] = Some(Value { span, ..value });
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Adds `"key":value` as the last member of the object at `object` in `out`.
///
/// The value comes in parts, one after the other.
pub(crate) fn add_member(out: &mut Vec<u8>, object: Span, key: &str, value: &[&[u8]]) {
    let Range { start, end } = object.range();
    let at = end - 1;
    let empty = out[start + 1..at].iter().all(u8::is_ascii_whitespace);
    let before = out.len();
    out.extend_from_slice(if empty { b"\"" } else { b",\"" });
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
    for part in value {
        out.extend_from_slice(part);
    }
    let added = out.len() - before;
    out[at..].rotate_right(added);
}

/// Takes every member of this key out of the object at `object` in `out`, which ends there.
pub(crate) fn remove(out: &mut Vec<u8>, object: Span, key: &str) -> Result<(), JsonError> {
    let text = object.of(std::str::from_utf8(out).unwrap_or_default());
    let kept = scan(text, |scanner| {
        let mut kept = Vec::with_capacity(text.len());
        let mut members = scanner.object()?;
        while let Some(name) = scanner.member(&mut members)? {
            let value = scanner.any()?;
            if !name.is(text, key) {
                kept.push(if kept.is_empty() { b'{' } else { b',' });
                kept.extend_from_slice(name.0.of(text).as_bytes());
                kept.push(b':');
                kept.extend_from_slice(value.span.of(text).as_bytes());
            }
        }
        if kept.is_empty() {
            kept.push(b'{');
        }
        kept.push(b'}');
        Ok(kept)
    })?;
    out.splice(object.range(), kept);
    Ok(())
}

/// Replaces what is at `span` of `out` by `value`.
pub(crate) fn replace(out: &mut Vec<u8>, span: Span, value: &[u8]) {
    out.splice(span.range(), value.iter().copied());
}

/// Adds `value` under `key` to `_meta`, a member of the object at `object` in `out`.
///
/// A value that is there and not null stays, and so do its neighbours. `meta` is the object's
/// `_meta` as [`find`] found it; a `_meta` that is not an object is left as it is.
pub(crate) fn stamp(
    out: &mut Vec<u8>,
    object: Span,
    meta: Option<Value>,
    key: &str,
    value: &[u8],
) -> Result<(), JsonError> {
    let Some(meta) = meta.filter(|meta| !meta.is_null()) else {
        let parts: [&[u8]; 5] = [b"{\"", key.as_bytes(), b"\":", value, b"}"];
        match meta {
            None => add_member(out, object, "_meta", &parts),
            Some(null) => replace(out, null.span, &parts.concat()),
        }
        return Ok(());
    };
    if meta.kind != Kind::Object {
        return Ok(());
    }
    let text = std::str::from_utf8(out).unwrap_or_default();
    match find(text, meta.span, [key])? {
        [None] => add_member(out, meta.span, key, &[value]),
        [Some(null)] if null.is_null() => replace(out, null.span, value),
        [Some(_)] => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_taken_out_wherever_it_stands() {
        for (object, rest) in [
            (r#"{}"#, "{}"),
            (r#"{"t":1}"#, "{}"),
            (r#"{"t":1,"a":{"t":2}}"#, r#"{"a":{"t":2}}"#),
            (r#"{"a":1,"t":2,"b":[3]}"#, r#"{"a":1,"b":[3]}"#),
            (r#"{"a":1,"\u0074":2}"#, r#"{"a":1}"#),
            (r#"{"t":1,"t":2,"a":"t"}"#, r#"{"a":"t"}"#),
        ] {
            let mut out = format!("before{object}").into_bytes();
            let span = Span::new(6, out.len()).unwrap();
            remove(&mut out, span, "t").unwrap();
            assert_eq!(out, format!("before{rest}").into_bytes());
        }
    }

    fn stamped(json: &str) -> String {
        let mut out = json.as_bytes().to_vec();
        let object = Span::new(0, json.len()).unwrap();
        let [meta] = find(json, object, ["_meta"]).unwrap();
        stamp(&mut out, object, meta, "k", b"1").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_stamp_is_added_once_and_leaves_the_rest() {
        for (json, want) in [
            ("{}", r#"{"_meta":{"k":1}}"#),
            ("{ }", r#"{ "_meta":{"k":1}}"#),
            (r#"{"a":{}}"#, r#"{"a":{},"_meta":{"k":1}}"#),
            (r#"{"_meta":{}}"#, r#"{"_meta":{"k":1}}"#),
            (
                r#"{"_meta":{"x":2},"a":3}"#,
                r#"{"_meta":{"x":2,"k":1},"a":3}"#,
            ),
            (r#"{"_meta":null,"a":3}"#, r#"{"_meta":{"k":1},"a":3}"#),
            (
                r#"{"_meta":{"k":null,"x":2}}"#,
                r#"{"_meta":{"k":1,"x":2}}"#,
            ),
            (r#"{"_meta":{"k":"mine"}}"#, r#"{"_meta":{"k":"mine"}}"#),
            (
                r#"{"_meta":{"\u006b":"mine"}}"#,
                r#"{"_meta":{"\u006b":"mine"}}"#,
            ),
            (r#"{"_meta":7}"#, r#"{"_meta":7}"#),
        ] {
            assert_eq!(stamped(json), want);
        }
    }
}
