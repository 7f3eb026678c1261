//! Holds a reply against what a case expects of it.

use std::time::Duration;

use crate::case::{Expect, Kind};
use crate::json::Json;
use crate::matches::mismatches;
use crate::response::{CUT, Reply, TIMEOUT};

/// Everything that does not hold.
pub(crate) fn problems(expect: &Expect, reply: &Reply) -> Vec<String> {
    let Some(status) = reply.status else {
        return vec![format!(
            "no response ({})",
            reply.error.as_deref().unwrap_or("closed")
        )];
    };
    let mut bad = Vec::new();
    if let Some(allowed) = expect.status.as_ref().map(|statuses| statuses.as_slice())
        && !allowed.contains(&status)
    {
        bad.push(format!(
            "status {status}, not {allowed:?}; body {}",
            start(&reply.body)
        ));
    }
    head(expect, reply, &mut bad);
    body(expect, reply, &mut bad);
    events(expect, reply, &mut bad);
    comments(expect, reply, &mut bad);
    times(expect, reply, &mut bad);
    let error = reply.error.as_deref();
    if let Some(want) = expect.complete.filter(|want| *want != reply.complete) {
        bad.push(format!(
            "response complete={}, not {want} ({})",
            reply.complete,
            error.unwrap_or("no error")
        ));
    } else if let Some(error) = error {
        // A response that does not come to its end is a failure, unless the case waits for just that.
        let due = expect.complete == Some(false) && matches!(error, TIMEOUT | CUT);
        bad.extend((!due).then(|| format!("response broken: {error}")));
    }
    bad
}

fn head(expect: &Expect, reply: &Reply, bad: &mut Vec<String>) {
    if let Some(Json::Object(headers)) = &expect.headers {
        for (key, want) in headers {
            match (want, reply.header(key)) {
                (Json::Null, None) => {}
                (Json::Null, Some(got)) => {
                    bad.push(format!("header {key}: {got:?} must be absent"))
                }
                (_, None) => bad.push(format!("header {key}: missing")),
                (want, Some(got)) => bad.extend(mismatches(
                    want,
                    &Json::String(got.into()),
                    &format!("header {key}"),
                )),
            }
        }
    }
    let want = match expect.kind {
        Some(Kind::Json) => "application/json",
        Some(Kind::Sse) => "text/event-stream",
        None => return,
    };
    if reply.media_type() != want {
        bad.push(format!(
            "content type {:?}, not {want:?}",
            reply.media_type()
        ));
    }
}

fn body(expect: &Expect, reply: &Reply, bad: &mut Vec<String>) {
    let has = |bytes: &[u8]| memchr::memmem::find(&reply.body, bytes).is_some();
    if expect.empty && !reply.body.is_empty() {
        bad.push(format!("body must be empty: {}", start(&reply.body)));
    }
    if let Some(want) = &expect.json {
        match Json::parse(&reply.body) {
            Ok(got) => bad.extend(mismatches(want, &got, "$")),
            Err(error) => bad.push(format!("body is no JSON ({error}): {}", start(&reply.body))),
        }
    }
    for text in expect
        .json_text
        .iter()
        .chain(&expect.raw_has)
        .filter(|text| !has(text.as_bytes()))
    {
        bad.push(format!("body lacks {text:?}: {}", start(&reply.body)));
    }
    for hex in expect.raw_lacks_hex.iter().filter(|hex| has(&hex.0)) {
        bad.push(format!("body must not hold the bytes {:02x?}", hex.0));
    }
}

fn events(expect: &Expect, reply: &Reply, bad: &mut Vec<String>) {
    if reply.complete && reply.stream.is_within_event() {
        bad.push("the stream ends within an event".into());
    }
    let mut parsed = Vec::new();
    for event in &reply.stream.events {
        match Json::parse(event.data.as_bytes()) {
            Ok(json) => parsed.push(json),
            Err(error) => bad.push(format!(
                "event data is no JSON ({error}): {}",
                start(event.data.as_bytes())
            )),
        }
    }
    if let Some(want) = expect.event_count.filter(|want| *want != parsed.len()) {
        bad.push(format!("{} events, not {want}", parsed.len()));
    }
    for (want, got, name) in [
        (&expect.first, parsed.first(), "first"),
        (&expect.last, parsed.last(), "last"),
    ] {
        match (want, got) {
            (Some(want), Some(got)) => bad.extend(mismatches(want, got, name)),
            (Some(_), None) => bad.push("no event came".into()),
            (None, _) => {}
        }
    }
    if !expect.each_event.is_empty() && parsed.is_empty() {
        bad.push("no event came".into());
    }
    for want in &expect.each_event {
        bad.extend(
            parsed
                .iter()
                .enumerate()
                .flat_map(|(i, got)| mismatches(want, got, &format!("events[{i}]"))),
        );
    }
    if expect.increasing {
        increasing(&parsed, bad);
    }
    if let Some(want) = &expect.events {
        bad.extend(mismatches(want, &Json::Array(parsed), "events"));
    }
}

fn increasing(events: &[Json], bad: &mut Vec<String>) {
    let progress = events.iter().filter(|event| {
        event.get("method").and_then(Json::as_str) == Some("notifications/progress")
    });
    let values = progress.map(|event| {
        event
            .get("params")
            .and_then(|params| params.get("progress"))
            .and_then(Json::as_f64)
    });
    match values.collect::<Option<Vec<f64>>>() {
        None => bad.push("a progress notification has no number".into()),
        Some(values) if values.len() < 2 => {
            bad.push("too few progress notifications to increase".into())
        }
        Some(values) => {
            if let Some(pair) = values.windows(2).find(|pair| {
                pair[0]
                    .partial_cmp(&pair[1])
                    .is_none_or(|order| order.is_ge())
            }) {
                bad.push(format!(
                    "progress does not increase: {} after {}",
                    pair[1], pair[0]
                ));
            }
        }
    }
}

fn comments(expect: &Expect, reply: &Reply, bad: &mut Vec<String>) {
    let got = reply.stream.comments;
    if let Some(min) = expect.min_comments.filter(|min| got < *min) {
        bad.push(format!("{got} keep-alive comments, fewer than {min}"));
    }
    if let Some(max) = expect.max_comments.filter(|max| got > *max) {
        bad.push(format!("{got} keep-alive comments, more than {max}"));
    }
}

fn times(expect: &Expect, reply: &Reply, bad: &mut Vec<String>) {
    let events = &reply.stream.events;
    let (first, last) = (
        events.first().map(|event| event.at),
        events.last().map(|event| event.at),
    );
    let late = |bound: Option<u64>, took: Duration| {
        bound.is_some_and(|ms| took > Duration::from_millis(ms))
    };
    if late(expect.head_within_ms, reply.head_at) {
        bad.push(format!("head came after {} ms", reply.head_at.as_millis()));
    }
    match reply.body_at {
        Some(at) if late(expect.first_byte_within_ms, at) => bad.push(format!(
            "first byte of the body after {} ms",
            at.as_millis()
        )),
        None if expect.first_byte_within_ms.is_some() => {
            bad.push("no byte of a body came".into());
        }
        _ => {}
    }
    match first {
        Some(first) if late(expect.first_event_within_ms, first) => {
            bad.push(format!("first event after {} ms", first.as_millis()))
        }
        None if expect.first_event_within_ms.is_some() => bad.push("no first event came".into()),
        _ => {}
    }
    if let Some(spread) = expect.spread_ms.map(Duration::from_millis) {
        let got = last.zip(first).map(|(last, first)| last - first);
        if events.len() < 2 || got < Some(spread) {
            let got = got.unwrap_or_default().as_millis();
            bad.push(format!(
                "events came in one lump, not as they were sent: {} within {got} ms",
                events.len()
            ));
        }
    }
    if late(expect.done_within_ms, reply.elapsed) {
        bad.push(format!("took {} ms", reply.elapsed.as_millis()));
    }
}

/// The start of a body in a report.
fn start(bytes: &[u8]) -> String {
    format!(
        "{:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
    )
}
