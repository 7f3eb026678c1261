//! Refuses cases that would prove less than they say.

use crate::case::{Due, Expect, Request, Step, header_lines};
use crate::json::Json;
use crate::matches;

/// Every join has something to wait for, and no background exchange with expectations goes unchecked.
pub(crate) fn joined(steps: &[Step]) -> Result<(), String> {
    let mut running: Vec<(&str, bool)> = Vec::new();
    for step in steps {
        match step {
            Step::Sleep(_) => {}
            Step::Exchange(exchange) => {
                if let Some(name) = &exchange.background {
                    let checked = !matches!(&exchange.due, Due::Answer(expect) if is_empty(expect));
                    running.push((name, checked));
                }
            }
            Step::Join(name) => {
                let before = running.len();
                running.retain(|(running, _)| running != name);
                if running.len() == before {
                    return Err(format!("nothing called {name:?} runs where it is joined"));
                }
            }
        }
    }
    match running.iter().find(|(_, checked)| *checked) {
        Some((name, _)) => Err(format!(
            "{name:?} is never joined, so nobody would look at what it expects"
        )),
        None => Ok(()),
    }
}

/// A request has one body, and its changes apply to it.
pub(crate) fn request(request: &Request) -> Result<(), String> {
    let forms = [
        request.rpc.is_some(),
        request.body.is_some(),
        request.raw.is_some(),
        request.raw_hex.is_some(),
        request.repeat.is_some(),
    ];
    if forms.iter().filter(|form| **form).count() > 1 {
        return Err("a request has one of rpc, body, raw, raw_hex and repeat".into());
    }
    if request.rpc.is_none()
        && (request.meta.is_some() || request.id.is_some() || request.notification)
    {
        return Err("meta, id and notification change an rpc request".into());
    }
    if let Some((_, params)) = &request.rpc
        && !matches!(params, Json::Object(_) | Json::Null)
    {
        return Err("the params of rpc are an object".into());
    }
    if let Some(legacy) = &request.legacy {
        if request.meta.is_some() {
            return Err("a legacy request has no metadata to change".into());
        }
        if request.bare && legacy.version.is_some() {
            return Err("bare leaves out the version header that legacy names".into());
        }
    }
    if request.chunked == Some(0) {
        return Err("a chunk has at least one byte".into());
    }
    if !matches!(&request.meta, None | Some(Json::Object(_) | Json::Null)) {
        return Err("meta is an object or null".into());
    }
    match &request.headers {
        None => Ok(()),
        Some(Json::Object(members))
            if members
                .iter()
                .all(|(_, value)| header_lines(value).is_some()) =>
        {
            Ok(())
        }
        Some(_) => Err("request headers are texts, lists of texts or null".into()),
    }
}

/// Patterns can be ones.
pub(crate) fn expect(expect: &Expect) -> Result<(), String> {
    let patterns = [
        &expect.json,
        &expect.events,
        &expect.first,
        &expect.last,
        &expect.headers,
    ];
    for pattern in patterns.into_iter().flatten().chain(&expect.each_event) {
        matches::check_pattern(pattern)?;
    }
    match &expect.headers {
        None | Some(Json::Object(_)) => Ok(()),
        Some(_) => Err("expected headers are an object".into()),
    }
}

fn is_empty(expect: &Expect) -> bool {
    format!("{expect:?}") == format!("{:?}", Expect::default())
}

#[cfg(test)]
mod tests {
    use crate::case::parse;

    #[test]
    fn a_case_that_proves_less_than_it_says_is_refused() {
        let refused = [
            ("[]", "no case"),
            (
                r#"[{"id":"a","why":"w","request":{},"expects":{}}]"#,
                "unknown field",
            ),
            (
                r#"[{"id":"a","why":"w","request":{},"expect":{"statuses":200}}]"#,
                "unknown field",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"raw":"","body":1}}]"#,
                "one of rpc",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"raw":"","id":1}}]"#,
                "rpc request",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"rpc":["x",{}],"legacy":null,"meta":{}}}]"#,
                "no metadata",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"raw":"","legacy":"2025-11-25","bare":true}}]"#,
                "version header",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"raw_hex":"abc"}}]"#,
                "not hexadecimal",
            ),
            (
                r#"[{"id":"a","why":"w","request":{"headers":{"A":1}}}]"#,
                "headers are texts",
            ),
            (
                r#"[{"id":"a","why":"w","request":{},"expect":{"json":{"$exat":1}}}]"#,
                "$exat",
            ),
            (
                r#"[{"id":"a","why":"w","request":{},"expect":{"json":{"$exact":1,"b":2}}}]"#,
                "alone",
            ),
            (
                r#"[{"id":"a","why":"w","request":{},"expect":{"json":"~("}}]"#,
                "regex",
            ),
            (
                r#"[{"id":"a","why":"w","request":{}},{"id":"a","why":"w","request":{}}]"#,
                "twice",
            ),
            (
                r#"[{"id":"a","why":"w","steps":[{"join":"x"}]}]"#,
                "nothing called",
            ),
            (
                r#"[{"id":"a","why":"w","steps":[{"background":"x","request":{},"expect":{"status":200}}]}]"#,
                "never joined",
            ),
            (
                r#"[{"id":"a","why":"w","request":{},"expect":{"status":200},"expect_none":true}]"#,
                "nothing to expect",
            ),
            (r#"[{"id":"a","why":"w"}]"#, "a step is one of"),
            (
                r#"[{"id":"a","why":"w","steps":[{"sleep_ms":1,"expect":{}}]}]"#,
                "a step is one of",
            ),
        ];
        for (text, why) in refused {
            let problem = parse(text).expect_err(text);
            assert!(problem.contains(why), "{text}: {problem}");
        }
    }
}
