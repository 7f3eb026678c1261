//! Arguments that a header repeats (`x-mcp-header` in a tool's schema), so that proxies can route by
//! them without reading the body.
//!
//! The layer compares the headers that every method has. It does not know the tools, so these are
//! the server's to compare.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use mcp_channel::{Message, RpcError, codes};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fails unless each header that the schema asks for says what the argument says.
pub fn check(schema: &Value, message: &Message, headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let mut mirrored = properties
        .iter()
        .filter_map(|(property, schema)| Some((property, schema["x-mcp-header"].as_str()?)))
        .peekable();
    if mirrored.peek().is_none() {
        return Ok(());
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let Params { arguments } = message.params()?;
    for (property, name) in mirrored {
        let header = format!("Mcp-Param-{name}");
        let argument = arguments.get(property).filter(|value| !value.is_null());
        compare(&header, headers, argument).map_err(|what| {
            RpcError::new(
                codes::HEADER_MISMATCH,
                format!("{header} must repeat `params.arguments.{property}`, but {what}"),
            )
        })?;
    }
    Ok(())
}

fn compare(
    header: &str,
    headers: &HeaderMap,
    argument: Option<&Value>,
) -> Result<(), &'static str> {
    let mut sent = headers.get_all(header).iter();
    let first = sent.next();
    if sent.any(|other| Some(other) != first) {
        return Err("there are several, and they differ");
    }
    match (first, argument) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err("it is missing"),
        (Some(_), None) => Err("there is no such argument"),
        (Some(value), Some(argument)) if says(&decode(value)?, argument) => Ok(()),
        (Some(_), Some(_)) => Err("it says something else"),
    }
}

/// The text that a header carries: as it is, or in base64 between `=?base64?` and `?=`.
fn decode(value: &HeaderValue) -> Result<String, &'static str> {
    let text = value.to_str().map_err(|_| "it is not ASCII")?;
    let text = text.trim_matches([' ', '\t']);
    let encoded = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else {
        return Ok(text.to_owned());
    };
    let bytes = BASE64
        .decode(encoded)
        .map_err(|_| "it is not base64 with padding")?;
    String::from_utf8(bytes).map_err(|_| "its base64 does not encode UTF-8")
}

fn says(text: &str, argument: &Value) -> bool {
    match argument {
        Value::String(string) => text == string,
        Value::Bool(flag) => text == if *flag { "true" } else { "false" },
        Value::Number(number) => match (number.as_i64(), text.parse::<i64>()) {
            (Some(argument), Ok(header)) => argument == header,
            // As numbers and not as texts: `42.0` is the integer 42.
            _ => number
                .as_f64()
                .is_some_and(|argument| is_safe_integer(argument) && text.parse() == Ok(argument)),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Only integers are mirrored, and of them those that every client can tell apart.
fn is_safe_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use serde_json::json;

    use super::*;

    fn checked(schema: Value, arguments: Value, headers: &[&[u8]]) -> Result<(), i64> {
        let json = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "t", "arguments": arguments},
        });
        let message = Message::parse(json.to_string()).unwrap();
        let mut map = HeaderMap::new();
        for value in headers {
            let name = HeaderName::from_static("mcp-param-region");
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let schema = json!({"type": "object", "properties": {"region": schema}});
        check(&schema, &message, &map).map_err(|error| {
            assert!(error.message().contains("Mcp-Param-Region"), "{error}");
            assert_eq!(error.status(), 400);
            error.code()
        })
    }

    #[test]
    fn a_header_says_what_its_argument_says() {
        for (argument, header) in [
            (json!("us-west1"), "us-west1"),
            (json!("us-west1"), " us-west1\t"),
            (json!("Hello"), "=?base64?SGVsbG8=?="),
            (json!(" padded "), "=?base64?IHBhZGRlZCA=?="),
            (json!("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (json!("=?base64?SGVsbG8="), "=?base64?SGVsbG8="),
            (json!("SGVsbG8="), "SGVsbG8="),
            (json!(true), "true"),
            (json!(-7), "-7"),
            (json!(7), "007"),
            (json!(7), "7.0"),
            (json!(7.0), "7"),
        ] {
            let region = json!({"x-mcp-header": "Region"});
            let sent = checked(region, json!({"region": argument}), &[header.as_bytes()]);
            assert_eq!(sent, Ok(()), "{argument} {header}");
        }
    }

    #[test]
    fn a_header_that_says_something_else_is_refused() {
        for (argument, header) in [
            (json!("us-west1"), "eu-west1"),
            (json!("us-west1"), "US-WEST1"),
            (json!("Hello"), "=?base64?SGVsbG8?="),
            (json!("Hello"), "=?base64?SGVs!!!bG8=?="),
            (json!("Hello"), "=?BASE64?SGVsbG8=?="),
            (json!("é"), "é"),
            (json!(true), "True"),
            (json!(7), "7.5"),
            (json!(7), "seven"),
            (json!(7.5), "7.5"),
            (json!({}), "{}"),
        ] {
            let region = json!({"x-mcp-header": "Region"});
            let sent = checked(region, json!({"region": argument}), &[header.as_bytes()]);
            assert_eq!(sent, Err(-32020), "{argument} {header}");
        }
    }

    #[test]
    fn a_header_is_there_when_its_argument_is_and_only_then() {
        let region = || json!({"x-mcp-header": "Region"});
        assert_eq!(checked(region(), json!({"region": "a"}), &[]), Err(-32020));
        assert_eq!(checked(region(), json!({}), &[b"a"]), Err(-32020));
        let null = json!({"region": null});
        assert_eq!(checked(region(), null.clone(), &[b"null"]), Err(-32020));
        assert_eq!(checked(region(), null, &[]), Ok(()));
        assert_eq!(checked(region(), json!({}), &[]), Ok(()));
    }

    #[test]
    fn repeated_headers_that_differ_are_refused() {
        let region = || json!({"x-mcp-header": "Region"});
        let a = || json!({"region": "a"});
        assert_eq!(checked(region(), a(), &[b"a", b"a"]), Ok(()));
        assert_eq!(checked(region(), a(), &[b"a", b"b"]), Err(-32020));
    }

    #[test]
    fn only_what_the_schema_marks_is_mirrored() {
        let plain = json!({"type": "string"});
        assert_eq!(checked(plain, json!({"region": "a"}), &[b"b"]), Ok(()));
    }
}
