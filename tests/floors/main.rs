//! The floors of `src/`: a file imports from the floors below its own and from its own module.
//!
//! The order keeps the protocol pure, the state machine free of I/O and the middleware thin. A new top-level module takes a floor
//! in [`FLOORS`].

mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// The floor of each top-level module.
const FLOORS: &[(u32, &[&str])] = &[
    (0, &["error", "trace"]),
    (1, &["protocol"]),
    (2, &["state"]),
    (3, &["channel", "reply", "request"]),
    (
        4,
        &[
            "body",
            "collect",
            "config",
            "driver",
            "keep_alive",
            "last_event",
            "request_body",
            "shutdown",
            "stream",
            "subscriptions",
        ],
    ),
    (5, &["future", "head", "running"]),
    (6, &["layer", "service"]),
    (
        7,
        &[
            "axum", "bridge", "cors", "extract", "guide", "relay", "task",
        ],
    ),
];

/// Imports within a floor: from a module, of others. They never lead in a circle.
const NEIGHBOURS: &[(&str, &[&str])] = &[
    ("last_event", &["driver"]),
    ("stream", &["driver", "keep_alive", "last_event"]),
    ("body", &["driver", "stream"]),
    ("config", &["shutdown"]),
    ("subscriptions", &["shutdown"]),
    ("running", &["head"]),
    ("future", &["head", "running"]),
    ("layer", &["service"]),
];

/// Words that a module does without, and why.
const BARRED: &[(&str, &[&str], &str)] = &[
    (
        "protocol",
        &[
            "tokio",
            "tower",
            "tower_layer",
            "tower_service",
            "http_body",
            "http_body_util",
            "hyper",
            "axum",
            "axum_core",
        ],
        "the protocol is bytes in, values or bytes out",
    ),
    (
        "state",
        &[
            "tokio",
            "tower",
            "tower_layer",
            "tower_service",
            "http_body",
            "Waker",
            "Instant",
            "SystemTime",
        ],
        "the state machine has no waker and no clock",
    ),
];

/// Files stay below this many lines, their tests aside.
const MAX_LINES: usize = 400;

const HERE: &str = "tests/floors/main.rs";

/// Everything that is wrong with these files, given by their paths within `src/`.
fn audit(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let read = files.iter().map(|(path, text)| {
        let module = module(path);
        let source = source::read(&module, text);
        (path, module, source)
    });
    let read: Vec<(&PathBuf, Vec<String>, Source)> = read.collect();
    let tests: Vec<&Vec<String>> = read
        .iter()
        .flat_map(|(_, _, source)| &source.test_modules)
        .collect();

    let mut problems = Vec::new();
    for (path, module, source) in &read {
        if tests.iter().any(|test| module.starts_with(test)) {
            continue;
        }
        let mut problem = |line: usize, what: String| {
            problems.push(format!("src/{}:{line}: {what}", path.display()))
        };
        if source.code_lines >= MAX_LINES {
            problem(
                source.code_lines,
                format!(
                    "{} lines before its tests: keep files below {MAX_LINES}",
                    source.code_lines
                ),
            );
        }
        let Some(top) = module.first() else { continue };
        let Some(floor) = floor(top) else {
            problem(
                1,
                format!("module `{top}` has no floor: give it one in FLOORS of {HERE}"),
            );
            continue;
        };
        for import in &source.paths {
            if let Err(what) = allowed(top, floor, &import.segments) {
                problem(import.line, what);
            }
        }
        for (_, words, why) in BARRED.iter().filter(|(module, ..)| module == top) {
            for (word, line) in source
                .words
                .iter()
                .filter(|(word, _)| words.contains(&word.as_str()))
            {
                problem(*line, format!("`{word}` in `{top}`: {why}"));
            }
        }
    }

    let root = files.get(Path::new("lib.rs")).map_or("", String::as_str);
    if !root
        .lines()
        .any(|line| line.trim() == "#![forbid(unsafe_code)]")
    {
        problems.push("src/lib.rs: #![forbid(unsafe_code)] is missing".into());
    }
    problems
}

/// Whether module `top` may import a path of this crate.
fn allowed(top: &str, own: u32, import: &[String]) -> Result<(), String> {
    let target = import.first().map_or("", String::as_str);
    if target == top {
        return Ok(());
    }
    let Some(other) = floor(target) else {
        return Err(format!(
            "`crate::{}` is neither in a module of {HERE}'s FLOORS nor reached through one: \
             import it from its own module, or give a new module a floor",
            import.join("::")
        ));
    };
    if other > own {
        return Err(format!(
            "`{top}` (floor {own}) imports `crate::{}` from floor {other} above it",
            import.join("::")
        ));
    }
    if other == own && !neighbours(top).contains(&target) {
        return Err(format!(
            "`{top}` imports `crate::{}` from its own floor {own}: move it down, or list the pair in NEIGHBOURS of {HERE}",
            import.join("::")
        ));
    }
    Ok(())
}

/// What a module may import from its own floor.
fn neighbours(module: &str) -> &'static [&'static str] {
    NEIGHBOURS
        .iter()
        .find(|(from, _)| *from == module)
        .map_or(&[], |(_, to)| to)
}

fn floor(module: &str) -> Option<u32> {
    FLOORS
        .iter()
        .find(|(_, modules)| modules.contains(&module))
        .map(|(floor, _)| *floor)
}

/// The module that a file holds: none for `lib.rs`, `a::b` for `a/b.rs` and `a/b/mod.rs`.
fn module(path: &Path) -> Vec<String> {
    let parts = path.with_extension("");
    let mut module: Vec<String> = parts
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
        module.pop();
    }
    module
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<PathBuf, String>) {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("an entry of src/").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.insert(
                path.strip_prefix(root)
                    .expect("a path within src/")
                    .to_owned(),
                text,
            );
        }
    }
}

#[test]
fn every_file_imports_from_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    collect(&root, &root, &mut files);
    assert!(
        files.contains_key(Path::new("lib.rs")),
        "no lib.rs in {}",
        root.display()
    );
    let problems = audit(&files);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, FLOORS, HERE, NEIGHBOURS, audit, floor, neighbours};

    const ROOT: (&str, &str) = (
        "lib.rs",
        "//! Docs.\n#![forbid(unsafe_code)]\npub use crate::future::F;\n",
    );

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .chain([&ROOT])
            .map(|(path, text)| ((*path).into(), (*text).to_owned()));
        audit(&files.collect::<BTreeMap<_, _>>())
    }

    #[track_caller]
    fn one_problem(files: &[(&str, &str)], expected: &[&str]) {
        let problems = problems(files);
        assert_eq!(problems.len(), 1, "{problems:?}");
        for part in expected {
            assert!(problems[0].contains(part), "{part}: {problems:?}");
        }
    }

    #[test]
    fn modules_have_one_floor() {
        let mut all: Vec<&str> = FLOORS
            .iter()
            .flat_map(|(_, modules)| modules.iter().copied())
            .collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        for (from, others) in NEIGHBOURS {
            assert!(
                NEIGHBOURS.iter().filter(|(other, _)| other == from).count() == 1,
                "{from} is listed twice"
            );
            for to in *others {
                assert!(floor(from).is_some(), "{from} has no floor");
                assert_eq!(floor(from), floor(to), "{from} and {to} are no neighbours");
                assert!(
                    !reaches(to, from, NEIGHBOURS.len()),
                    "{from} and {to} import one another"
                );
            }
        }
    }

    /// Whether neighbours lead from one module to another within so many steps.
    fn reaches(from: &str, to: &str, steps: usize) -> bool {
        from == to
            || steps > 0
                && neighbours(from)
                    .iter()
                    .any(|next| reaches(next, to, steps - 1))
    }

    #[test]
    fn imports_from_below_and_from_the_own_module_hold() {
        let files = [
            ("error.rs", "use std::fmt; use http::StatusCode;"),
            (
                "protocol/mod.rs",
                "mod meta; pub(crate) use self::meta::Meta; use crate::error::Error;",
            ),
            (
                "protocol/meta.rs",
                "use super::level::Level; use crate::protocol::sse; use crate::error;",
            ),
            (
                "state.rs",
                "use crate::{error::Error, protocol::{Meta, sse::Frame}};",
            ),
            ("layer.rs", "use crate::service::S; use super::body::B;"),
            (
                "body.rs",
                "use crate::state::State;\n#[cfg(test)]\nmod tests { use crate::layer::L; use super::*; }",
            ),
            ("channel/mod.rs", "#[cfg(test)] mod tests;"),
            (
                "channel/tests.rs",
                "use crate::layer::L; use crate::Anything;",
            ),
        ];
        assert_eq!(problems(&files), [""; 0]);
    }

    #[test]
    fn an_import_from_above_is_refused() {
        one_problem(
            &[("protocol/meta.rs", "\nuse crate::channel::Channel;")],
            &["src/protocol/meta.rs:2:", "(floor 1)", "floor 3 above"],
        );
        one_problem(
            &[("state.rs", "fn f() { crate::body::x() }")],
            &["crate::body::x", "floor 4"],
        );
        one_problem(
            &[("body.rs", "use super::future::F;")],
            &["`body` (floor 4) imports `crate::future::F`"],
        );
        one_problem(
            &[(
                "channel/slots.rs",
                "mod inner { use super::super::super::layer::L; }",
            )],
            &["crate::layer::L"],
        );
        let grouped = problems(&[(
            "channel/mod.rs",
            "use crate::{error::E, protocol, service::{S, T}};",
        )]);
        assert_eq!(grouped.len(), 2, "{grouped:?}");
    }

    #[test]
    fn an_import_within_a_floor_is_listed() {
        one_problem(
            &[("body.rs", "use crate::subscriptions::S;")],
            &["its own floor 4", "NEIGHBOURS", HERE],
        );
        one_problem(
            &[("service.rs", "use crate::layer::L;")],
            &["its own floor 6"],
        );
    }

    #[test]
    fn a_module_without_a_floor_says_where_to_add_it() {
        one_problem(
            &[("novel/mod.rs", "")],
            &[
                "module `novel` has no floor",
                "FLOORS of tests/floors/main.rs",
            ],
        );
        one_problem(
            &[("body.rs", "use crate::novel::N;")],
            &["crate::novel::N", "give a new module a floor"],
        );
    }

    #[test]
    fn the_crate_root_is_no_way_around() {
        one_problem(
            &[("body.rs", "use crate::Layer;")],
            &["`crate::Layer`", "import it from its own module"],
        );
        one_problem(&[("body.rs", "use crate::*;")], &["`crate::*`"]);
    }

    #[test]
    fn the_protocol_and_the_state_machine_are_pure() {
        one_problem(
            &[("protocol/a.rs", "use tokio::time::sleep;")],
            &["`tokio` in `protocol`"],
        );
        one_problem(
            &[("protocol/a.rs", "fn f(x: impl http_body::Body) {}")],
            &["`http_body` in `protocol`"],
        );
        one_problem(
            &[("protocol/a.rs", "fn f<S: tower::Service<()>>() {}")],
            &["`tower`"],
        );
        one_problem(
            &[("state.rs", "fn f(now: Instant) {}")],
            &["`Instant` in `state`", "no clock"],
        );
        assert_eq!(
            problems(&[(
                "protocol/a.rs",
                "// no tokio here\nuse http::HeaderMap; fn f() { x.tower() }"
            )]),
            [""; 0]
        );
    }

    #[test]
    fn files_are_short_before_their_tests() {
        let lines = "const A: u8 = 1;\n".repeat(400);
        one_problem(&[("error.rs", &lines)], &["400 lines", "below 400"]);
        let tested = "const A: u8 = 1;\n".repeat(399) + "#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(problems(&[("error.rs", &tested)]), [""; 0]);
    }

    #[test]
    fn unsafe_code_is_forbidden_in_the_root() {
        let files = BTreeMap::from([("lib.rs".into(), "// #![forbid(unsafe_code)]\n".to_owned())]);
        assert_eq!(
            audit(&files),
            ["src/lib.rs: #![forbid(unsafe_code)] is missing"]
        );
    }
}
