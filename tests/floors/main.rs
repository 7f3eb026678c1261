//! The floors of `src/`: a file imports from the rooms below its own and from the files beside it, and no two files import one
//! another, by whatever way.
//!
//! The order keeps the protocol pure, the state machine free of I/O and the middleware thin. A new room takes a floor in [`FLOORS`].

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// The rooms, a folder or a file of `src/` each, from the ground up. Those of one floor do not import one another.
const FLOORS: &[&[&str]] = &[
    &["error", "trace"],
    &["protocol/json"],
    &["protocol/era", "protocol/id"],
    &["protocol/reply"],
    &["protocol/notification"],
    &["protocol/request"],
    &["protocol"],
    &["state"],
    &["channel"],
    &["handler", "collect", "shutdown"],
    &["config", "subscriptions"],
    &["response"],
    &["service"],
    &["layer"],
    &["guide", "relay"],
];

/// Words that a room does without, and why.
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

type Module = Vec<String>;

/// Everything that is wrong with these files, given by their paths within `src/`.
fn audit(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let read: BTreeMap<Module, (&PathBuf, Source)> = files
        .iter()
        .map(|(path, text)| {
            let module = module(path);
            let source = source::read(&module, text);
            (module, (path, source))
        })
        .collect();
    let tests: BTreeSet<&Module> = read
        .values()
        .flat_map(|(_, source)| &source.test_modules)
        .collect();
    let for_tests = |module: &Module| tests.iter().any(|test| module.starts_with(test));

    let mut problems = Vec::new();
    let mut imports = BTreeMap::new();
    for (own, (path, source)) in &read {
        if for_tests(own) {
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
        if own.is_empty() {
            continue;
        }
        let Some(room) = room(own) else {
            problem(
                1,
                format!(
                    "`{}` is in no room: give it a floor in FLOORS of {HERE}",
                    own.join("/")
                ),
            );
            continue;
        };
        let mut imported = BTreeSet::new();
        for import in &source.paths {
            let target = (0..=import.segments.len())
                .rev()
                .map(|length| &import.segments[..length])
                .find(|module| read.contains_key(*module))
                .unwrap_or_default();
            match allowed(own, room, target, &import.segments) {
                Err(what) => problem(import.line, what),
                Ok(()) if target == own => {}
                Ok(()) => {
                    imported.insert(target.to_vec());
                }
            }
        }
        imports.insert(own.clone(), imported);
        for (_, words, why) in BARRED.iter().filter(|(barred, ..)| within(own, barred)) {
            for (word, line) in source
                .words
                .iter()
                .filter(|(word, _)| words.contains(&word.as_str()))
            {
                problem(*line, format!("`{word}` in `{}`: {why}", room.name));
            }
        }
    }
    if let Some(circle) = circle(&imports) {
        let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        problems.push(format!(
            "these files import one another in a circle: {}",
            names.join(" -> ")
        ));
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

/// Whether the file of module `own` may import a path that leads to the file of `target`.
fn allowed(own: &Module, room: Room, target: &[String], import: &[String]) -> Result<(), String> {
    if own == target {
        return Ok(());
    }
    let shown = import.join("::");
    let Some(other) = self::room(target) else {
        return Err(format!(
            "`crate::{shown}` is in no room of {HERE}'s FLOORS, nor reached through one: import it from the file that \
             defines it, or give a new room a floor"
        ));
    };
    if own.starts_with(target) {
        return Err(format!(
            "`crate::{shown}` comes from the front of its own room: import it from the file that defines it"
        ));
    }
    if other.name != room.name && other.floor == room.floor {
        return Err(format!(
            "`{}` imports `crate::{shown}` from its own floor {}: move one of them",
            room.name, room.floor
        ));
    }
    if other.floor > room.floor {
        return Err(format!(
            "`{}` (floor {}) imports `crate::{shown}` from floor {} above it",
            room.name, room.floor, other.floor
        ));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Room {
    name: &'static str,
    floor: usize,
}

/// The innermost room that holds a module.
fn room(module: &[String]) -> Option<Room> {
    let rooms = FLOORS.iter().enumerate().flat_map(|(floor, rooms)| {
        let room = move |name: &&'static str| Room { name, floor };
        rooms.iter().map(room)
    });
    rooms
        .filter(|room| within(module, room.name))
        .max_by_key(|room| room.name.len())
}

/// Whether a module is in the folder or file `place`.
fn within(module: &[String], place: &str) -> bool {
    let mut parts = module.iter();
    place
        .split('/')
        .all(|part| parts.next().is_some_and(|own| own == part))
}

/// Modules of which each imports the next, and the last the first.
fn circle(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<Module>> {
    fn visit(
        module: &Module,
        imports: &BTreeMap<Module, BTreeSet<Module>>,
        way: &mut Vec<Module>,
        done: &mut BTreeSet<Module>,
    ) -> bool {
        if let Some(begin) = way.iter().position(|other| other == module) {
            way.drain(..begin);
            way.push(module.clone());
            return true;
        }
        if done.contains(module) {
            return false;
        }
        way.push(module.clone());
        for next in imports.get(module).into_iter().flatten() {
            if visit(next, imports, way, done) {
                return true;
            }
        }
        way.pop();
        done.insert(module.clone());
        false
    }

    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| {
        let mut way = Vec::new();
        visit(module, imports, &mut way, &mut done).then_some(way)
    })
}

/// The module that a file holds: none for `lib.rs`, `a::b` for `a/b.rs` and `a/b/mod.rs`.
fn module(path: &Path) -> Module {
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

/// CONTRIBUTING.md leads through `src/`: every file that it names is there.
#[test]
fn the_tour_leads_to_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let paths: Vec<&str> = text
        .split('`')
        .filter(|code| code.starts_with("src/") && code.ends_with(".rs"))
        .collect();
    assert!(paths.len() > 20, "the tour is gone: {paths:?}");
    for path in paths {
        assert!(
            root.join(path).is_file(),
            "CONTRIBUTING.md names {path}, which is not there"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, FLOORS, audit};

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
    fn rooms_have_one_floor() {
        let mut all: Vec<&str> = FLOORS.concat();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn imports_from_below_and_from_beside_hold() {
        let files = [
            ("error.rs", "use std::fmt; use http::StatusCode;"),
            (
                "protocol/request/mod.rs",
                "mod meta; pub(crate) use self::meta::Meta;",
            ),
            ("protocol/reply/sse.rs", "use crate::error::Error;"),
            ("protocol/request/level.rs", ""),
            (
                "protocol/request/meta.rs",
                "use super::level::Level; use crate::protocol::reply::sse; use crate::error;",
            ),
            (
                "state.rs",
                "use crate::{error::Error, protocol::{request::Meta, reply::sse::Frame}};",
            ),
            (
                "response/body.rs",
                "use crate::state::State;\n#[cfg(test)]\nmod tests { use crate::layer::L; use super::*; }",
            ),
            ("service.rs", "use super::response::body::B;"),
            ("layer.rs", "use crate::service::S;"),
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
        let channel = ("channel/handle.rs", "");
        let future = ("response/future.rs", "");
        let layer = ("layer.rs", "");
        one_problem(
            &[
                (
                    "protocol/request/meta.rs",
                    "\nuse crate::channel::handle::Channel;",
                ),
                channel,
            ],
            &[
                "src/protocol/request/meta.rs:2:",
                "`protocol/request` (floor 5)",
                "floor 8 above",
            ],
        );
        one_problem(
            &[
                ("state.rs", "fn f() { crate::response::future::x() }"),
                future,
            ],
            &["crate::response::future::x", "floor 11"],
        );
        one_problem(
            &[
                ("protocol/json/raw.rs", "use super::super::reply::E;"),
                ("protocol/reply/mod.rs", ""),
            ],
            &["`protocol/json` (floor 1) imports `crate::protocol::reply::E`"],
        );
        one_problem(
            &[
                (
                    "channel/coalescing.rs",
                    "mod inner { use super::super::super::layer::L; }",
                ),
                layer,
            ],
            &["crate::layer::L"],
        );
        let grouped = problems(&[
            (
                "channel/mod.rs",
                "use crate::{error::E, protocol, layer::{S, T}};",
            ),
            ("error.rs", ""),
            ("protocol/mod.rs", ""),
            layer,
        ]);
        assert_eq!(grouped.len(), 2, "{grouped:?}");
    }

    #[test]
    fn an_import_within_a_floor_is_refused() {
        one_problem(
            &[
                ("config.rs", "use crate::subscriptions::S;"),
                ("subscriptions/mod.rs", ""),
            ],
            &["its own floor 10"],
        );
    }

    #[test]
    fn a_file_imports_nothing_from_the_front_of_its_own_room() {
        one_problem(
            &[
                ("channel/send.rs", "use super::Channel;"),
                ("channel/mod.rs", ""),
            ],
            &[
                "src/channel/send.rs:1",
                "`crate::channel::Channel` comes from the front",
            ],
        );
    }

    #[test]
    fn files_that_import_one_another_are_found() {
        one_problem(
            &[
                ("channel/a.rs", "use super::b::B;"),
                ("channel/b.rs", "use super::c::C;"),
                ("channel/c.rs", "use super::a::A;"),
                ("channel/d.rs", "use super::a::A;"),
            ],
            &["channel/a -> channel/b -> channel/c -> channel/a"],
        );
    }

    #[test]
    fn a_file_without_a_floor_says_where_to_add_it() {
        one_problem(
            &[("novel/mod.rs", "")],
            &["`novel` is in no room", "FLOORS of tests/floors/main.rs"],
        );
        one_problem(
            &[("config.rs", "use crate::novel::N;")],
            &["crate::novel::N", "give a new room a floor"],
        );
    }

    #[test]
    fn the_crate_root_is_no_way_around() {
        one_problem(
            &[("config.rs", "use crate::Layer;")],
            &["`crate::Layer`", "import it from the file that defines it"],
        );
        one_problem(&[("config.rs", "use crate::*;")], &["`crate::*`"]);
    }

    #[test]
    fn the_protocol_and_the_state_machine_are_pure() {
        one_problem(
            &[("protocol/reply/a.rs", "use tokio::time::sleep;")],
            &["`tokio` in `protocol/reply`"],
        );
        one_problem(
            &[("protocol/reply/a.rs", "fn f(x: impl http_body::Body) {}")],
            &["`http_body` in `protocol/reply`"],
        );
        one_problem(
            &[("protocol/reply/a.rs", "fn f<S: tower::Service<()>>() {}")],
            &["`tower`"],
        );
        one_problem(
            &[("state.rs", "fn f(now: Instant) {}")],
            &["`Instant` in `state`", "no clock"],
        );
        assert_eq!(
            problems(&[(
                "protocol/reply/a.rs",
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
