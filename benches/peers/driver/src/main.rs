//! Measures the library beside what users would pick instead, and prints one table.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- [OPTIONS]
//!
//!   --quick          a smoke run of less than a minute; its numbers mean nothing, and no file of the repository changes
//!   --servers A,B    only these, in this order (bare, mcp-channel, axum-sse, rmcp, tower-mcp, rust-mcp-sdk)
//!   --instructions   count instructions, too (with valgrind)
//!   --build-cost     measure the crates and the cold build, too (some minutes)
//!   guard [--write]  nothing of this: compare the library's instructions and allocations with `benches/baseline.json`,
//!                    and fail when one has risen by more than a tenth; or write that file anew
//! ```

mod build_cost;
mod client;
mod instructions;
mod load;
mod plan;
mod plot;
mod process;
mod report;
mod targets;

use std::process::{Command, ExitCode};
use std::time::Instant;

use harness::Error;

use crate::plan::Effort;
use crate::plot::Chart;
use crate::process::{Server, workspace};
use crate::report::{Show, Table};

/// A server's name in the table, and the package that holds it.
const SERVERS: [(&str, &str); 6] = [
    ("bare", "bare"),
    ("mcp-channel", "ours"),
    ("axum-sse", "axum-sse"),
    ("rmcp", "rmcp"),
    ("tower-mcp", "tower-mcp"),
    ("rust-mcp-sdk", "rust-mcp-sdk"),
];

/// Between these marks of `benches/README.md` stands the table.
const BEGIN: &str = "<!-- results -->";
const END: &str = "<!-- end of results -->";

struct Options {
    quick: bool,
    instructions: bool,
    build_cost: bool,
    servers: Vec<(&'static str, &'static str)>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut options = Options { quick: false, instructions: false, build_cost: false, servers: SERVERS.to_vec() };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--instructions" => options.instructions = true,
                "--build-cost" => options.build_cost = true,
                "--servers" => {
                    let names = arguments.next().ok_or("--servers needs names, for instance bare,mcp-channel")?;
                    let find = |name: &str| {
                        let known = || SERVERS.map(|(name, _)| name).join(", ");
                        SERVERS
                            .into_iter()
                            .find(|(known, _)| *known == name)
                            .ok_or_else(|| format!("no server {name:?}; there are {}", known()))
                    };
                    options.servers = names.split(',').map(find).collect::<Result<_, _>>()?;
                }
                _ => {
                    return Err(
                        format!("unknown option {argument:?}; there are --quick, --servers A,B, --instructions and --build-cost").into()
                    );
                }
            }
        }
        Ok(options)
    }

    fn effort(&self) -> Effort {
        if self.quick { plan::QUICK } else { plan::FULL }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["guard"] => guard(false),
        ["guard", "--write"] => guard(true),
        _ => Options::parse(arguments.into_iter()).and_then(|options| run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn guard(write: bool) -> Result<(), Error> {
    let (name, package) = SERVERS[1];
    instructions::guard(&Server { name, binary: process::build(package)?, core: None }, write)
}

fn run(options: &Options) -> Result<(), Error> {
    let effort = options.effort();
    let mut table = Table::new(options.servers.iter().map(|(name, _)| *name).collect());
    let cores = std::thread::available_parallelism()?.get();
    // The servers have the first core for themselves, this client the second.
    let core = (cores > 1).then_some(0);
    let mut servers = Vec::new();
    for (name, package) in &options.servers {
        eprintln!("building {name}");
        servers.push(Server { name, binary: process::build(package)?, core });
    }
    let mut costs = Vec::new();
    if options.build_cost {
        for (at, (name, _)) in options.servers.iter().enumerate() {
            eprintln!("building {name} from nothing");
            costs.extend(build_cost::measure(name)?.map(|cost| (at, cost)));
        }
    }
    let files = harness::raise_file_limit()?;
    let needed = effort.idle.iter().max().copied().unwrap_or(0) as u64 + 100;
    if files < needed {
        return Err(format!("only {files} files may be open, {needed} are needed: raise the hard limit (ulimit -Hn)").into());
    }
    if core.is_some() {
        harness::pin_to(1)?;
    }

    let start = Instant::now();
    let before = process::elsewhere()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        eprintln!("measuring in process");
        plan::in_process(&mut table, &servers, effort).await?;
        eprintln!("measuring over sockets ({:.0} s so far)", start.elapsed().as_secs_f64());
        plan::sockets(&mut table, &servers, effort).await
    })?;
    let took = start.elapsed().as_secs_f64();
    let now = process::elsewhere()?;
    let [busy, stolen] = [now.others - before.others, now.stolen - before.stolen].map(|seconds| seconds / took * 100.0);
    eprintln!("measured in {took:.0} s; meanwhile other processes used {busy:.0} % of a core, and the host took {stolen:.0} %");
    if options.instructions {
        eprintln!("counting instructions");
        table.section("Instructions, in process");
        for (at, server) in servers.iter().enumerate() {
            for (name, call, few, many) in instructions::COUNTED {
                let counts = instructions::count(server, call, few, many)?;
                let (label, units) = if name == "json" { ("a JSON reply", 1.0) } else { ("a frame of 1,000", 1e3) };
                table.add(&format!("{name}.instructions"), label, Show::Ratio, at, counts.instructions / units);
            }
        }
    }
    if options.build_cost {
        table.section("Build");
        for (at, cost) in costs {
            table.add("crates", "crates that it brings, itself included", Show::Plain, at, cost.crates as f64);
            table.add("build", "cold `cargo build`: seconds", Show::Plain, at, cost.seconds);
        }
    }
    let mut machine = machine(cores)?;
    if busy >= 2.0 {
        machine += &format!(" Other processes used {busy:.0} % of a core meanwhile.");
    }
    if stolen >= 2.0 {
        machine += &format!(" The machine is virtual, and its host took {stolen:.0} % of a core meanwhile.");
    }
    write(options, &table, &machine)
}

/// Prints the table, and writes it and the plot: to the repository after a full run of all servers, else below `target`.
fn write(options: &Options, table: &Table, machine: &str) -> Result<(), Error> {
    let markdown = format!("{machine}\n\n{}\n{}", table.markdown(), targets::markdown(table));
    println!("{markdown}");
    let place = if options.quick || options.servers.len() < SERVERS.len() { workspace().join("target") } else { workspace().join("..") };
    std::fs::create_dir_all(&place)?;
    let bars = |id: &str, scale: f64| {
        let bars = table.servers.iter().filter_map(|server| Some((*server, table.value(id, server)? / scale)));
        bars.collect::<Vec<_>>()
    };
    let idle = options.effort().idle.iter().max().copied().unwrap_or(0);
    let idle_title = "Resident KiB an idle stream (less is better)";
    let plot = plot::svg(&[
        Chart { title: "Progress frames per second, 16 connections", bars: bars("stream16.rate", 1.0) },
        Chart { title: idle_title, bars: bars(&format!("idle.{idle}"), 1024.0) },
    ]);
    std::fs::write(place.join("peers.svg"), plot)?;
    let readme = place.join("README.md");
    if place.ends_with("target") {
        std::fs::write(place.join("peers.md"), markdown)?;
    } else {
        let text = std::fs::read_to_string(&readme)?;
        let text = report::replace_between(&text, BEGIN, END, &markdown)
            .ok_or_else(|| format!("{} lacks the marks that the table goes between", readme.display()))?;
        std::fs::write(&readme, text)?;
    }
    eprintln!("written to {}", place.display());
    Ok(())
}

/// The machine, in a sentence.
fn machine(cores: usize) -> Result<String, Error> {
    let info = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("an unnamed processor", |line| line.trim_start_matches([' ', '\t', ':']));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output()?;
    let rustc = String::from_utf8(rustc.stdout)?;
    let split = if cores > 1 { "the server on one core, the client on another" } else { "server and client on the only core" };
    let kernel = kernel.trim().split('-').next().unwrap_or("").to_owned();
    Ok(format!("{cores} cores of {model}, Linux {kernel}, {}; {split}.", rustc.trim()))
}
