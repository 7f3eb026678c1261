//! The subset match of expectations: what a pattern does not mention may be anything.

use regex::Regex;

use crate::json::Json;

/// What `got` lacks of `want`, each problem with the path to it; empty when it matches.
pub(crate) fn mismatches(want: &Json, got: &Json, path: &str) -> Vec<String> {
    if let Some(Json::Array(any)) = want.get("$in") {
        let matched = any
            .iter()
            .any(|want| mismatches(want, got, path).is_empty());
        return problem(matched, || {
            format!("{path}: {} is none of {}", shown(got), shown(want))
        });
    }
    if let Some(exact) = want.get("$exact") {
        return problem(exact.exactly(got), || {
            format!("{path}: {} is not exactly {}", shown(got), shown(exact))
        });
    }
    match (want, got) {
        (Json::Object(members), Json::Object(_)) => members
            .iter()
            .flat_map(|(key, want)| member(key, want, got, path))
            .collect(),
        (Json::Object(_), _) => vec![format!("{path}: {} is not an object", shown(got))],
        (Json::Array(want), Json::Array(got)) if want.len() == got.len() => {
            let pairs = want.iter().zip(got).enumerate();
            pairs
                .flat_map(|(i, (want, got))| mismatches(want, got, &format!("{path}[{i}]")))
                .collect()
        }
        (Json::Array(want), _) => vec![format!(
            "{path}: {} does not have {} items",
            shown(got),
            want.len()
        )],
        (Json::String(text), _) if text == "*" => Vec::new(),
        (Json::String(text), _) if text.starts_with('~') => {
            let matched = got
                .as_str()
                .is_some_and(|got| Regex::new(&text[1..]).is_ok_and(|regex| regex.is_match(got)));
            problem(matched, || {
                format!("{path}: {} does not match {:?}", shown(got), &text[1..])
            })
        }
        _ => problem(want.same(got), || {
            format!("{path}: {} is not {}", shown(got), shown(want))
        }),
    }
}

fn member(key: &str, want: &Json, got: &Json, path: &str) -> Vec<String> {
    match (key, want, got.get(key)) {
        ("$absent", Json::Array(names), _) => {
            let there = names
                .iter()
                .filter_map(Json::as_str)
                .filter(|name| got.get(name).is_some());
            there
                .map(|name| format!("{path}.{name}: must be absent"))
                .collect()
        }
        (_, _, None) => vec![format!("{path}.{key}: missing")],
        (_, want, Some(got)) => mismatches(want, got, &format!("{path}.{key}")),
    }
}

fn problem(held: bool, message: impl FnOnce() -> String) -> Vec<String> {
    if held { Vec::new() } else { vec![message()] }
}

/// A value in a report, cut where it is long.
fn shown(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= 300 {
        text
    } else {
        text.chars().take(300).chain(['…']).collect()
    }
}

/// Refuses what looks like a pattern and would never be read as one.
pub(crate) fn check_pattern(want: &Json) -> Result<(), String> {
    match want {
        Json::Object(members) => {
            members
                .iter()
                .try_for_each(|(key, value)| match (key.as_str(), value) {
                    ("$in", Json::Array(any)) if members.len() == 1 && !any.is_empty() => {
                        any.iter().try_for_each(check_pattern)
                    }
                    ("$exact", _) if members.len() == 1 => Ok(()),
                    ("$in" | "$exact", _) => Err(format!(
                        "{key} stands alone in its object, and $in has a list of patterns"
                    )),
                    ("$absent", Json::Array(names))
                        if names.iter().all(|name| name.as_str().is_some()) =>
                    {
                        Ok(())
                    }
                    ("$absent", _) => Err("$absent has a list of names".into()),
                    (key, _) if key.starts_with('$') => {
                        Err(format!("{key} is none of $in, $exact and $absent"))
                    }
                    (_, value) => check_pattern(value),
                })
        }
        Json::Array(items) => items.iter().try_for_each(check_pattern),
        Json::String(text) => match text.strip_prefix('~') {
            Some(pattern) => Regex::new(pattern).map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, mismatches};

    fn bad(want: &str, got: &str) -> Vec<String> {
        let json = |text: &str| Json::parse(text.as_bytes()).unwrap();
        mismatches(&json(want), &json(got), "$")
    }

    #[test]
    fn a_pattern_is_a_subset() {
        let held = [
            (r#"{"a":1}"#, r#"{"a":1.0,"b":2}"#),
            (r#"{"a":"*"}"#, r#"{"a":null}"#),
            (r#"{"a":"~^x+$"}"#, r#"{"a":"xx"}"#),
            (r#"{"$absent":["b"]}"#, r#"{"a":1}"#),
            (r#"{"a":{"$in":[1,"~y"]}}"#, r#"{"a":"xyz"}"#),
            (r#"{"$exact":{"a":[1],"b":2}}"#, r#"{"b":2,"a":[1]}"#),
            ("[1,{}]", r#"[1,{"a":1}]"#),
            ("null", "null"),
        ];
        for (want, got) in held {
            assert_eq!(bad(want, got), [""; 0], "{want} against {got}");
        }
    }

    #[test]
    fn every_mismatch_is_named_with_its_path() {
        let failed = [
            (r#"{"a":1}"#, "{}", "$.a: missing"),
            (r#"{"a":{"b":"*"}}"#, r#"{"a":{}}"#, "$.a.b: missing"),
            (r#"{"a":"~x"}"#, r#"{"a":1}"#, "$.a: 1 does not match \"x\""),
            (
                r#"{"$absent":["b"]}"#,
                r#"{"b":null}"#,
                "$.b: must be absent",
            ),
            (r#"{"$absent":["b"]}"#, "[]", "$: [] is not an object"),
            (r#"{"$in":[1,2]}"#, "3", "$: 3 is none of"),
            (r#"{"$exact":1}"#, "1.0", "$: 1.0 is not exactly 1"),
            (r#"{"$exact":1}"#, "\"1\"", "$: \"1\" is not exactly 1"),
            (
                r#"{"$exact":{}}"#,
                r#"{"a":1}"#,
                "$: {\"a\":1} is not exactly {}",
            ),
            ("[1]", "[1,2]", "$: [1,2] does not have 1 items"),
            ("[1,2]", "[1,3]", "$[1]: 3 is not 2"),
            ("1", "true", "$: true is not 1"),
            (
                "36893488147419103233",
                "36893488147419103232",
                "is not 36893488147419103233",
            ),
        ];
        for (want, got, problem) in failed {
            let bad = bad(want, got);
            assert!(
                bad.len() == 1 && bad[0].contains(problem),
                "{want} against {got}: {bad:?}"
            );
        }
    }
}
