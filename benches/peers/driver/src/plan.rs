//! What is measured, how often, and in which order: the servers take turns in every round, and each round begins with
//! another one, so that a machine that grows slower or faster favours nobody.

use std::time::Duration;

use harness::wire::Call;
use harness::{Error, Job};

use crate::load;
use crate::process::{Running, Server};
use crate::report::{Show, Table};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds of what scatters.
    pub rounds: usize,
    /// Rounds of what hardly scatters, or takes long.
    pub few: usize,
    /// One in-process sample.
    pub sample: Duration,
    /// One load over sockets.
    pub load: Duration,
    /// Frames of a paced stream.
    pub paced: u64,
    /// First frames and hang-ups.
    pub firsts: usize,
    /// Idle streams.
    pub idle: &'static [usize],
    /// Open streams in the fan-out.
    pub fan: &'static [u64],
    /// Watching a client that never reads.
    pub stalled: Duration,
    /// Waiting for a handler's drop.
    pub patience: Duration,
}

pub const FULL: Effort = Effort {
    rounds: 7,
    few: 3,
    sample: Duration::from_millis(150),
    load: Duration::from_millis(700),
    paced: 1_000,
    firsts: 200,
    idle: &[1_000, 10_000],
    fan: &[1, 10, 100, 1_000, 10_000],
    stalled: Duration::from_secs(2),
    patience: Duration::from_secs(2),
};

pub const QUICK: Effort = Effort {
    rounds: 1,
    few: 1,
    sample: Duration::from_millis(20),
    load: Duration::from_millis(150),
    paced: 200,
    firsts: 20,
    idle: &[1_000],
    fan: &[1, 100, 1_000],
    stalled: Duration::from_millis(400),
    patience: Duration::from_millis(500),
};

pub const STREAM: Call = Call::Progress { steps: 1_000, message: 0, pause_ms: 0 };
pub const ECHO: Call = Call::Echo { text: 5 };

/// The servers in the order of this round.
fn turns(servers: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..servers).map(move |turn| (turn + round) % servers)
}

/// All that is measured without sockets.
pub async fn in_process(table: &mut Table, servers: &[Server], effort: Effort) -> Result<(), Error> {
    table.section("In process");
    for round in 0..effort.rounds {
        for at in turns(servers.len(), round) {
            let server = &servers[at];
            let sample = server.sample(Job::Exchange(ECHO), effort.sample).await?;
            table.add("json.ns", "JSON reply: ns", Show::Ratio, at, sample.ns);
            table.add("json.allocations", "… allocations", Show::Plain, at, sample.allocations);
            table.add("json.bytes", "… bytes allocated", Show::Plain, at, sample.bytes);
            let sample = server.sample(Job::Exchange(STREAM), effort.sample).await?;
            table.add("stream.ns", "stream of 1,000 progress frames: ns a frame", Show::Ratio, at, sample.ns / 1e3);
            table.add("stream.allocations", "… allocations a frame", Show::Plain, at, sample.allocations / 1e3);
            table.add("stream.bytes", "… bytes allocated a frame", Show::Plain, at, sample.bytes / 1e3);
            let sample = server.sample(Job::FirstFrame, effort.sample).await?;
            table.add("first.ns", "call to first frame: ns", Show::Ratio, at, sample.ns);
            table.add("first.allocations", "… allocations", Show::Plain, at, sample.allocations);
        }
    }
    table.section("How the cost grows, in process");
    for round in 0..effort.few {
        for at in turns(servers.len(), round) {
            let server = &servers[at];
            let frames = |steps| Job::Exchange(Call::Progress { steps, message: 0, pause_ms: 0 });
            slope(table, at, server, effort, "frames", "ns for one more frame", &[10, 100, 1_000, 10_000], frames, 1.0, Show::Ratio)
                .await?;
            let bodies = |text| Job::Exchange(Call::Echo { text: text as usize });
            slope(table, at, server, effort, "bodies", "ns for one more KiB to echo", SIZES, bodies, 1024.0, Show::Plain).await?;
            // Ten frames, so that one more KiB in each is ten more in the stream.
            let large = |message| Job::Exchange(Call::Progress { steps: 10, message: message as usize, pause_ms: 0 });
            slope(table, at, server, effort, "large", "ns for one more KiB in a frame", SIZES, large, 102.4, Show::Plain).await?;
        }
    }
    for round in 0..effort.few {
        for at in turns(servers.len(), round) {
            for &streams in effort.fan {
                let sample = servers[at].sample(Job::FanOut(streams), effort.sample).await?;
                let label = format!("one frame to each of {} streams: ns a stream", crate::report::number(streams as f64));
                table.add(&format!("fan.{streams}"), &label, Show::Ratio, at, sample.ns / streams as f64);
                if effort.fan.last() == Some(&streams) {
                    table.add("fan.allocations", "… allocations a stream", Show::Plain, at, sample.allocations / streams as f64);
                    table.add("fan.live", "heap that an open stream holds: bytes", Show::Ratio, at, sample.live);
                }
            }
        }
    }
    Ok(())
}

const SIZES: &[u64] = &[100, 1_000, 10_000, 100_000, 1_048_576];

/// Rows for the cost of one more unit, from each size to the next. Where it stays the same, the cost grows linearly.
#[allow(clippy::too_many_arguments, reason = "a table's row has many parts")]
async fn slope(
    table: &mut Table,
    at: usize,
    server: &Server,
    effort: Effort,
    id: &str,
    label: &str,
    sizes: &[u64],
    job: impl Fn(u64) -> Job,
    unit: f64,
    show: Show,
) -> Result<(), Error> {
    let mut before: Option<(u64, f64)> = None;
    for &size in sizes {
        let ns = server.sample(job(size), effort.sample / 2).await?.ns;
        if let Some((smaller, base)) = before {
            let number = |size: u64| crate::report::number(size as f64);
            let label = format!("{label}, from {} to {}", number(smaller), number(size));
            table.add(&format!("{id}.{size}"), &label, show, at, (ns - base) / (size - smaller) as f64 * unit);
        }
        before = Some((size, ns));
    }
    Ok(())
}

/// All that is measured over sockets.
pub async fn sockets(table: &mut Table, servers: &[Server], effort: Effort) -> Result<(), Error> {
    let mut running = Vec::new();
    for server in servers {
        running.push(server.start().await?);
    }
    table.section("Over loopback sockets");
    for connections in [1, 16, 64] {
        for round in 0..effort.rounds {
            for at in turns(servers.len(), round) {
                let load = load::exchanges(&running[at], ECHO, connections, effort.load).await?;
                let id = format!("json{connections}");
                let label = format!("JSON, {connections} connections: requests/s").replace(" 1 connections", " 1 connection");
                table.add(&format!("{id}.rate"), &label, Show::Ratio, at, load.per_second);
                table.add(&format!("{id}.p50"), "… µs, median", Show::Plain, at, load.p50_us);
                table.add(&format!("{id}.p99"), "… µs, 99th percentile", Show::Plain, at, load.p99_us);
                table.add(&format!("{id}.cpu"), "… server CPU, µs a request", Show::Ratio, at, load.cpu_ns / 1e3);
            }
        }
    }
    for connections in [1, 16] {
        for round in 0..effort.rounds {
            for at in turns(servers.len(), round) {
                let load = load::exchanges(&running[at], STREAM, connections, effort.load).await?;
                let id = format!("stream{connections}");
                let label =
                    format!("streams of 1,000 frames, {connections} connections: frames/s").replace(" 1 connections", " 1 connection");
                table.add(&format!("{id}.rate"), &label, Show::Ratio, at, load.per_second * 1e3);
                table.add(&format!("{id}.cpu"), "… server CPU, ns a frame", Show::Ratio, at, load.cpu_ns / 1e3);
            }
        }
    }
    for round in 0..effort.rounds {
        for at in turns(servers.len(), round) {
            let first = load::first_frame(&running[at], effort.firsts).await?;
            table.add("first.us", "request to first frame: µs", Show::Ratio, at, first);
        }
    }
    for round in 0..effort.few {
        for at in turns(servers.len(), round) {
            let cpu = load::paced(&running[at], 32, effort.paced).await?;
            table.add("paced.cpu", "one frame per ms on 32 streams: server CPU, µs a frame", Show::Ratio, at, cpu / 1e3);
        }
    }
    for server in running {
        server.stop().await?;
    }
    lifetimes(table, servers, effort).await
}

/// What wants a fresh server each time.
async fn lifetimes(table: &mut Table, servers: &[Server], effort: Effort) -> Result<(), Error> {
    table.section("Memory and disconnects, over loopback sockets");
    for &streams in effort.idle {
        for round in 0..effort.few {
            for at in turns(servers.len(), round) {
                let server = servers[at].start().await?;
                let bytes = load::idle(&server, streams).await?;
                let label = format!("{} idle streams: resident bytes a stream", crate::report::number(streams as f64));
                table.add(&format!("idle.{streams}"), &label, Show::Ratio, at, bytes);
                server.stop().await?;
            }
        }
    }
    for connections in [1, 64] {
        for at in turns(servers.len(), 0) {
            let server = servers[at].start().await?;
            let (grown, late) = load::never_reads(&server, connections, effort.stalled).await?;
            let label = match connections {
                1 => "a client that never reads: growth, KiB".to_owned(),
                _ => format!("{connections} clients that never read: growth, KiB"),
            };
            table.add(&format!("stalled{connections}"), &label, Show::Plain, at, grown / 1024.0);
            table.add(&format!("stalled{connections}.late"), "… of it in the second half of the time", Show::Plain, at, late / 1024.0);
            server.stop().await?;
        }
    }
    for at in turns(servers.len(), 0) {
        let mut server: Running = servers[at].start().await?;
        let dropped = load::hang_up(&mut server, effort.firsts / 10, effort.patience).await?;
        table.add("hang_up", "a client hangs up: µs until its handler is dropped", Show::Plain, at, dropped);
        server.stop().await?;
    }
    Ok(())
}
