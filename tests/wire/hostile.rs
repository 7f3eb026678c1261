//! The runner against a server that answers wrongly: each wrong answer has to fail its case, for the right reason.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::case::{self, Case};
use crate::run::{self, Rules};
use crate::run_cases;
use crate::server::Target;

const SSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// Serves one answer after another until the test ends; the path of a request picks what is wrong with its answer.
fn serve() -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || answer(socket));
        }
    });
    Target::parse(&format!("http://{address}/")).expect("a URL")
}

fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    let path = path(&mut socket)?;
    let mut send = |text: &str| socket.write_all(text.as_bytes());
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Kind: plain\r\n\r\n{body}",
            body.len()
        )
    };
    let progress = |n: u32| {
        format!(
            "data: {{\"method\":\"notifications/progress\",\"params\":{{\"progress\":{n}}}}}\n\n"
        )
    };
    let result = "data: {\"id\":1,\"result\":{}}\n\n";
    let later = || thread::sleep(Duration::from_millis(60));
    match path.as_str() {
        "/good" => send(&json(
            "200 OK",
            r#"{"id":1,"result":{"a":36893488147419103233}}"#,
        ))?,
        "/good-stream" => {
            send(SSE)?;
            for n in 1..=2 {
                later();
                send(&progress(n))?;
            }
            send(": quiet\n\n")?;
            send(result)?;
        }
        "/typed" => send(&json(
            "200 OK",
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#,
        ))?,
        "/untyped" => send(&json("200 OK", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#))?,
        "/status" => send(&json("500 Internal Server Error", "{}"))?,
        "/string-id" => send(&json("200 OK", r#"{"id":"1"}"#))?,
        "/float-id" => send(&json("200 OK", r#"{"id":1.0}"#))?,
        "/rounded" => send(&json("200 OK", r#"{"id":36893488147419103232}"#))?,
        "/null-data" => send(&json("200 OK", r#"{"error":{"data":null}}"#))?,
        "/twice" => send(&json("200 OK", r#"{"id":1,"id":1}"#))?,
        "/not-json" => send(&json("200 OK", "{\"id\":1} {}"))?,
        "/empty" => send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?,
        "/body-with-202" => send(&json("202 Accepted", "{}"))?,
        "/surplus" => send(&(json("200 OK", "{}") + "HTTP/1.1 200 OK\r\n"))?,
        "/late-surplus" => {
            send(&json("200 OK", "{}"))?;
            thread::sleep(Duration::from_millis(5));
            send("x")?;
        }
        "/short" => send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
        )?,
        "/not-chunked" => send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n")?,
        "/not-http" => send("SSH-2.0-x\r\n\r\n")?,
        "/lump" => {
            thread::sleep(Duration::from_millis(120));
            send(&(SSE.to_owned() + &progress(1) + &progress(2) + result))?;
        }
        "/missing" => send(&(SSE.to_owned() + &progress(2) + result))?,
        "/backwards" => send(&(SSE.to_owned() + &progress(2) + &progress(2) + result))?,
        "/split-data" => send(&(SSE.to_owned() + "data: {\"id\":\n\ndata: 1}\n\n"))?,
        "/nul" => send(&(SSE.to_owned() + "data: 1\n\n\0"))?,
        "/cut-event" => send(&(SSE.to_owned() + "data: 1\n\ndata: 2\n"))?,
        "/chatty" => send(&(SSE.to_owned() + &":\n\n".repeat(9) + result))?,
        "/endless" => {
            send(SSE)?;
            send(result)?;
            thread::sleep(Duration::from_secs(2));
        }
        "/hang" => thread::sleep(Duration::from_secs(2)),
        "/close" => {}
        "/slow-head" => {
            later();
            send(&json("200 OK", "{}"))?;
        }
        "/slow-body" => {
            send(SSE)?;
            later();
            send(": quiet\n\n")?;
            send(result)?;
        }
        other => panic!("no answer for {other}"),
    }
    socket.shutdown(Shutdown::Write)
}

/// Reads a whole request.
fn path(socket: &mut TcpStream) -> std::io::Result<String> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = socket.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Ok(text.split(' ').nth(1).unwrap_or_default().to_owned());
            }
        }
    }
}

fn cases(steps: &str) -> Vec<Case> {
    case::parse(&format!(r#"[{{"id":"it","why":"w",{steps}}}]"#))
        .unwrap_or_else(|problem| panic!("{steps}: {problem}"))
}

fn exchange(path: &str, expect: &str) -> Vec<Case> {
    cases(&format!(
        r#""timeout_ms":400,"request":{{"rpc":["x",{{}}],"path":"{path}"}},"expect":{expect}"#
    ))
}

#[test]
fn right_answers_hold() {
    let target = serve();
    let right = [
        exchange(
            "/good",
            r#"{"status":200,"kind":"json","complete":true,"json":{"id":{"$exact":1},"result":{"a":36893488147419103233}}}"#,
        ),
        exchange(
            "/good",
            r#"{"status":[404,200],"json_text":["36893488147419103233"],"raw_lacks_hex":["00"],"headers":{"x-kind":"~^pl"}}"#,
        ),
        exchange(
            "/good-stream",
            r#"{"kind":"sse","event_count":3,"increasing":true,"spread_ms":50,"min_comments":1,"max_comments":1,"complete":true,
                "first_event_within_ms":300,"first_byte_within_ms":300,"head_within_ms":300,"done_within_ms":390,"first":{"params":{"progress":1}},
                "last":{"id":1},"events":["*","*",{"result":{"$exact":{}}}],"each_event":[{"$in":[{"id":1},{"method":"*"}]}]}"#,
        ),
        exchange("/endless", r#"{"complete":false,"event_count":1}"#),
        cases(
            r#""request":{"path":"/endless","stop":{"after_events":1}},"expect":{"event_count":1,"done_within_ms":1000}"#,
        ),
        cases(r#""timeout_ms":200,"request":{"path":"/hang"},"expect_none":true"#),
        cases(
            r#""steps":[{"background":"b","timeout_ms":300,"request":{"path":"/hang"},"expect_none":true},{"sleep_ms":10},
                {"request":{"path":"/good"},"expect":{"status":200,"done_within_ms":200}},{"join":"b"}]"#,
        ),
    ];
    for case in right {
        assert_eq!(
            run::run(&target, &case[0], Rules::None),
            [""; 0],
            "{case:?}"
        );
    }
}

#[test]
fn wrong_answers_fail_for_the_right_reason() {
    let target = serve();
    let wrong = [
        (
            "/status",
            r#"{"status":[200,202]}"#,
            "status 500, not [200, 202]",
        ),
        ("/string-id", r#"{"json":{"id":1}}"#, "$.id: \"1\" is not 1"),
        (
            "/string-id",
            r#"{"json":{"id":{"$exact":1}}}"#,
            "$.id: \"1\" is not exactly 1",
        ),
        (
            "/float-id",
            r#"{"json":{"id":{"$exact":1}}}"#,
            "$.id: 1.0 is not exactly 1",
        ),
        (
            "/rounded",
            r#"{"json":{"id":36893488147419103233}}"#,
            "is not 36893488147419103233",
        ),
        (
            "/rounded",
            r#"{"json_text":["36893488147419103233"]}"#,
            "body lacks",
        ),
        (
            "/good",
            r#"{"raw_has":["missing"]}"#,
            "body lacks \"missing\"",
        ),
        (
            "/null-data",
            r#"{"json":{"error":{"$absent":["data"]}}}"#,
            "$.error.data: must be absent",
        ),
        ("/twice", r#"{"json":{"id":1}}"#, "duplicate key \"id\""),
        ("/not-json", r#"{"json":{"id":1}}"#, "body is no JSON"),
        (
            "/body-with-202",
            r#"{"status":202,"empty":true}"#,
            "body must be empty",
        ),
        ("/surplus", "{}", "bytes follow the end"),
        ("/late-surplus", "{}", "bytes follow the end"),
        ("/short", "{}", "broken: closed before its end"),
        (
            "/short",
            r#"{"complete":true}"#,
            "complete=false, not true (closed before its end)",
        ),
        ("/not-chunked", "{}", "no chunk size: \"hello\""),
        ("/not-http", "{}", "no response (no HTTP/1.1 status line"),
        ("/close", "{}", "no response (closed before its end)"),
        ("/hang", "{}", "no response (timeout)"),
        ("/slow-head", r#"{"head_within_ms":20}"#, "head came after"),
        ("/slow-head", r#"{"done_within_ms":20}"#, "took "),
        (
            "/slow-body",
            r#"{"first_byte_within_ms":20}"#,
            "first byte of the body after",
        ),
        (
            "/empty",
            r#"{"first_byte_within_ms":1000}"#,
            "no byte of a body came",
        ),
        (
            "/good",
            r#"{"headers":{"x-kind":null}}"#,
            "header x-kind: \"plain\" must be absent",
        ),
        (
            "/good",
            r#"{"headers":{"x-other":"*"}}"#,
            "header x-other: missing",
        ),
        (
            "/good",
            r#"{"headers":{"x-kind":"plan"}}"#,
            "header x-kind: \"plain\" is not \"plan\"",
        ),
        (
            "/good",
            r#"{"kind":"sse"}"#,
            "content type \"application/json\", not \"text/event-stream\"",
        ),
        ("/good", r#"{"first":"*"}"#, "no event came"),
        (
            "/good",
            r#"{"first_event_within_ms":1000}"#,
            "no first event came",
        ),
        ("/good", r#"{"complete":false}"#, "complete=true, not false"),
        ("/lump", r#"{"spread_ms":50}"#, "in one lump"),
        (
            "/lump",
            r#"{"first_event_within_ms":60}"#,
            "first event after",
        ),
        ("/missing", r#"{"event_count":3}"#, "2 events, not 3"),
        (
            "/missing",
            r#"{"events":[{"params":{"progress":1}},"*","*"]}"#,
            "does not have 3 items",
        ),
        (
            "/missing",
            r#"{"first":{"params":{"progress":1}}}"#,
            "first.params.progress: 2 is not 1",
        ),
        ("/missing", r#"{"last":{"id":2}}"#, "last.id: 1 is not 2"),
        (
            "/missing",
            r#"{"each_event":[{"method":"*"}]}"#,
            "events[1].method: missing",
        ),
        (
            "/backwards",
            r#"{"increasing":true}"#,
            "progress does not increase: 2 after 2",
        ),
        ("/split-data", "{}", "event data is no JSON"),
        (
            "/nul",
            r#"{"raw_lacks_hex":["00"]}"#,
            "must not hold the bytes [00]",
        ),
        ("/cut-event", r#"{"event_count":1}"#, "ends within an event"),
        ("/good", r#"{"each_event":["*"]}"#, "no event came"),
        ("/missing", r#"{"increasing":true}"#, "too few progress"),
        (
            "/chatty",
            r#"{"max_comments":3}"#,
            "9 keep-alive comments, more than 3",
        ),
        (
            "/missing",
            r#"{"min_comments":1}"#,
            "0 keep-alive comments, fewer than 1",
        ),
        ("/endless", "{}", "broken: timeout"),
        (
            "/endless",
            r#"{"complete":true}"#,
            "complete=false, not true (timeout)",
        ),
    ];
    for (path, expect, reason) in wrong {
        let problems = run::run(&target, &exchange(path, expect)[0], Rules::None);
        assert!(
            problems.iter().any(|problem| problem.contains(reason)),
            "{path} {expect}: {problems:?}"
        );
    }
}

#[test]
fn failures_in_steps_name_their_step() {
    let target = serve();
    let wrong = [
        (
            r#"{"request":{"path":"/good"},"expect_none":true}"#,
            "step 1: an answer came: 200",
        ),
        (
            r#"{"sleep_ms":1},{"request":{"path":"/good"},"expect":{"status":404}}"#,
            "step 2: status 200",
        ),
        (
            r#"{"step":"look","request":{"path":"/good"},"expect":{"status":404}}"#,
            "look: status 200",
        ),
        (
            r#"{"background":"b","request":{"path":"/good"},"expect":{"status":404}},{"join":"b"}"#,
            "b: status 200",
        ),
    ];
    for (steps, reason) in wrong {
        let problems = run::run(
            &target,
            &cases(&format!(r#""steps":[{steps}]"#))[0],
            Rules::None,
        );
        assert!(
            problems.len() == 1 && problems[0].starts_with(reason),
            "{steps}: {problems:?}"
        );
    }
}

#[test]
fn all_failures_are_reported_and_a_dead_server_ends_the_run() {
    let target = serve();
    let case = |id: &str, status: u16| {
        format!(
            r#"{{"id":"{id}","why":"reason of {id}","request":{{"path":"/good"}},"expect":{{"status":{status},"event_count":{}}}}}"#,
            status - 200
        )
    };
    let cases = case::parse(&format!(
        "[{},{},{},{}]",
        case("a", 201),
        case("b", 200),
        case("c", 202),
        case("d", 203)
    ))
    .expect("cases");

    let report = run_cases("file", &cases, &target, Rules::None, || None);
    assert_eq!((report.held, report.failed), (1, 3), "{}", report.text);
    for line in [
        "FAIL file/a  (reason of a)\n     status 200",
        "ok   file/b\n",
        "FAIL file/c",
        "     0 events, not 2",
        "FAIL file/d",
    ] {
        assert!(report.text.contains(line), "{line}: {}", report.text);
    }

    let mut left = 2;
    let report = run_cases("file", &cases, &target, Rules::None, || {
        left -= 1;
        (left == 0).then(|| "the server ended: code 101".into())
    });
    assert_eq!((report.held, report.failed), (0, 4), "{}", report.text);
    assert!(
        report
            .text
            .contains("FAIL file/b  (reason of b)\n     the server ended: code 101\n"),
        "{}",
        report.text
    );
    assert!(
        report
            .text
            .contains("FAIL file/d  (reason of d)\n     not run: the server is gone\n"),
        "{}",
        report.text
    );
}

#[test]
fn a_server_that_is_not_there_fails_the_case() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let target = Target::parse(&format!(
        "http://{}/",
        listener.local_addr().expect("an address")
    ))
    .expect("a URL");
    drop(listener);
    let problems = run::run(&target, &exchange("/good", "{}")[0], Rules::None);
    assert!(
        problems.len() == 1 && problems[0].starts_with("no connection"),
        "{problems:?}"
    );
}

#[test]
fn every_message_meets_the_schema() {
    let target = serve();
    let step = |path: &str, method: &str| {
        cases(&format!(
            r#""request":{{"rpc":["{method}",{{}}],"path":"{path}"}},"expect":{{}}"#
        ))
    };
    let wrong = [
        (
            "/good",
            "x",
            "body does not meet the schema: JSONRPCResultResponse",
        ),
        (
            "/good-stream",
            "x",
            "events[0] does not meet the schema: JSONRPCNotification",
        ),
        (
            "/typed",
            "tools/list",
            "body does not meet the schema: ListToolsResultResponse",
        ),
        (
            "/null-data",
            "x",
            "body does not meet the schema: JSONRPCErrorResponse",
        ),
        (
            "/surplus",
            "x",
            "neither a notification nor a result nor an error",
        ),
    ];
    for (path, method, reason) in wrong {
        let problems = run::run(&target, &step(path, method)[0], Rules::Protocol);
        assert!(
            problems.iter().any(|problem| problem.contains(reason)),
            "{path}: {problems:?}"
        );
    }
    assert_eq!(
        run::run(&target, &step("/typed", "x")[0], Rules::Protocol),
        [""; 0]
    );

    let old = |path: &str| {
        cases(&format!(
            r#""request":{{"rpc":["x",{{}}],"legacy":null,"path":"{path}"}},"expect":{{}}"#
        ))
    };
    let problems = run::run(&target, &old("/typed")[0], Rules::Protocol);
    assert!(
        problems.len() == 1 && problems[0].contains("resultType is none of an earlier revision"),
        "{problems:?}"
    );
    assert_eq!(
        run::run(&target, &old("/untyped")[0], Rules::Protocol),
        [""; 0]
    );
}
