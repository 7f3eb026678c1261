//! Instructions and allocations of one exchange, which hardly scatter: shown in the table, and guarded by a baseline.

use std::path::Path;
use std::process::Command;

use harness::Error;
use harness::wire::Call;
use serde_json::{Map, Value, json};

use crate::plan::{ECHO, STREAM};
use crate::process::{Server, workspace};

/// What is counted: its name, the call, and how many exchanges the two runs make.
pub const COUNTED: [(&str, Call, usize, usize); 2] = [("json", ECHO, 100, 300), ("stream", STREAM, 2, 6)];

/// Counts of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub instructions: f64,
    pub allocations: f64,
}

/// Runs a server under callgrind twice; the difference is what the exchanges cost that one run has more.
pub fn count(server: &Server, call: Call, few: usize, many: usize) -> Result<Counts, Error> {
    let (base, _) = run(&server.binary, call, few)?;
    let (all, allocations) = run(&server.binary, call, many)?;
    Ok(Counts { instructions: (all - base) / (many - few) as f64, allocations })
}

fn run(binary: &Path, call: Call, times: usize) -> Result<(f64, f64), Error> {
    let target = workspace().join("target");
    std::fs::create_dir_all(&target)?;
    let file = target.join(format!("callgrind.{}", std::process::id()));
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", file.display())).arg(binary);
    command.arg("count").arg(serde_json::to_string(&call)?).arg(times.to_string());
    let output = command.output().map_err(|error| format!("cannot run valgrind, which counts the instructions: {error}"))?;
    if !output.status.success() {
        return Err(format!("{} under callgrind: {}", binary.display(), String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let profile = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("callgrind tells no totals")?;
    Ok((total.trim().parse()?, String::from_utf8(output.stdout)?.trim().parse()?))
}

/// So much may a count rise over the baseline.
const RISE: f64 = 1.1;

/// Compares the library's counts with the committed ones, or writes those anew.
pub fn guard(server: &Server, write: bool) -> Result<(), Error> {
    let file = workspace().join("../baseline.json");
    let mut counted = Map::new();
    for (name, call, few, many) in COUNTED {
        let counts = count(server, call, few, many)?;
        counted.insert(format!("{name}.instructions"), json!(counts.instructions.round()));
        counted.insert(format!("{name}.allocations"), json!(counts.allocations));
    }
    if write {
        std::fs::write(&file, format!("{:#}\n", Value::Object(counted)))?;
        println!("written to {}", file.display());
        return Ok(());
    }
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}; `guard --write` makes it", file.display()))?;
    let baseline: Map<String, Value> = serde_json::from_str(&text)?;
    let (lines, risen) = compare(&baseline, &counted)?;
    println!("{lines}");
    if risen.is_empty() {
        return Ok(());
    }
    let advice = "if that is what the change is worth, write the baseline anew with `guard --write`";
    Err(format!("risen by more than {:.0} %: {}; {advice}", (RISE - 1.0) * 100.0, risen.join(", ")).into())
}

/// A line for each count, and the names of those that have risen too much.
fn compare(baseline: &Map<String, Value>, counted: &Map<String, Value>) -> Result<(String, Vec<String>), Error> {
    let (mut lines, mut risen) = (Vec::new(), Vec::new());
    for (name, now) in counted {
        let before = baseline.get(name).and_then(Value::as_f64).ok_or_else(|| format!("the baseline lacks {name}: write it anew"))?;
        let now = now.as_f64().ok_or("a count is a number")?;
        lines.push(format!("{name}: {now}, baseline {before}"));
        if now > before * RISE {
            risen.push(name.clone());
        }
    }
    Ok((lines.join("\n"), risen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(allocations: f64) -> Map<String, Value> {
        Map::from_iter([("json.allocations".to_owned(), json!(allocations))])
    }

    #[test]
    fn a_rise_of_more_than_a_tenth_is_found() {
        let risen = |now| compare(&map(10.0), &map(now)).expect("both have the count").1;
        assert!(risen(9.0).is_empty() && risen(11.0).is_empty());
        assert_eq!(risen(12.0), ["json.allocations"]);
    }

    #[test]
    fn a_count_without_a_baseline_is_an_error() {
        assert!(compare(&Map::new(), &map(1.0)).is_err());
    }
}
