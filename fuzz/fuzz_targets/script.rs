//! A handler and a client that do anything in any order: what was accepted arrives, once, whole and
//! in order; the final reply is the last; and nobody is left waiting who could go on.

#![no_main]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use mcp_channel::{Channel, LogLevel, Message, RpcError, SendError};
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
enum Act {
    Progress(i16),
    Log(Box<str>),
    Notify(u16),
    TryNotify(u16),
    Start,
    Result(Box<str>),
    Error(i64, Box<str>),
    Close,
    Flush,
    Closed,
    /// Polls the nth thing that waits, woken or not.
    Poll(u8),
    /// Polls all that were woken.
    Run,
    Drop(u8),
    Read,
    Leave,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Waits<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + 'a>>;

struct Waiting<'a> {
    future: Waits<'a>,
    /// What arrives if it is sent.
    note: Option<Value>,
    flag: Arc<Flag>,
    /// For room, in line.
    room: bool,
}

fuzz_target!(|acts: Vec<Act>| {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{
        "progressToken":1,"io.modelcontextprotocol/logLevel":"debug"}}}"#;
    let message = Message::parse(text).expect("a request");
    let (channel, outlet) = Channel::from_request(&message, http::Extensions::new());
    let mut outlet = Some(outlet);
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    let mut expected: Vec<Value> = Vec::new();
    let mut stream: Vec<u8> = Vec::new();
    let mut ended = false;
    let mut most = i64::MIN;
    let mut number = 0;

    // What is sent when a future is polled goes to the end of what is expected.
    fn poll(waits: &mut Waiting<'_>, expected: &mut Vec<Value>) -> bool {
        waits.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&waits.flag));
        match waits.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => false,
            Poll::Ready(sent) => {
                if sent.is_ok() {
                    expected.extend(waits.note.take());
                }
                true
            }
        }
    }

    for act in acts {
        match act {
            Act::Progress(n) => {
                let n = i64::from(n);
                if channel.try_send_progress(n).is_ok() && n > most {
                    most = n;
                    expected.push(json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": 1, "progress": n}}));
                }
            }
            Act::Log(data) => {
                if channel.try_send_log(LogLevel::Info, &data).is_ok() {
                    expected.push(json!({"jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": "info", "data": data}}));
                }
            }
            Act::Notify(pad) | Act::TryNotify(pad) => {
                number += 1;
                let note = json!({"jsonrpc": "2.0", "method": "n",
                    "params": {"n": number, "pad": "é".repeat(pad.into())}});
                if matches!(act, Act::TryNotify(_)) {
                    if channel.try_send_notification(&note).is_ok() {
                        expected.push(note);
                    }
                } else {
                    waiting.push(Waiting {
                        future: Box::pin(channel.send_notification(&note)),
                        note: Some(note),
                        flag: Arc::new(Flag(AtomicBool::new(true))),
                        room: true,
                    });
                }
            }
            Act::Start => assert_eq!(channel.start_stream().is_ok(), !ended),
            Act::Result(value) => {
                let result = json!({"value": value, "resultType": "complete"});
                let sent = channel.send_result(&result).is_ok();
                assert_eq!(sent, !ended);
                if sent {
                    expected.push(json!({"jsonrpc": "2.0", "id": 1, "result": result}));
                }
                ended = true;
            }
            Act::Error(code, text) => {
                let error = RpcError::new(code, text.to_string());
                let sent = channel.send_error(error).is_ok();
                assert_eq!(sent, !ended);
                if sent {
                    expected.push(json!({"jsonrpc": "2.0", "id": 1,
                        "error": {"code": code, "message": text}}));
                }
                ended = true;
            }
            Act::Close => {
                assert_eq!(channel.close().is_ok(), !ended);
                ended = true;
            }
            Act::Flush => waiting.push(Waiting {
                future: Box::pin(channel.flush()),
                note: None,
                flag: Arc::new(Flag(AtomicBool::new(true))),
                room: false,
            }),
            Act::Closed => {
                let closed = channel.closed();
                waiting.push(Waiting {
                    future: Box::pin(async move {
                        closed.await;
                        Ok(())
                    }),
                    note: None,
                    flag: Arc::new(Flag(AtomicBool::new(true))),
                    room: false,
                });
            }
            Act::Poll(n) => {
                let n = usize::from(n);
                if n < waiting.len() && poll(&mut waiting[n], &mut expected) {
                    waiting.remove(n);
                }
            }
            Act::Run => while run(&mut waiting, &mut expected, poll) {},
            Act::Drop(n) => {
                if usize::from(n) < waiting.len() {
                    drop(waiting.remove(n.into()));
                }
            }
            Act::Read => {
                if let Some(bytes) = outlet.as_mut().and_then(|outlet| outlet.try_next()) {
                    stream.extend(bytes);
                }
            }
            Act::Leave => {
                if let Some(outlet) = outlet.take() {
                    drop(outlet);
                    ended = true;
                    expected.clear();
                    stream.clear();
                }
            }
        }
    }

    // The client reads on, and whoever is woken goes on, until nothing moves.
    loop {
        let mut moved = run(&mut waiting, &mut expected, poll);
        if let Some(bytes) = outlet.as_mut().and_then(|outlet| outlet.try_next()) {
            stream.extend(bytes);
            moved = true;
        }
        if !moved {
            break;
        }
    }
    if ended {
        assert!(
            waiting.is_empty(),
            "somebody waits for a channel that has ended"
        );
        assert!(channel.try_send_progress(i64::MAX).unwrap_err().is_closed());
    } else {
        assert!(waiting.iter().all(|w| !w.room), "a send was left waiting");
    }
    if outlet.is_none() {
        return;
    }
    let text = String::from_utf8(stream).expect("UTF-8");
    let mut arrived: Vec<Value> = text
        .split_terminator("\n\n")
        .map(|event| {
            event
                .strip_prefix("event: message\ndata: ")
                .expect("an event")
        })
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let reply = outlet.as_mut().and_then(|outlet| outlet.try_reply());
    if let Some((_, reply)) = reply {
        assert!(arrived.is_empty(), "a single reply beside a stream");
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        if expected.is_empty() {
            // Closed without a reply.
            assert_eq!(reply["error"]["code"], -32603);
            return;
        }
        arrived.push(reply);
    }
    assert_eq!(arrived, expected);
});

/// Polls each that was woken. Whether one moved.
fn run(
    waiting: &mut Vec<Waiting<'_>>,
    expected: &mut Vec<Value>,
    poll: fn(&mut Waiting<'_>, &mut Vec<Value>) -> bool,
) -> bool {
    let before = waiting.len();
    let mut polled = false;
    waiting.retain_mut(|waits| {
        let woken = waits.flag.0.load(Ordering::Relaxed);
        polled |= woken;
        !(woken && poll(waits, expected))
    });
    polled || waiting.len() < before
}
