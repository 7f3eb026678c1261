//! What a library costs before it runs: the crates it brings, and the time of a cold build.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use harness::Error;

use crate::process::workspace;

/// Crates that a program gets with a dependency (itself included), and the seconds of its cold `cargo build`.
#[derive(Clone, Copy, Debug)]
pub struct BuildCost {
    pub crates: usize,
    pub seconds: f64,
}

/// Measures the dependency of a server's package on a library, in an empty program.
pub fn measure(server: &str) -> Result<Option<BuildCost>, Error> {
    let library = workspace().join("../..").canonicalize()?;
    let dependency = match server {
        "mcp-channel" => format!("mcp-channel = {{ path = {library:?} }}"),
        "rmcp" | "tower-mcp" | "rust-mcp-sdk" => {
            let manifest = std::fs::read_to_string(workspace().join(format!("servers/{server}/Cargo.toml")))?;
            let line = manifest.lines().find(|line| line.starts_with(&format!("{server} = ")));
            line.ok_or_else(|| format!("the package of {server} does not depend on it"))?.to_owned()
        }
        _ => return Ok(None),
    };
    let place = workspace().join("target/build-cost").join(server);
    match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    std::fs::create_dir_all(place.join("src"))?;
    std::fs::write(place.join("src/main.rs"), "fn main() {}\n")?;
    std::fs::write(
        place.join("Cargo.toml"),
        format!("[package]\nname = \"cost\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{dependency}\n"),
    )?;
    // The versions of the comparison, whatever is newer.
    std::fs::copy(workspace().join("Cargo.lock"), place.join("Cargo.lock"))?;
    let tree = cargo(&place, &["tree", "-e", "normal", "--prefix", "none", "--format", "{p}"])?;
    let mut crates: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)").trim_end_matches(" (proc-macro)")).collect();
    crates.sort_unstable();
    crates.dedup();
    cargo(&place, &["fetch"])?;
    let start = Instant::now();
    cargo(&place, &["build", "--quiet", "--offline", "--target-dir", "target"])?;
    Ok(Some(BuildCost {
        crates: crates.iter().filter(|name| !name.is_empty() && !name.starts_with("cost ")).count(),
        seconds: start.elapsed().as_secs_f64(),
    }))
}

fn cargo(place: &Path, arguments: &[&str]) -> Result<String, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(place).args(arguments).env_remove("CARGO_TARGET_DIR").stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo {} failed in {}", arguments.join(" "), place.display()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
