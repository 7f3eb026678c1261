//! Whatever is sent, however it is read: held against a model that is slow and obvious.

mod support;

use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use mcp_channel::notification::SubscriptionsAcknowledged;
use mcp_channel::{Channel, Deferred, LogLevel, Message, Reply, ResponseBody, RpcError, SendError};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::by_hand::{channel, deferring, poll_data, untimed};
use support::request::{Call, Served, messages_of, served_by};
use support::sse;
use tokio_test::task::{Spawn, spawn};
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

// The model

/// Something that a handler does with its channel.
#[derive(Clone, Debug)]
enum Act {
    Progress(i8),
    Log(LogLevel, String),
    Notify(String),
    Acknowledge,
    StartStream,
    Result(u8),
    Error(i64),
    Close,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Sent,
    Closed,
    Full,
    NoProgressToken,
    NotStreamable,
    NotAcknowledged,
    Invalid,
}

impl From<Result<(), SendError>> for Outcome {
    fn from(result: Result<(), SendError>) -> Self {
        match result {
            Ok(()) => Outcome::Sent,
            Err(e) if e.is_closed() => Outcome::Closed,
            Err(e) if e.is_full() => Outcome::Full,
            Err(e) if e.is_no_progress_token() => Outcome::NoProgressToken,
            Err(e) if e.is_not_streamable() => Outcome::NotStreamable,
            Err(e) if e.is_not_acknowledged() => Outcome::NotAcknowledged,
            Err(e) if e.is_invalid_message() => Outcome::Invalid,
            Err(e) => panic!("{e}"),
        }
    }
}

impl Act {
    fn done(&self, channel: &Channel) -> Outcome {
        match self {
            Act::Progress(n) => channel.try_send_progress(*n),
            Act::Log(level, text) => channel.try_send_log(*level, text),
            Act::Notify(text) => channel.try_send_notification(
                json!({"method": "notifications/own", "params": {"t": text}}),
            ),
            Act::Acknowledge => channel.try_send_notification(SubscriptionsAcknowledged {
                notifications: json!({}),
            }),
            Act::StartStream => channel.start_stream(),
            Act::Result(n) => channel.send_result(json!({"n": n})),
            Act::Error(code) => channel.send_error(RpcError::new(*code, "e")),
            Act::Close => channel.close(),
        }
        .into()
    }
}

/// What a handler returns in the end.
#[derive(Clone, Copy, Debug)]
enum Return {
    /// A response that answers nothing.
    Plain,
    /// A response that is the JSON-RPC response.
    Answer,
    Result,
    Error,
    /// Deferred, after all handles were dropped.
    Abandoned,
}

const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":"i","result":{"resultType":"complete","answer":true}}"#;

impl Return {
    fn response(self) -> Response<Full<Bytes>> {
        match self {
            Return::Plain => Response::new("plain".into()),
            Return::Answer => Response::new(ANSWER.into()),
            Return::Result => Reply::result(json!({"returned": true})).into(),
            Return::Error => RpcError::method_not_found("m").into(),
            Return::Abandoned => Deferred.into(),
        }
    }
}

/// Who asks, and for what.
#[derive(Clone, Copy, Debug)]
struct Client {
    token: bool,
    level: Option<LogLevel>,
    json_only: bool,
    listen: bool,
}

impl Client {
    fn call(self) -> Call {
        let mut call = if self.listen {
            Call::listen()
        } else {
            Call::tool("x")
        };
        if self.token {
            call = call.token("t");
        }
        if let Some(level) = self.level {
            call = call.meta("logLevel", level.as_str());
        }
        if self.json_only {
            call = call.accept("application/json");
        }
        call.id("i")
    }
}

/// What the response is, in the end.
#[derive(Clone, Debug, PartialEq)]
enum Whole {
    Json(u16, Value),
    Untouched(String),
    Stream(Vec<Value>),
}

struct Model {
    client: Client,
    limit: usize,
    /// The bytes that wait for the client.
    waiting: usize,
    progress: Option<i8>,
    acknowledged: bool,
    streaming: bool,
    ended: bool,
    events: Vec<Value>,
    single: Option<(u16, Value)>,
    untouched: Option<&'static str>,
}

impl Model {
    fn new(client: Client, limit: usize) -> Self {
        Self {
            client,
            limit,
            waiting: 0,
            progress: None,
            acknowledged: false,
            streaming: false,
            ended: false,
            events: Vec::new(),
            single: None,
            untouched: None,
        }
    }

    fn act(&mut self, act: &Act) -> Outcome {
        let Client {
            token,
            level,
            json_only,
            listen,
        } = self.client;
        if self.ended {
            return Outcome::Closed;
        }
        let told = match act {
            Act::Progress(_) | Act::Log(..) if listen => return self.misplaced(),
            Act::Progress(_) if !token || json_only => return Outcome::NoProgressToken,
            Act::Progress(n) if self.progress.is_some_and(|last| *n <= last) => {
                return Outcome::Sent;
            }
            Act::Progress(n) => {
                json!({"method": "notifications/progress", "params": {"progressToken": "t", "progress": n}})
            }
            Act::Log(l, _) if json_only || level.is_none_or(|wanted| *l < wanted) => {
                return Outcome::Sent;
            }
            Act::Log(l, text) => {
                json!({"method": "notifications/message", "params": {"level": l.as_str(), "data": text}})
            }
            Act::Notify(_) | Act::Acknowledge if json_only => return Outcome::NotStreamable,
            Act::Notify(_) | Act::Result(_) if listen && !self.acknowledged => {
                return Outcome::NotAcknowledged;
            }
            Act::Acknowledge if listen && self.acknowledged => return Outcome::Invalid,
            Act::Notify(text) if listen => {
                json!({"method": "notifications/own", "params": {"t": text, "_meta": {SUBSCRIPTION_ID: "i"}}})
            }
            Act::Notify(text) => json!({"method": "notifications/own", "params": {"t": text}}),
            Act::Acknowledge => json!({
                "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {}, "_meta": {SUBSCRIPTION_ID: "i"}},
            }),
            Act::StartStream => {
                self.streaming |= !json_only;
                return Outcome::Sent;
            }
            Act::Result(n) => {
                self.end_with(200, self.result(json!({"n": n})));
                return Outcome::Sent;
            }
            Act::Error(code) => {
                let status = match code {
                    -32601 => 404,
                    -32600 => 400,
                    _ => 200,
                };
                self.end_with(status, error(*code));
                return Outcome::Sent;
            }
            Act::Close => {
                match (self.streaming, listen) {
                    (false, _) => self.end_with(500, error(-32603)),
                    (true, true) if self.acknowledged => {
                        self.end_with(200, self.result(json!({})));
                    }
                    (true, true) => self.end_with(200, error(-32603)),
                    (true, false) => self.ended = true,
                }
                return Outcome::Sent;
            }
        };
        let mut told = told;
        told["jsonrpc"] = "2.0".into();
        let bytes = frame(&told);
        if self.waiting > 0 && self.waiting + bytes > self.limit {
            return Outcome::Full;
        }
        self.waiting += bytes;
        self.streaming = true;
        self.events.push(told);
        match act {
            Act::Progress(n) => self.progress = Some(*n),
            Act::Acknowledge => self.acknowledged = true,
            _ => {}
        }
        Outcome::Sent
    }

    /// The handler returns.
    fn returns(&mut self, what: Return) {
        if self.ended {
            return;
        }
        match what {
            Return::Plain if !self.streaming => self.untouched = Some("plain"),
            Return::Answer if !self.streaming => self.untouched = Some(ANSWER),
            Return::Answer if !self.client.listen || self.acknowledged => {
                let mut answer: Value = serde_json::from_str(ANSWER).unwrap();
                if self.client.listen {
                    answer["result"]["_meta"][SUBSCRIPTION_ID] = "i".into();
                }
                self.end_with(200, answer);
            }
            Return::Result if !self.client.listen || self.acknowledged => {
                self.end_with(200, self.result(json!({"returned": true})));
            }
            Return::Error => self.end_with(404, error(-32601)),
            Return::Plain | Return::Answer | Return::Abandoned | Return::Result => {
                self.end_with(500, error(-32603));
            }
        }
    }

    fn misplaced(&self) -> Outcome {
        if self.acknowledged {
            Outcome::Invalid
        } else {
            Outcome::NotAcknowledged
        }
    }

    fn result(&self, mut result: Value) -> Value {
        result["resultType"] = "complete".into();
        if self.client.listen {
            result["_meta"][SUBSCRIPTION_ID] = "i".into();
        }
        json!({"jsonrpc": "2.0", "id": "i", "result": result})
    }

    fn end_with(&mut self, status: u16, reply: Value) {
        self.ended = true;
        if self.streaming {
            // Whatever waits: there is one of these.
            self.waiting += frame(&reply);
            self.events.push(reply);
        } else {
            self.single = Some((status, reply));
        }
    }

    fn response(self) -> Whole {
        match (self.untouched, self.single) {
            (Some(body), _) => Whole::Untouched(body.to_owned()),
            (None, Some((status, reply))) => Whole::Json(status, reply),
            (None, None) => Whole::Stream(self.events),
        }
    }
}

/// How many bytes the event of a message has.
fn frame(message: &Value) -> usize {
    format!("event: message\ndata: {message}\n\n").len()
}

fn error(code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": "i", "error": {"code": code, "message": ""}})
}

/// The texts of errors are not the model's concern.
fn without_texts(mut message: Value) -> Value {
    if let Some(text) = message.pointer_mut("/error/message") {
        *text = "".into();
    }
    message
}

// The client

type Head = Spawn<Oneshot<Served, Request<Full<Bytes>>>>;
type Body =
    Spawn<ResponseBody<<Inner as Service<Request<mcp_channel::RequestBody>>>::Future, Full<Bytes>>>;
type Inner = tower::util::BoxCloneSyncService<
    Request<mcp_channel::RequestBody>,
    Response<Full<Bytes>>,
    std::convert::Infallible,
>;

/// A client that reads when it is told to.
struct Reader {
    head: Option<Head>,
    body: Option<Body>,
    status: StatusCode,
    content_type: Option<String>,
    bytes: Vec<u8>,
    done: bool,
    /// Pending, with nothing that woke it since.
    asleep: bool,
}

impl Reader {
    fn new(service: Served, call: &Call) -> Self {
        Self {
            head: Some(spawn(service.oneshot(call.request()))),
            body: None,
            status: StatusCode::OK,
            content_type: None,
            bytes: Vec::new(),
            done: false,
            asleep: false,
        }
    }

    /// Polls once. How many bytes came.
    fn poll(&mut self) -> usize {
        self.asleep = false;
        if let Some(head) = &mut self.head {
            let Poll::Ready(response) = head.poll() else {
                self.asleep = !head.is_woken();
                return 0;
            };
            let (parts, body) = response.unwrap().into_parts();
            self.head = None;
            self.status = parts.status;
            let content_type = parts.headers.get("content-type");
            self.content_type = content_type.map(|value| value.to_str().unwrap().to_owned());
            self.body = Some(spawn(body));
            return 0;
        }
        let body = self.body.as_mut().expect("a body after its head");
        match poll_data(body) {
            Poll::Ready(Some(data)) => {
                self.bytes.extend_from_slice(&data);
                data.len()
            }
            Poll::Ready(None) => {
                self.done = true;
                0
            }
            Poll::Pending => {
                self.asleep = !body.is_woken();
                0
            }
        }
    }

    fn is_woken(&self) -> bool {
        let head = self.head.as_ref().map(Spawn::is_woken);
        head.or(self.body.as_ref().map(Spawn::is_woken)).unwrap()
    }

    /// Reads to the end.
    fn finish(mut self) -> Whole {
        while !self.done {
            assert!(!self.asleep || self.is_woken(), "nobody wakes the reader");
            self.poll();
        }
        match self.content_type.as_deref() {
            Some("text/event-stream") => {
                assert_eq!(self.status, 200);
                Whole::Stream(
                    messages_of(&self.bytes)
                        .into_iter()
                        .map(without_texts)
                        .collect(),
                )
            }
            Some("application/json") => {
                let json = serde_json::from_slice(&self.bytes).unwrap();
                Whole::Json(self.status.as_u16(), without_texts(json))
            }
            _ => Whole::Untouched(String::from_utf8(self.bytes).unwrap()),
        }
    }
}

// What is tried

fn level() -> impl Strategy<Value = LogLevel> {
    prop::sample::select(LogLevel::ALL.to_vec())
}

fn client() -> impl Strategy<Value = Client> {
    let asks = (any::<bool>(), prop::option::of(level()), 0..4u8);
    asks.prop_map(|(token, level, kind)| Client {
        token,
        level,
        json_only: kind == 3,
        listen: kind == 2,
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => any::<i8>().prop_map(Act::Progress),
        4 => (level(), "[a-z]{0,150}").prop_map(|(level, text)| Act::Log(level, text)),
        4 => "[a-z]{0,150}".prop_map(Act::Notify),
        3 => Just(Act::Acknowledge),
        1 => Just(Act::StartStream),
        1 => any::<u8>().prop_map(Act::Result),
        1 => prop::sample::select(vec![-32601, -32600, 7]).prop_map(Act::Error),
        1 => Just(Act::Close),
    ]
}

/// A handler that does what it is told, and then returns this.
fn told(
    limit: usize,
    what: Return,
) -> (
    Served,
    tokio::sync::mpsc::UnboundedSender<Act>,
    Arc<Mutex<Vec<Outcome>>>,
) {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel::<Act>();
    let told = Arc::new(Mutex::new(Some(told)));
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&outcomes);
    let layer = untimed().buffer_limit(limit);
    let service = served_by(layer, move |channel: Channel, _: Message| {
        let mut told = told.lock().unwrap().take().unwrap();
        let noted = Arc::clone(&noted);
        async move {
            while let Some(act) = told.recv().await {
                noted.lock().unwrap().push(act.done(&channel));
            }
            what.response()
        }
    });
    (service, tell, outcomes)
}

proptest! {
    /// A task has the channel, and nothing but the reader's polls comes between: so the model knows
    /// every byte that waits.
    #[test]
    fn a_task_and_its_client_agree_with_the_model(
        client in client(),
        limit in 0..1000usize,
        steps in prop::collection::vec((act(), 0..3u8), 0..40),
    ) {
        let (service, mut given) = deferring(untimed().buffer_limit(limit));
        let mut reader = Reader::new(service, &client.call());
        let mut model = Model::new(client, limit);
        if client.json_only && client.listen {
            return Ok(());
        }
        reader.poll();
        let channel = given.try_recv().unwrap();
        for (act, reads) in steps {
            let asleep = reader.asleep;
            let before = (model.waiting, model.ended, model.streaming);
            prop_assert_eq!(act.done(&channel), model.act(&act), "{:?}", act);
            let changed = before != (model.waiting, model.ended, model.streaming);
            if asleep && changed && !reader.done {
                prop_assert!(reader.is_woken(), "{:?} wakes the reader", act);
            }
            for _ in 0..reads {
                if reader.done {
                    break;
                }
                if reader.poll() > 0 {
                    model.waiting = 0;
                }
                prop_assert!(!reader.asleep || model.waiting == 0, "what waits is handed out");
            }
        }
        drop(channel);
        model.returns(Return::Abandoned);
        prop_assert_eq!(reader.finish(), model.response());
    }

    /// The handler itself has the channel, with all that it may return in the end.
    #[test]
    fn a_handler_and_its_client_agree_with_the_model(
        client in client(),
        steps in prop::collection::vec((act(), 0..3u8), 0..20),
        what in prop::sample::select(vec![
            Return::Plain, Return::Answer, Return::Result, Return::Error, Return::Abandoned,
        ]),
    ) {
        const ENOUGH: usize = 1 << 20;
        let (service, tell, outcomes) = told(ENOUGH, what);
        let mut reader = Reader::new(service, &client.call());
        let mut model = Model::new(client, ENOUGH);
        reader.poll();
        let mut expected = Vec::new();
        for (act, reads) in steps {
            expected.push(model.act(&act));
            tell.send(act).unwrap();
            for _ in 0..reads {
                if !reader.done {
                    reader.poll();
                }
            }
        }
        drop(tell);
        model.returns(what);
        prop_assert_eq!(reader.finish(), model.response());
        prop_assert_eq!(&*outcomes.lock().unwrap(), &expected);
    }
}

// Arbitrary content

/// A JSON value. Its fractions are ones that decimals tell exactly.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        any::<String>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A text with much of what readers stumble over.
fn text() -> impl Strategy<Value = String> {
    let odd = "\0\u{1}\t\n\r\"\\/\u{7f}\u{80}\u{85}\u{86}\u{2027}\u{2028}\u{2029}\u{202a}\u{feff}\u{fffd}aé€😀:";
    let odd: Vec<char> = odd.chars().collect();
    let one = prop_oneof![prop::sample::select(odd), any::<char>()];
    prop::collection::vec(one, 0..12).prop_map(|chars| chars.into_iter().collect())
}

/// The stream, cut at arbitrary places.
fn cut<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect()
}

proptest! {
    #[test]
    fn every_value_arrives_as_it_was_sent(
        id in text(),
        token in text(),
        data in value(),
        word in text(),
        amount in any::<i64>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let call = Call::tool("x").id(id.clone()).token(token.clone()).meta("logLevel", "debug");
        let (channel, mut outlet) = channel(&call);
        let mut stream = Vec::new();
        let mut read = || stream.extend(support::by_hand::bytes_sent(&mut outlet));
        channel.try_send_progress((amount, amount, &*word)).unwrap();
        read();
        channel.try_send_log_from(&word, LogLevel::Info, &data).unwrap();
        read();
        let params = json!({word.clone(): data});
        channel.try_send_notification(json!({"method": word, "params": params})).unwrap();
        read();
        channel.send_error(RpcError::new(amount, word.clone()).with_data(&data)).unwrap();
        read();

        let events = sse::events_in_pieces(cut(&stream, &cuts).into_iter());
        let messages: Vec<Value> = events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
        prop_assert_eq!(messages.len(), 4);
        prop_assert_eq!(&messages[0]["params"], &json!({
            "progressToken": token, "progress": amount, "total": amount, "message": word,
        }));
        prop_assert_eq!(&messages[1]["params"], &json!({"level": "info", "logger": word, "data": data}));
        prop_assert_eq!(&messages[2], &json!({"jsonrpc": "2.0", "method": word, "params": params}));
        prop_assert_eq!(&messages[3], &json!({
            "jsonrpc": "2.0", "id": id,
            "error": {"code": amount, "message": word, "data": data},
        }));
        // The whole stream has no line but the two of each event, and the blank ones.
        let text = String::from_utf8(stream).unwrap();
        let ends = ['\n', '\r', '\0', '\u{85}', '\u{2028}', '\u{2029}'];
        prop_assert_eq!(text.split(ends).count(), 1 + 3 * 4);
    }

    #[test]
    fn every_result_arrives_as_it_was_sent(id in text(), data in value(), stream in any::<bool>()) {
        let (channel, mut outlet) = channel(&Call::tool("x").id(id.clone()));
        if stream {
            channel.start_stream().unwrap();
        }
        channel.send_result(json!({"data": data})).unwrap();
        let message = if stream {
            messages_of(&outlet.try_next().unwrap()).remove(0)
        } else {
            serde_json::from_slice(&outlet.try_reply().unwrap().1).unwrap()
        };
        let result = json!({"data": data, "resultType": "complete"});
        prop_assert_eq!(message, json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    #[test]
    fn a_request_is_the_same_however_it_is_cut(
        id in text(),
        data in value(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let call = Call::tool("x").id(id.clone()).param("arguments", json!({"data": data}));
        let text = call.message.to_string();
        let pieces = cut(text.as_bytes(), &cuts).into_iter().map(|piece| {
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::copy_from_slice(piece)))
        });
        let pieces: Vec<_> = pieces.collect();
        let service = served_by(untimed(), |_, message: Message| async move {
            let params: Value = message.params().unwrap();
            Reply::result(json!({"arguments": params["arguments"]}))
        });
        let request = call.with_body(StreamBody::new(futures_util::stream::iter(pieces)));
        let Poll::Ready(response) = spawn(service.oneshot(request)).poll() else {
            return Err(TestCaseError::fail("pending"));
        };
        let mut body = spawn(response.unwrap().into_body());
        let message: Value = serde_json::from_slice(&support::by_hand::next_data(&mut body).unwrap()).unwrap();
        prop_assert_eq!(&message["id"], &json!(id));
        prop_assert_eq!(&message["result"]["arguments"]["data"], &data);
    }

    /// Bytes that are no request are answered, whatever they are.
    #[test]
    fn every_body_has_an_answer(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        r#"[\[\]{}",:0-9a-e \\]{0,60}"#.prop_map(String::into_bytes),
    ]) {
        let service = served_by(untimed(), |_, _| async { Reply::result(json!({})) });
        let request = Call::tool("x").with_body(Full::<Bytes>::from(bytes));
        let Poll::Ready(response) = spawn(service.oneshot(request)).poll() else {
            return Err(TestCaseError::fail("pending"));
        };
        let response = response.unwrap();
        prop_assert_eq!(response.status(), 400);
        let mut body = spawn(response.into_body());
        let message: Value = serde_json::from_slice(&support::by_hand::next_data(&mut body).unwrap()).unwrap();
        prop_assert!(message["error"]["message"].is_string());
    }
}

// Threads

#[test]
fn what_several_threads_send_arrives_once_and_in_the_order_of_each() {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    let (service, mut given) = deferring(untimed().buffer_limit(2000));
    let mut answer = spawn(service.oneshot(Call::tool("x").request()));
    assert!(answer.poll().is_pending());
    let channel = given.try_recv().unwrap();
    channel.start_stream().unwrap();
    let Poll::Ready(response) = answer.poll() else {
        panic!("pending")
    };
    let threads = (0..THREADS).map(|thread| {
        let channel = channel.clone();
        std::thread::spawn(move || {
            for n in 0..EACH {
                let message =
                    json!({"method": "notifications/own", "params": {"thread": thread, "n": n}});
                // Each waits in line for room, in its own way.
                tokio_test::block_on(channel.send_notification(message)).unwrap();
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    let last = std::thread::spawn(move || {
        for thread in threads {
            thread.join().unwrap();
        }
        channel.send_result(json!({})).unwrap();
    });
    let body = response.unwrap().into_body();
    let stream = tokio_test::block_on(http_body_util::BodyExt::collect(body))
        .unwrap()
        .to_bytes();
    last.join().unwrap();
    let messages = messages_of(&stream);
    assert_eq!(messages.len() as u64, THREADS * EACH + 1);
    for thread in 0..THREADS {
        let of_thread = messages.iter().filter(|m| m["params"]["thread"] == thread);
        let numbers: Vec<_> = of_thread
            .map(|m| m["params"]["n"].as_u64().unwrap())
            .collect();
        assert!(numbers.into_iter().eq(0..EACH), "thread {thread}");
    }
    assert!(messages.last().unwrap()["result"].is_object());
}
