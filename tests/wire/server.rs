//! The server under test: the `everything` example as a process of its own, or one that already runs.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

const EXAMPLE: &str = "everything";
const GREETING: &str = "listening on ";
const START: Duration = Duration::from_secs(20);
/// How much of the server's standard error a report shows.
const TAIL: usize = 4000;

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// The value of `Host`.
    pub(crate) authority: String,
    pub(crate) path: String,
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| format!("{url:?} is no http:// URL"))?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let address = authority
            .to_socket_addrs()
            .map_err(|error| format!("{url:?}: {error}"))?
            .next()
            .ok_or_else(|| format!("{url:?} has no address"))?;
        Ok(Self {
            address,
            authority: authority.into(),
            path: path.into(),
        })
    }
}

/// A running example; dropping it ends the process.
pub(crate) struct Server {
    child: Child,
    stderr: Arc<Mutex<String>>,
    pub(crate) target: Target,
}

impl Server {
    /// Starts the example on a free port and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// It is not built or older than its sources, it ends, or it does not say where it listens.
    pub(crate) fn start() -> Result<Self, String> {
        let program = example()?;
        let mut command = Command::new(&program);
        command.args(["--addr", "127.0.0.1:0", "--keep-alive-ms", "200"]);
        Self::spawn(command).map_err(|problem| format!("{}: {problem}", program.display()))
    }

    pub(crate) fn spawn(mut command: Command) -> Result<Self, String> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut server = Self {
            child,
            stderr: Arc::default(),
            target: Target::parse("http://127.0.0.1:0/")?,
        };

        // Both pipes are read to their ends, so that the server never waits for room in one.
        let (found, url) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout?).lines() {
                if let Some(url) = line.ok()?.strip_prefix(GREETING) {
                    found.send(url.trim().to_owned()).ok();
                }
            }
            Some(())
        });
        let text = Arc::clone(&server.stderr);
        let errors = thread::spawn(move || {
            let (mut stderr, mut buffer) = (stderr?, [0; 4096]);
            while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                let mut text = text.lock().ok()?;
                text.push_str(&String::from_utf8_lossy(&buffer[..n]));
                let cut = text.len().saturating_sub(TAIL);
                if let Some(cut) = (cut..=text.len()).find(|at| text.is_char_boundary(*at)) {
                    text.drain(..cut);
                }
            }
            Some(())
        });

        match url.recv_timeout(START) {
            Ok(url) => server.target = Target::parse(&url)?,
            Err(RecvTimeoutError::Timeout) => {
                return Err(server.report(&format!("no line {GREETING:?} within {START:?}")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                // Its output ended, so it is about to end, too.
                errors.join().ok();
                let status = server.child.wait().map_err(|error| error.to_string())?;
                return Err(server.report(&format!("it ended before it listened: {status}")));
            }
        }
        Ok(server)
    }

    /// What became of the server, if it no longer runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(self.report(&format!("the server ended: {status}")))
    }

    fn report(&self, problem: &str) -> String {
        let stderr = self
            .stderr
            .lock()
            .map(|text| text.clone())
            .unwrap_or_default();
        if stderr.is_empty() {
            problem.into()
        } else {
            format!("{problem}; its standard error ends with:\n{stderr}")
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The example that belongs to this test: built by the same cargo profile, and from the present sources.
fn example() -> Result<PathBuf, String> {
    let test = env::current_exe().map_err(|error| error.to_string())?;
    let profile = test
        .parent()
        .and_then(Path::parent)
        .ok_or("the test has no directory")?;
    let program = profile
        .join("examples")
        .join(format!("{EXAMPLE}{}", env::consts::EXE_SUFFIX));
    let build = format!(
        "run `cargo build --example {EXAMPLE}` with this test's profile and features first; a whole `cargo test` does it by itself"
    );
    let built =
        modified(&program).ok_or_else(|| format!("{} is not there: {build}", program.display()))?;
    match newer_source(&program, built) {
        Some(source) => Err(format!(
            "{} is older than {}: {build}",
            program.display(),
            source.display()
        )),
        None => Ok(program),
    }
}

/// A source of `program` that changed after it was built, by the list that cargo leaves beside it.
fn newer_source(program: &Path, built: SystemTime) -> Option<PathBuf> {
    let list = fs::read_to_string(program.with_extension("d")).ok()?;
    let (_, sources) = list.lines().next()?.split_once(": ")?;
    // Spaces within a path are written "\ ".
    let sources = sources.replace("\\ ", "\0");
    sources
        .split(' ')
        .map(|path| PathBuf::from(path.replace('\0', " ")))
        .find(|path| modified(path).is_none_or(|at| at > built))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{Command, Duration, Server, SystemTime, Target, fs, newer_source};

    fn shell(script: &str) -> Result<Server, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Server::spawn(command)
    }

    #[test]
    fn a_url_names_address_and_path() {
        let target = Target::parse("http://127.0.0.1:3000/mcp").unwrap();
        assert_eq!(
            (target.address.port(), &*target.authority, &*target.path),
            (3000, "127.0.0.1:3000", "/mcp")
        );
        for url in [
            "https://127.0.0.1:3000/mcp",
            "127.0.0.1:3000",
            "http://127.0.0.1/mcp",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_does_not_start_says_why() {
        let problem = shell("echo no such option >&2; exit 3").err().unwrap();
        assert!(
            problem.contains("exit status: 3") && problem.contains("no such option"),
            "{problem}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_ends_later_is_noticed() {
        let mut server =
            shell("echo warming up; echo listening on http://127.0.0.1:9/mcp; echo gone >&2")
                .unwrap();
        assert_eq!(server.target.address.port(), 9);
        let ended = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            server.ended()
        });
        assert!(ended.unwrap().contains("gone"));
    }

    #[test]
    fn an_example_older_than_its_sources_is_noticed() {
        let directory = std::env::temp_dir().join(format!("wire sources {}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (program, source) = (directory.join("everything"), directory.join("a b.rs"));
        let escaped = source.display().to_string().replace(' ', "\\ ");
        fs::write(
            program.with_extension("d"),
            format!("everything: {escaped}\n"),
        )
        .unwrap();
        fs::write(&source, "").unwrap();
        let now = SystemTime::now();
        assert_eq!(
            newer_source(&program, now - Duration::from_secs(60)),
            Some(source.clone())
        );
        assert_eq!(newer_source(&program, now + Duration::from_secs(60)), None);
        fs::remove_file(&source).unwrap();
        assert_eq!(
            newer_source(&program, now + Duration::from_secs(60)),
            Some(source)
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
