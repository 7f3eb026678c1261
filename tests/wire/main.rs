//! Black-box checks of what goes over the wire: the cases in `cases/`, against the `everything` example as a process of its own,
//! over plain sockets. `README.md` beside this file describes the cases and how to run a part of them.
#![expect(
    clippy::disallowed_methods,
    reason = "a server in another process and real sockets keep real time"
)]

mod case;
mod check;
mod events;
mod exchange;
mod hostile;
mod json;
mod legacy;
mod matches;
mod protocol;
mod request;
mod response;
mod run;
#[path = "../support/schema.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod schema;
mod server;
mod sound;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

use case::Case;
use run::{Report, Rules};
use server::{Server, Target};

/// A server that runs already; its counters are shared, so files take turns.
const URL: &str = "WIRE_URL";
/// Only cases whose name, `file/id`, contains this word.
const ONLY: &str = "WIRE_CASE";

/// One test for each case file.
macro_rules! files {
    ($($file:ident),+ $(,)?) => {
        const FILES: &[&str] = &[$(stringify!($file)),+];

        mod cases {
            $(
                #[test]
                fn $file() {
                    super::run_file(stringify!($file));
                }
            )+
        }
    };
}

files![
    asking,
    channel,
    envelope,
    headers,
    legacy,
    lifecycle,
    subscriptions
];

#[test]
fn every_case_file_is_read_and_run() {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory()).expect("the case directory") {
        let path = entry.expect("an entry of the case directory").path();
        assert!(
            path.extension()
                .is_some_and(|extension| extension == "json"),
            "{} is no case file",
            path.display()
        );
        found.push(
            path.file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a file name in UTF-8")
                .to_owned(),
        );
    }
    found.sort();
    assert_eq!(
        found, FILES,
        "name new case files in `files!` of tests/wire/main.rs"
    );
    let only = env::var(ONLY).unwrap_or_default();
    let mut matched = 0;
    for file in FILES {
        let cases = load(file);
        matched += cases
            .iter()
            .filter(|case| is_named(file, case, &only))
            .count();
    }
    assert!(matched > 0, "no case has {ONLY}={only} in its name");
}

/// Runs a case file and panics with all of its failures.
fn run_file(file: &str) {
    static TURN: Mutex<()> = Mutex::new(());
    let (cases, only) = (load(file), env::var(ONLY).unwrap_or_default());
    let (cases, left_out): (Vec<Case>, Vec<Case>) = cases
        .into_iter()
        .partition(|case| is_named(file, case, &only));

    let report = match env::var(URL) {
        Ok(url) => {
            let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let target = Target::parse(&url).unwrap_or_else(|problem| panic!("{URL}: {problem}"));
            run_cases(file, &cases, &target, Rules::Protocol, || None)
        }
        Err(_) if cases.is_empty() => Report::default(),
        Err(_) => {
            let mut server = Server::start().unwrap_or_else(|problem| panic!("{problem}"));
            let target = server.target.clone();
            run_cases(file, &cases, &target, Rules::Protocol, || server.ended())
        }
    };
    let left_out = if only.is_empty() {
        String::new()
    } else {
        format!(", {} left out by {ONLY}={only}", left_out.len())
    };
    println!(
        "{}{file}: {} held, {} failed{left_out}",
        report.text, report.held, report.failed
    );
    assert!(
        report.failed == 0,
        "{} of {} wire cases in {file} failed, see above",
        report.failed,
        cases.len()
    );
}

/// Runs cases in turn; `ended` tells after each when the server is gone, which is that case's failure and ends the run.
fn run_cases(
    file: &str,
    cases: &[Case],
    target: &Target,
    rules: Rules,
    mut ended: impl FnMut() -> Option<String>,
) -> Report {
    let mut report = Report::default();
    for (n, case) in cases.iter().enumerate() {
        let mut problems = run::run(target, case, rules);
        let ended = ended();
        problems.extend(ended.clone());
        report.add(file, case, &problems);
        if ended.is_some() {
            for case in &cases[n + 1..] {
                report.add(file, case, &["not run: the server is gone".into()]);
            }
            break;
        }
    }
    report
}

fn is_named(file: &str, case: &Case, word: &str) -> bool {
    format!("{file}/{}", case.id).contains(word)
}

fn load(file: &str) -> Vec<Case> {
    let path = directory().join(file).with_extension("json");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    case::parse(&text).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/cases")
}
