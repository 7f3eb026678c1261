//! What is measured over sockets. Every reply's length is compared with that of a reply that was checked in full before
//! the clock started, so nobody wins by answering less.

use std::time::{Duration, Instant};

use harness::wire::{self, Call};
use harness::{Error, monotonic_ns};
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Connection;
use crate::process::Running;

/// Exchanges made for some time on some connections.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The server's processor time for one exchange.
    pub cpu_ns: f64,
}

/// Checks a server's answers to this call, with the measured id and, unless it is bare, with another.
pub async fn verify(server: &Running, call: Call) -> Result<usize, Error> {
    let mut connection = Connection::open(server.port).await?;
    let mut length = 0;
    let ids = [json!("another-id"), json!(wire::ID)];
    for id in &ids[usize::from(server.server.is_bare())..] {
        let (head, body) = connection.exchange(&server.request(call, id)).await?;
        call.verify(id, head.status, &head.content_type, &body).map_err(|error| format!("{}: {error}", server.server.name))?;
        length = body.len();
    }
    Ok(length)
}

/// Calls on every connection, one exchange after the other.
pub async fn exchanges(server: &Running, call: Call, connections: usize, time: Duration) -> Result<Load, Error> {
    let length = verify(server, call).await?;
    let request: std::sync::Arc<[u8]> = server.measured(call).into();
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(server.port).await?;
        // A connection's first exchange is not measured.
        connection.exchange(&request).await?;
        open.push(connection);
    }
    let cpu = server.cpu_ns()?;
    let begun = Instant::now();
    let end = begun + time;
    let mut tasks = JoinSet::new();
    for mut connection in open {
        let request = request.clone();
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(1 << 16);
            let mut start = Instant::now();
            // At least one, however short the time is.
            loop {
                connection.send(&request).await?;
                let head = connection.head().await?;
                let mut got = 0;
                connection.body(&head, |piece| got += piece.len()).await?;
                if head.status != 200 || got != length {
                    return Err::<_, Error>(format!("{call:?}: status {}, {got} bytes instead of {length}", head.status).into());
                }
                let now = Instant::now();
                times.push((now - start).as_nanos() as u64);
                if now >= end {
                    return Ok(times);
                }
                start = now;
            }
        });
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let took = begun.elapsed();
    let cpu = server.cpu_ns()? - cpu;
    times.sort_unstable();
    Ok(Load {
        per_second: times.len() as f64 / took.as_secs_f64(),
        p50_us: percentile(&times, 50.0)? / 1e3,
        p99_us: percentile(&times, 99.0)? / 1e3,
        cpu_ns: cpu as f64 / times.len() as f64,
    })
}

/// The nearest-rank percentile of sorted values.
fn percentile(sorted: &[u64], percent: f64) -> Result<f64, Error> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).map(|&value| value as f64).ok_or_else(|| "nothing was measured: the time is too short".into())
}

/// From a request's last byte to its first frame, when the next frame is a millisecond away. Median, in µs.
pub async fn first_frame(server: &Running, times: usize) -> Result<f64, Error> {
    let call = Call::Progress { steps: 2, message: 0, pause_ms: 1 };
    verify(server, call).await?;
    let request = server.measured(call);
    let mut connection = Connection::open(server.port).await?;
    let mut all = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        connection.send(&request).await?;
        let head = connection.head().await?;
        let mut first = None;
        connection
            .body(&head, |piece| {
                // Nothing but the first frame can be in the first piece: the second is not due yet.
                if !piece.is_empty() {
                    first.get_or_insert_with(|| start.elapsed());
                }
            })
            .await?;
        all.push(first.ok_or("a stream without frames")?.as_nanos() as f64 / 1e3);
    }
    Ok(harness::median(&mut all))
}

/// One frame per millisecond on every connection: the server's processor time for one frame, in ns.
pub async fn paced(server: &Running, connections: usize, steps: u64) -> Result<f64, Error> {
    let call = Call::Progress { steps, message: 0, pause_ms: 1 };
    let request: std::sync::Arc<[u8]> = server.measured(call).into();
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(server.port).await?);
    }
    let cpu = server.cpu_ns()?;
    let mut tasks = JoinSet::new();
    for mut connection in open {
        let request = request.clone();
        tasks.spawn(async move { connection.exchange(&request).await });
    }
    let mut bodies = Vec::new();
    while let Some(task) = tasks.join_next().await {
        bodies.push(task??);
    }
    let cpu = server.cpu_ns()? - cpu;
    for (head, body) in bodies {
        call.verify(&json!(wire::ID), head.status, &head.content_type, &body)
            .map_err(|error| format!("{}: {error}", server.server.name))?;
    }
    Ok(cpu as f64 / (steps * connections as u64) as f64)
}

/// Opens streams that stay open after their first frame.
async fn hold(server: &Running, streams: usize) -> Result<Vec<Connection>, Error> {
    let request = server.measured(Call::Hold);
    let mut open = Vec::with_capacity(streams);
    while open.len() < streams {
        // In small lots, so that the queue of connections that wait to be accepted never overflows.
        let lot = (streams - open.len()).min(100);
        let mut tasks = JoinSet::new();
        for _ in 0..lot {
            let (port, request) = (server.port, request.clone());
            tasks.spawn(async move {
                let mut connection = Connection::open(port).await?;
                connection.send(&request).await?;
                let head = connection.head().await?;
                let event = connection.first_event(&head).await?;
                if wire::events(&event).len() != 1 || head.status != 200 {
                    return Err::<_, Error>(format!("not a first frame: {:?}", String::from_utf8_lossy(&event)).into());
                }
                // The client's own buffer is of no more use: 10,000 of them would be 640 MB.
                connection.release();
                Ok(connection)
            });
        }
        while let Some(task) = tasks.join_next().await {
            open.push(task??);
        }
    }
    Ok(open)
}

/// Resident memory for one stream among so many idle ones, in bytes. Wants a fresh server.
pub async fn idle(server: &Running, streams: usize) -> Result<f64, Error> {
    drop(hold(server, 1).await?);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = server.rss()?;
    let open = hold(server, streams).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = server.rss()?;
    drop(open);
    Ok((after as f64 - before as f64) / streams as f64)
}

/// How much a server's memory has grown after this time with clients that ask for an endless stream of 1 KiB messages and
/// never read, in bytes; and how much of it came in the second half. Wants a fresh server.
pub async fn never_reads(server: &Running, connections: usize, time: Duration) -> Result<(f64, f64), Error> {
    drop(hold(server, 1).await?);
    let before = server.rss()?;
    let request = server.measured(Call::Progress { steps: u64::from(u32::MAX), message: 1024, pause_ms: 0 });
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(server.port).await?;
        connection.send(&request).await?;
        open.push(connection);
    }
    tokio::time::sleep(time / 2).await;
    let half = server.rss()?;
    tokio::time::sleep(time / 2).await;
    let after = server.rss()?;
    drop(open);
    Ok((after as f64 - before as f64, after as f64 - half as f64))
}

/// From a client's close to its handler's drop, in µs: the median, or infinity when a handler is still there after `patience`.
pub async fn hang_up(server: &mut Running, times: usize, patience: Duration) -> Result<f64, Error> {
    let mut all = Vec::new();
    for _ in 0..times {
        let connection = hold(server, 1).await?;
        let closed = monotonic_ns();
        drop(connection);
        match tokio::time::timeout(patience, server.dropped()).await {
            Ok(dropped) => all.push(dropped?.saturating_sub(closed) as f64 / 1e3),
            Err(_) => return Ok(f64::INFINITY),
        }
    }
    Ok(harness::median(&mut all))
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 50.0).expect("values"), 100.0);
        assert_eq!(percentile(&values, 99.0).expect("values"), 198.0);
        assert_eq!(percentile(&[7], 99.0).expect("a value"), 7.0);
        assert!(percentile(&[], 50.0).is_err());
    }
}
