//! What the library is held to, as ratios within one run.

use std::fmt::Write;

use crate::report::{Table, number};

/// The name of the library among the servers.
const OURS: &str = "mcp-channel";

enum Limit {
    AtMost(f64),
    AtLeast(f64),
}
use Limit::{AtLeast, AtMost};

/// The targets and whether they are met, as a table. Targets whose measures or servers were left out are left out.
pub fn markdown(table: &Table) -> String {
    let over_bare = |id: &str| Some(table.value(id, OURS)? - table.value(id, "bare")?);
    let value = |id: &str| table.value(id, OURS);
    let times = |id: &str, other: &str| table.ratio(id, OURS, other);
    let kib = |id: &str| table.value(id, OURS);
    let targets = [
        ("JSON in process, over bare: µs", over_bare("json.ns").map(|ns| ns / 1e3), AtMost(1.2)),
        ("JSON in process, over bare: allocations", over_bare("json.allocations"), AtMost(8.0)),
        ("JSON, 1 connection: requests/s to bare's", times("json1.rate", "bare"), AtLeast(0.9)),
        ("JSON, 16 connections: requests/s to bare's", times("json16.rate", "bare"), AtLeast(0.9)),
        ("JSON, 16 connections: requests/s to rmcp's", times("json16.rate", "rmcp"), AtLeast(5.0)),
        ("JSON, 16 connections: requests/s to tower-mcp's", times("json16.rate", "tower-mcp"), AtLeast(5.0)),
        ("stream in process: ns a frame", value("stream.ns"), AtMost(45.0)),
        ("stream in process: allocations a frame", value("stream.allocations"), AtMost(0.02)),
        ("streams, 16 connections: frames/s to bare's", times("stream16.rate", "bare"), AtLeast(4.0)),
        ("streams, 16 connections: frames/s to axum-sse's", times("stream16.rate", "axum-sse"), AtLeast(15.0)),
        ("streams, 16 connections: frames/s to tower-mcp's", times("stream16.rate", "tower-mcp"), AtLeast(30.0)),
        ("streams, 16 connections: frames/s to rmcp's", times("stream16.rate", "rmcp"), AtLeast(70.0)),
        ("time to first frame to bare's", times("first.us", "bare"), AtMost(1.0)),
        ("one frame per ms on 32 streams: CPU to bare's", times("paced.cpu", "bare"), AtMost(1.1)),
        ("10,000 idle streams: resident memory to bare's", times("idle.10000", "bare"), AtMost(1.1)),
        ("a client that never reads: KiB in the second half of the time", kib("stalled1.late"), AtMost(64.0)),
        ("64 clients that never read: KiB in the second half of the time", kib("stalled64.late"), AtMost(64.0 * 64.0)),
        ("a client hangs up: µs until its handler is dropped", value("hang_up"), AtMost(1_000.0)),
        ("crates that it brings, itself included", value("crates"), AtMost(35.0)),
    ];
    let mut text = String::new();
    for (what, measured, limit) in targets {
        let Some(measured) = measured else { continue };
        let (met, limit) = match limit {
            AtMost(most) => (measured <= most, format!("at most {}", number(most))),
            AtLeast(least) => (measured >= least, format!("at least {}", number(least))),
        };
        let _ = writeln!(text, "| {what} | {} | {limit} | {} |", number(measured), if met { "yes" } else { "**no**" });
    }
    if text.is_empty() {
        return text;
    }
    format!("| target | measured | limit | met |\n| --- | ---: | ---: | --- |\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Show;

    #[test]
    fn a_target_is_met_or_not_and_what_is_not_measured_is_left_out() {
        let mut table = Table::new(vec!["bare", OURS]);
        table.section("S");
        for (id, bare, ours) in [("json.allocations", 3.0, 10.0), ("first.us", 50.0, 55.0)] {
            table.add(id, id, Show::Plain, 0, bare);
            table.add(id, id, Show::Plain, 1, ours);
        }
        let text = markdown(&table);
        assert!(text.contains("| JSON in process, over bare: allocations | 7 | at most 8 | yes |"), "{text}");
        assert!(text.contains("| time to first frame to bare's | 1.1 | at most 1 | **no** |"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
