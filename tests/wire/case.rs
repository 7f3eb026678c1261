//! Case files, as `README.md` beside this file describes them. A case that would prove less than it says is refused: an unknown
//! field, a pattern that cannot be one, an expectation that nobody looks at.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::json::Json;
use crate::sound;

/// How long an exchange may take when its step does not say.
const TIMEOUT_MS: u64 = 5000;

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) why: String,
    /// Runs while no other case does.
    pub(crate) alone: bool,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) enum Step {
    Sleep(Duration),
    /// Waits for the background exchanges of this name and checks them.
    Join(String),
    Exchange(Box<Exchange>),
}

#[derive(Debug)]
pub(crate) struct Exchange {
    /// How reports name it; empty for a case of one exchange.
    pub(crate) name: String,
    /// Runs beside the steps that follow, under this name.
    pub(crate) background: Option<String>,
    pub(crate) request: Request,
    pub(crate) timeout: Duration,
    pub(crate) due: Due,
}

#[derive(Debug)]
pub(crate) enum Due {
    Answer(Box<Expect>),
    /// The server must not answer at all.
    Nothing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Request {
    pub(crate) rpc: Option<(String, Json)>,
    #[serde(deserialize_with = "present")]
    pub(crate) body: Option<Json>,
    pub(crate) raw: Option<String>,
    pub(crate) raw_hex: Option<Hex>,
    pub(crate) repeat: Option<Vec<(String, usize)>>,

    /// Changes to the standard `_meta`; JSON null leaves `_meta` out.
    #[serde(deserialize_with = "present")]
    pub(crate) meta: Option<Json>,
    #[serde(deserialize_with = "present")]
    pub(crate) id: Option<Json>,
    pub(crate) notification: bool,

    /// The request is one of an earlier revision.
    #[serde(deserialize_with = "present")]
    pub(crate) legacy: Option<Legacy>,

    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) headers: Option<Json>,
    pub(crate) bare: bool,
    pub(crate) chunked: Option<usize>,
    pub(crate) keep_alive: bool,
    pub(crate) stop: Stop,
}

/// How a client of an earlier revision sends a request: without metadata and mirrors.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Legacy {
    /// Its version header, if it sends one.
    pub(crate) version: Option<String>,
}

/// When the client closes the connection of its own accord, once the head is there.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stop {
    pub(crate) after_events: Option<usize>,
    pub(crate) after_comments: Option<usize>,
    pub(crate) after_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    pub(crate) status: Option<Statuses>,
    pub(crate) kind: Option<Kind>,
    pub(crate) headers: Option<Json>,
    pub(crate) empty: bool,
    #[serde(deserialize_with = "present")]
    pub(crate) json: Option<Json>,
    pub(crate) json_text: Vec<String>,
    pub(crate) raw_has: Vec<String>,
    pub(crate) raw_lacks_hex: Vec<Hex>,
    pub(crate) events: Option<Json>,
    pub(crate) event_count: Option<usize>,
    pub(crate) first: Option<Json>,
    pub(crate) last: Option<Json>,
    pub(crate) each_event: Vec<Json>,
    pub(crate) increasing: bool,
    pub(crate) min_comments: Option<usize>,
    pub(crate) max_comments: Option<usize>,
    pub(crate) complete: Option<bool>,
    pub(crate) head_within_ms: Option<u64>,
    pub(crate) first_byte_within_ms: Option<u64>,
    pub(crate) first_event_within_ms: Option<u64>,
    pub(crate) spread_ms: Option<u64>,
    pub(crate) done_within_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Statuses {
    One(u16),
    Any(Vec<u16>),
}

impl Statuses {
    pub(crate) fn as_slice(&self) -> &[u16] {
        match self {
            Self::One(status) => std::slice::from_ref(status),
            Self::Any(statuses) => statuses,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Json,
    Sse,
}

/// Bytes, two hexadecimal digits each.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let pairs = text.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .filter(|p| p.len() == 2)
                .and_then(|p| u8::from_str_radix(p, 16).ok())
        });
        bytes
            .collect::<Option<_>>()
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not hexadecimal"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    id: String,
    why: String,
    #[serde(default)]
    alone: bool,
    steps: Option<Vec<StepText>>,
    request: Option<Request>,
    expect: Option<Expect>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    expect_none: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepText {
    step: Option<String>,
    sleep_ms: Option<u64>,
    join: Option<String>,
    background: Option<String>,
    request: Option<Request>,
    expect: Option<Expect>,
    timeout_ms: Option<u64>,
    expect_none: bool,
}

/// A field that is there, even as null.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a case file.
///
/// # Errors
///
/// Names the case and what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, String> {
    let texts: Vec<CaseText> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut cases: Vec<Case> = Vec::with_capacity(texts.len());
    for text in texts {
        let id = text.id.clone();
        let case = case(text).map_err(|problem| format!("case {id:?}: {problem}"))?;
        if cases.iter().any(|other| other.id == id) {
            return Err(format!("case {id:?} is there twice"));
        }
        cases.push(case);
    }
    if cases.is_empty() {
        Err("no case".into())
    } else {
        Ok(cases)
    }
}

fn case(text: CaseText) -> Result<Case, String> {
    let CaseText {
        id,
        why,
        alone,
        steps,
        request,
        expect,
        timeout_ms,
        expect_none,
    } = text;
    let steps = match (steps, request) {
        (Some(_), Some(_)) => return Err("it has both a request and steps".into()),
        (Some(_), None) if expect.is_some() || timeout_ms.is_some() || expect_none => {
            return Err("expectations and time-outs belong to the steps".into());
        }
        (Some(texts), None) => texts
            .into_iter()
            .enumerate()
            .map(|(n, text)| step(text, format!("step {}", n + 1)))
            .collect::<Result<_, _>>()?,
        (None, request) => {
            let text = StepText {
                request,
                expect,
                timeout_ms,
                expect_none,
                ..StepText::default()
            };
            vec![step(text, String::new())?]
        }
    };
    sound::joined(&steps)?;
    Ok(Case {
        id,
        why,
        alone,
        steps,
    })
}

fn step(text: StepText, name: String) -> Result<Step, String> {
    let alone = text.step.is_none()
        && text.background.is_none()
        && text.expect.is_none()
        && text.timeout_ms.is_none()
        && !text.expect_none;
    match text {
        StepText {
            sleep_ms: Some(ms),
            request: None,
            join: None,
            ..
        } if alone => Ok(Step::Sleep(Duration::from_millis(ms))),
        StepText {
            join: Some(name),
            request: None,
            sleep_ms: None,
            ..
        } if alone => Ok(Step::Join(name)),
        StepText {
            request: Some(request),
            join: None,
            sleep_ms: None,
            step,
            background,
            expect,
            timeout_ms,
            expect_none,
        } => {
            sound::request(&request)?;
            if let Some(expect) = &expect {
                sound::expect(expect)?;
            }
            let due = match (expect, expect_none) {
                (Some(_), true) => return Err("expect_none leaves nothing to expect".into()),
                (None, true) => Due::Nothing,
                (expect, false) => Due::Answer(Box::new(expect.unwrap_or_default())),
            };
            Ok(Step::Exchange(Box::new(Exchange {
                name: step.or_else(|| background.clone()).unwrap_or(name),
                background,
                request,
                timeout: Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_MS)),
                due,
            })))
        }
        _ => Err(
            "a step is one of request, sleep_ms and join; what else it has belongs to a request"
                .into(),
        ),
    }
}

/// The values of a header in a request: none for null, which drops it.
pub(crate) fn header_lines(value: &Json) -> Option<Vec<&str>> {
    match value {
        Json::Null => Some(Vec::new()),
        Json::String(one) => Some(vec![one]),
        Json::Array(lines) => lines.iter().map(Json::as_str).collect(),
        _ => None,
    }
}

impl Request {
    /// The method of the message, where the case gives one as JSON.
    pub(crate) fn rpc_method(&self) -> Option<&str> {
        match self {
            Self {
                rpc: Some((method, _)),
                ..
            } => Some(method),
            Self {
                body: Some(message),
                ..
            } => message.get("method").and_then(Json::as_str),
            _ => None,
        }
    }
}
