//! Keep-alives, and replies that come late.

mod support;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use mcp_channel::notification::SubscriptionsAcknowledged;
use mcp_channel::{Channel, Deferred, McpChannelLayer, Message, Reply, RequestBody, RpcError};
use serde_json::json;
use support::by_hand::{COMMENT, assert_opens, deferring, next_data, poll_data, puppet, untimed};
use support::request::{Call, Served, messages_of, served, served_by};
use support::sse::comments;
use tokio::time::{Instant, sleep, timeout};
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready};
use tower::{Layer, ServiceExt, service_fn};

/// Longer than any interval.
const A_YEAR_AND_MORE: Duration = Duration::from_secs(370 * 24 * 60 * 60);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn plain(body: &str) -> Response<Full<Bytes>> {
    Response::new(Full::from(body.to_owned()))
}

fn result() -> serde_json::Value {
    json!({"content": []})
}

/// When each piece of a body came, in milliseconds from the start, and what it was; until its end,
/// or until nothing came for very long.
async fn pieces<B>(start: Instant, body: B) -> Vec<(u128, String)>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let mut body = pin!(body);
    let mut pieces = Vec::new();
    while let Ok(Some(frame)) = timeout(2 * A_YEAR_AND_MORE, body.frame()).await {
        let data = frame.unwrap().into_data().unwrap();
        let text = String::from_utf8(data.to_vec()).unwrap();
        pieces.push((start.elapsed().as_millis(), text));
    }
    pieces
}

/// When the comments came.
fn ticks(pieces: &[(u128, String)]) -> Vec<u128> {
    let comments = pieces.iter().filter(|(_, text)| text == COMMENT);
    comments.map(|(at, _)| *at).collect()
}

/// When the head of the answer came, in milliseconds, and then all of its body.
async fn timed(service: Served, call: &Call) -> (u128, StatusCode, Vec<(u128, String)>) {
    let start = Instant::now();
    let response = service.oneshot(call.request()).await.unwrap();
    let (at, status) = (start.elapsed().as_millis(), response.status());
    (at, status, pieces(start, response.into_body()).await)
}

fn keep_alive(interval: Duration) -> McpChannelLayer {
    untimed().keep_alive(interval)
}

fn stream_after(silence: Duration) -> McpChannelLayer {
    untimed().stream_after(silence)
}

// Keep-alives

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_carries_a_comment_each_interval() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        channel.start_stream().unwrap();
        sleep(seconds(35)).await;
        channel.send_progress(1).await.unwrap();
        sleep(seconds(25)).await;
        Reply::result(result())
    });
    let (at, _, pieces) = timed(service, &Call::tool("x").token(1)).await;
    assert_eq!(at, 0);
    // The longest silence is one interval, counted from the last frame or comment, and the first
    // comment opens the stream.
    assert_eq!(ticks(&pieces), [0, 10_000, 20_000, 30_000, 45_000, 55_000]);
    let frames: Vec<_> = pieces
        .iter()
        .filter(|(_, text)| text != COMMENT)
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(frames, [35_000, 60_000]);

    // A reader sees comments, and no more messages than were sent.
    let stream: String = pieces.into_iter().map(|(_, text)| text).collect();
    assert_eq!(comments(stream.as_bytes()), [""; 6]);
    assert_eq!(messages_of(stream.as_bytes()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_spends_its_task_s_budget_does_not_silence_the_timers() {
    let spend = || async {
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().await
        }
    };
    let quiet = served_by(
        keep_alive(seconds(10)),
        move |channel: Channel, _| async move {
            channel.start_stream().unwrap();
            spend().await;
            sleep(seconds(25)).await;
            Reply::result(result())
        },
    );
    let answer = tokio::spawn(async move { timed(quiet, &Call::tool("x")).await });
    assert_eq!(ticks(&answer.await.unwrap().2), [0, 10_000, 20_000]);

    let late = served_by(stream_after(seconds(10)), move |_: Channel, _| async move {
        spend().await;
        sleep(seconds(25)).await;
        Reply::result(result())
    });
    let answer = tokio::spawn(async move { timed(late, &Call::tool("x")).await });
    assert_eq!(answer.await.unwrap().0, 10_000);
}

#[tokio::test(start_paused = true)]
async fn keep_alives_go_on_while_a_task_has_the_channel() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        channel.start_stream().unwrap();
        tokio::spawn(async move {
            sleep(seconds(25)).await;
            channel.send_result(result()).unwrap();
        });
        Deferred
    });
    let (_, _, pieces) = timed(service, &Call::tool("x")).await;
    assert_eq!(ticks(&pieces), [0, 10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn keep_alives_come_every_15_seconds_by_default() {
    let service = served(|channel: Channel, _| async move {
        channel.start_stream().unwrap();
        sleep(seconds(40)).await;
        Reply::result(result())
    });
    let (_, _, pieces) = timed(service, &Call::tool("x")).await;
    assert_eq!(ticks(&pieces), [0, 15_000, 30_000]);
}

#[tokio::test(start_paused = true)]
async fn zero_and_the_longest_duration_turn_keep_alives_off() {
    for interval in [Duration::ZERO, Duration::MAX] {
        let service = served_by(keep_alive(interval), |channel: Channel, _| async move {
            channel.start_stream().unwrap();
            sleep(A_YEAR_AND_MORE).await;
            Reply::result(result())
        });
        let (_, _, pieces) = timed(service, &Call::tool("x")).await;
        // The stream opens with a comment, which is no keep-alive.
        assert_eq!(ticks(&pieces), [0]);
        assert_eq!(pieces.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_is_at_least_a_millisecond_and_any_long_one_works() {
    for (interval, expected) in [
        (Duration::from_nanos(1), vec![0, 1, 2, 3, 4]),
        (Duration::from_micros(2500), vec![0, 3, 5]),
        (Duration::MAX - Duration::from_nanos(1), vec![0]),
    ] {
        let service = served_by(keep_alive(interval), |channel: Channel, _| async move {
            channel.start_stream().unwrap();
            sleep(Duration::from_micros(5500)).await;
            Reply::result(result())
        });
        let (_, _, pieces) = timed(service, &Call::tool("x")).await;
        let ticks = ticks(&pieces);
        assert_eq!(ticks[0], 0, "the stream opens");
        // The timer's own grain is a millisecond.
        assert!(
            ticks.len().abs_diff(expected.len()) <= 1,
            "{interval:?}: {ticks:?}"
        );
        assert!(ticks.is_sorted_by(|a, b| a < b), "{interval:?}: {ticks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_stream_carries_no_comment() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        for n in 0..20 {
            channel.send_progress(n).await.unwrap();
            sleep(Duration::from_millis(9999)).await;
        }
        Reply::result(result())
    });
    let (_, _, pieces) = timed(service, &Call::tool("x").token(1)).await;
    assert_eq!(ticks(&pieces), [] as [u128; 0]);
    assert_eq!(pieces.len(), 21);
}

#[tokio::test(start_paused = true)]
async fn after_the_last_event_no_byte_follows() {
    for close in [false, true] {
        let service = served_by(
            keep_alive(seconds(10)),
            move |channel: Channel, _| async move {
                channel.start_stream().unwrap();
                if close {
                    channel.close().unwrap();
                } else {
                    channel.send_result(result()).unwrap();
                }
                sleep(seconds(100)).await;
                plain("")
            },
        );
        let start = Instant::now();
        let (_, _, pieces) = timed(service, &Call::tool("x")).await;
        assert_eq!(ticks(&pieces), [] as [u128; 0]);
        assert_eq!(pieces.len(), usize::from(!close));
        // The handler ran to its end.
        assert_eq!(start.elapsed(), seconds(100));
    }
}

#[tokio::test(start_paused = true)]
async fn keep_alives_come_while_the_body_of_a_last_event_is_read() {
    let service = keep_alive(seconds(10)).layer(service_fn(|request: Request<RequestBody>| {
        let channel: &Channel = request.extensions().get().unwrap();
        channel.start_stream().unwrap();
        let body = futures_util::stream::once(async {
            sleep(seconds(25)).await;
            let json = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
            Ok::<_, Infallible>(Frame::data(Bytes::from(json)))
        });
        async { Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(body)))) }
    }));
    let start = Instant::now();
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    let pieces = pieces(start, response.into_body()).await;
    assert_eq!(ticks(&pieces), [0, 10_000, 20_000]);
    assert!(pieces[3].1.contains("complete"));
    assert_eq!(pieces.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_single_reply_carries_no_comment() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        sleep(seconds(50)).await;
        channel.send_result(result()).unwrap();
        sleep(seconds(50)).await;
        plain("")
    });
    let (at, _, pieces) = timed(service, &Call::tool("x")).await;
    assert_eq!((at, pieces.len()), (100_000, 1));
    assert!(pieces[0].1.starts_with('{'));
}

#[tokio::test(start_paused = true)]
async fn at_most_one_comment_waits_for_a_client_that_does_not_read() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        channel.start_stream().unwrap();
        std::future::pending::<()>().await;
        plain("")
    });
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    let mut body = spawn(response.into_body());
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    tokio::time::advance(seconds(35)).await;
    assert_eq!(next_data(&mut body).unwrap(), COMMENT);
    assert_pending!(poll_data(&mut body));
    // The next is due an interval after that one.
    tokio::time::advance(seconds(9)).await;
    assert_pending!(poll_data(&mut body));
    tokio::time::advance(seconds(1)).await;
    assert_eq!(next_data(&mut body).unwrap(), COMMENT);
}

#[tokio::test(start_paused = true)]
async fn keep_alives_may_come_before_the_acknowledgement() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        channel.start_stream().unwrap();
        sleep(seconds(15)).await;
        let acknowledgement = SubscriptionsAcknowledged {
            notifications: json!({}),
        };
        channel.send_notification(acknowledgement).await.unwrap();
        channel.close().unwrap();
        plain("")
    });
    let (_, _, pieces) = timed(service, &Call::listen()).await;
    assert_eq!(ticks(&pieces), [0, 10_000]);
    assert_eq!(pieces[0].1, COMMENT);
    assert_eq!(pieces[1].1, COMMENT);
    assert_eq!(messages_of(pieces[2].1.as_bytes()).len(), 2);
    assert_eq!(pieces.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_interval_begins_with_the_opening_comment() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        sleep(seconds(7)).await;
        channel.start_stream().unwrap();
        sleep(seconds(26)).await;
        Reply::result(result())
    });
    let (at, _, at_once) = timed(service.clone(), &Call::tool("x")).await;
    assert_eq!(at, 7_000);
    assert_eq!(ticks(&at_once), [7_000, 17_000, 27_000]);

    // A client that begins to read late: the comment is as late, and the interval with it.
    let start = Instant::now();
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    sleep(seconds(5)).await;
    let late = pieces(start, response.into_body()).await;
    assert_eq!(ticks(&late), [12_000, 22_000, 32_000]);
}

#[tokio::test(start_paused = true)]
async fn an_opening_frame_begins_the_first_interval_as_a_comment_does() {
    let service = served_by(keep_alive(seconds(10)), |channel: Channel, _| async move {
        sleep(seconds(7)).await;
        channel.send_progress(1).await.unwrap();
        sleep(seconds(15)).await;
        Reply::result(result())
    });
    let (at, _, pieces) = timed(service, &Call::tool("x").token(1)).await;
    assert_eq!((at, pieces[0].0), (7_000, 7_000));
    assert_eq!(ticks(&pieces), [17_000]);
    assert_eq!(pieces.len(), 3);
}

// stream_after

/// A handler that takes this long, and then does what the tool's name says.
async fn slow(channel: Channel, message: Message, time: Duration) -> Response<Full<Bytes>> {
    sleep(time).await;
    match message.name().as_deref() {
        Some("result") => Reply::result(result()).into(),
        Some("404") => RpcError::method_not_found("m").into(),
        Some("answer") => plain(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#),
        Some("hello") => plain("hello"),
        Some("send") => {
            channel.send_result(result()).unwrap();
            plain("")
        }
        _ => plain("accepted"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_becomes_a_stream() {
    for (layer, after) in [
        (stream_after(seconds(10)), 10_000),
        (McpChannelLayer::new(), 15_000),
    ] {
        let service = served_by(layer, |channel, message| {
            slow(channel, message, seconds(16))
        });
        for (tool, event) in [
            ("result", "\"result\""),
            ("404", "-32601"),
            ("send", "\"result\""),
            ("answer", "\"result\""),
            ("hello", "-32603"),
        ] {
            let (at, status, pieces) = timed(service.clone(), &Call::tool(tool)).await;
            assert_eq!((at, status.as_u16()), (after, 200), "{tool}");
            let [opening, (at, text)] = &*pieces else {
                panic!("{tool}: {pieces:?}")
            };
            assert_eq!(*opening, (after, COMMENT.to_owned()), "{tool}");
            assert_eq!(*at, 16_000);
            assert!(
                text.starts_with("event: message\n") && text.contains(event),
                "{tool}: {text}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_time_is_no_stream() {
    let time = Duration::from_millis(9999);
    let layer = stream_after(seconds(10));
    let service = served_by(layer, move |channel, message| slow(channel, message, time));
    for (tool, status, body) in [
        ("result", 200, "{"),
        ("404", 404, "{"),
        ("send", 200, "{"),
        ("answer", 200, "{"),
        ("hello", 200, "hello"),
    ] {
        let (at, got, pieces) = timed(service.clone(), &Call::tool(tool)).await;
        assert_eq!((at, got.as_u16()), (9999, status), "{tool}");
        assert!(pieces[0].1.starts_with(body), "{tool}: {pieces:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_deferred_reply_becomes_a_stream() {
    let service = served_by(
        stream_after(seconds(10)),
        |channel: Channel, _| async move {
            tokio::spawn(async move {
                sleep(seconds(11)).await;
                channel.send_result(result()).unwrap();
            });
            Deferred
        },
    );
    let (at, _, pieces) = timed(service, &Call::tool("x")).await;
    assert_eq!((at, ticks(&pieces)), (10_000, vec![10_000]));
    assert_eq!((pieces.len(), pieces[1].0), (2, 11_000));
    assert!(pieces[1].1.starts_with("event: message\n"));
}

#[tokio::test(start_paused = true)]
async fn a_reply_whose_handler_runs_on_becomes_a_stream_unless_it_has_a_status() {
    let service = served_by(
        stream_after(seconds(10)),
        |channel: Channel, message: Message| async move {
            match message.name().as_deref() {
                Some("result") => channel.send_result(result()).unwrap(),
                Some("200") => channel.send_error(RpcError::invalid_params("p")).unwrap(),
                Some("404") => channel.send_error(RpcError::method_not_found("m")).unwrap(),
                _ => channel.close().unwrap(),
            }
            sleep(seconds(100)).await;
            plain("")
        },
    );
    for tool in ["result", "200"] {
        let (at, status, pieces) = timed(service.clone(), &Call::tool(tool)).await;
        assert_eq!((at, status.as_u16()), (10_000, 200));
        assert_eq!((pieces.len(), pieces[0].0), (1, 10_000), "{tool}");
        assert!(pieces[0].1.starts_with("event: message\n"));
    }
    for (tool, expected) in [("404", 404), ("close", 500)] {
        let (at, status, pieces) = timed(service.clone(), &Call::tool(tool)).await;
        assert_eq!((at, status.as_u16()), (100_000, expected));
        assert!(pieces[0].1.starts_with('{'), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_take_only_json_and_notifications_are_waited_for() {
    let service = served_by(stream_after(seconds(10)), |channel, message| {
        slow(channel, message, seconds(1000))
    });
    let (at, status, pieces) = timed(
        service.clone(),
        &Call::tool("result").accept("application/json"),
    )
    .await;
    assert_eq!((at, status.as_u16()), (1_000_000, 200));
    assert!(pieces[0].1.starts_with('{'));
    let (at, status, pieces) = timed(service, &Call::notification("notifications/x")).await;
    assert_eq!((at, status.as_u16(), pieces.len()), (1_000_000, 202, 0));
}

#[tokio::test(start_paused = true)]
async fn zero_and_the_longest_duration_turn_it_off() {
    for silence in [Duration::ZERO, Duration::MAX] {
        let service = served_by(stream_after(silence), |channel, message| {
            slow(channel, message, A_YEAR_AND_MORE)
        });
        let (at, _, pieces) = timed(service, &Call::tool("result")).await;
        assert_eq!(at, A_YEAR_AND_MORE.as_millis());
        assert!(pieces[0].1.starts_with('{'));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_at_least_a_millisecond() {
    let layer = stream_after(Duration::from_nanos(1));
    let at_once = served_by(layer.clone(), |_, _| async { Reply::result(result()) });
    let (at, _, pieces) = timed(at_once, &Call::tool("x")).await;
    assert_eq!(at, 0);
    assert!(pieces[0].1.starts_with('{'));
    let late = served_by(layer, |channel, message| slow(channel, message, seconds(1)));
    let (at, _, pieces) = timed(late, &Call::tool("result")).await;
    assert!((1..=2).contains(&at), "{at}");
    assert_eq!(ticks(&pieces), [at]);
    assert!(pieces[1].1.starts_with("event"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_opened_late_is_kept_alive() {
    let layer = keep_alive(seconds(10)).stream_after(seconds(5));
    let service = served_by(layer, |channel, message| {
        slow(channel, message, seconds(30))
    });
    let (at, _, pieces) = timed(service, &Call::tool("result")).await;
    assert_eq!(at, 5_000);
    assert_eq!(ticks(&pieces), [5_000, 15_000, 25_000]);
    assert_eq!(pieces.len(), 4);
}

/// The comment does not wait for the handler, which has nothing to say.
#[tokio::test(start_paused = true)]
async fn a_late_reply_s_stream_opens_with_a_comment_in_its_first_poll() {
    let service = served_by(stream_after(seconds(10)), |_: Channel, _| {
        std::future::pending::<Reply>()
    });
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    let mut body = spawn(response.into_body());
    assert_opens(&mut body);
    assert_pending!(poll_data(&mut body));
    assert!(!body.is_woken(), "there is one comment");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_after_its_reply_became_late_is_an_internal_error() {
    let service = stream_after(seconds(10)).layer(service_fn(|_: Request<RequestBody>| async {
        sleep(seconds(11)).await;
        Err::<Response<Full<Bytes>>, tower::BoxError>("secret".into())
    }));
    let response = service.oneshot(Call::tool("x").request()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let messages = messages_of(&body);
    assert_eq!(
        (messages.len(), &messages[0]["error"]["code"]),
        (1, &json!(-32603))
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_upload_is_no_late_reply() {
    let call = Call::tool("x");
    let text = Bytes::from(call.message.to_string());
    let body = futures_util::stream::once(async {
        sleep(seconds(100)).await;
        Ok::<_, Infallible>(Frame::data(text))
    });
    let request = call.with_body(StreamBody::new(Box::pin(body)));
    let service = stream_after(seconds(10)).layer(service_fn(|_: Request<RequestBody>| async {
        sleep(seconds(9)).await;
        Ok::<_, Infallible>(Response::<Full<Bytes>>::from(Reply::result(result())))
    }));
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
}

// Without timers

/// Polls until it is ready. Whatever is pending must wake itself, since nothing else runs.
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = spawn(Box::pin(future));
    loop {
        match future.poll() {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => assert!(future.is_woken(), "nothing goes on"),
        }
    }
}

/// The whole body of an answer.
async fn answered(service: Served, call: &Call) -> Bytes {
    let response = service.oneshot(call.request()).await.unwrap();
    response.into_body().collect().await.unwrap().to_bytes()
}

#[test]
fn without_timers_no_runtime_is_needed() {
    assert!(tokio::runtime::Handle::try_current().is_err());

    // A single reply.
    let service = served_by(untimed(), |_, _| async { Reply::result(result()) });
    let single = finish(answered(service, &Call::tool("x")));
    assert!(single.starts_with(b"{"), "{single:?}");

    // A stream, with sends that wait for room.
    let service = served_by(
        untimed().buffer_limit(100),
        |channel: Channel, _| async move {
            for n in 0..100 {
                channel.send_progress(n).await.unwrap();
            }
            channel.flush().await.unwrap();
            Reply::result(result())
        },
    );
    assert_eq!(
        messages_of(&finish(answered(service, &Call::tool("x").token(1)))).len(),
        101
    );

    // A handler that is pending, and a task that has the channel.
    let (service, tell) = puppet(untimed());
    let mut answer = spawn(service.oneshot(Call::tool("x").request()));
    assert_pending!(answer.poll());
    drop(tell);
    assert_ready!(answer.poll()).unwrap();
    let (service, mut given) = deferring(untimed());
    let mut answer = spawn(service.oneshot(Call::tool("x").request()));
    assert_pending!(answer.poll());
    let channel = given.try_recv().unwrap();
    std::thread::spawn(move || channel.send_result(result()).unwrap())
        .join()
        .unwrap();
    assert!(answer.is_woken());
    assert_ready!(answer.poll()).unwrap();
}

#[test]
fn with_timers_a_reply_that_is_there_at_once_needs_no_runtime_either() {
    let service = served(|channel: Channel, _| async move {
        channel.send_progress(1).await.unwrap();
        Reply::result(result())
    });
    assert_eq!(
        messages_of(&finish(answered(service, &Call::tool("x").token(1)))).len(),
        2
    );
}
