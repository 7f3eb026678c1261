//! A server in its own process, and what the kernel tells of it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use harness::wire::Call;
use harness::{Error, Job, Sample};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A server of the comparison.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: &'static str,
    pub binary: PathBuf,
    /// The core that it runs on, when there is one to spare.
    pub core: Option<usize>,
}

impl Server {
    pub fn is_bare(&self) -> bool {
        self.name == "bare"
    }

    /// Samples it in a process of its own, without sockets.
    pub async fn sample(&self, job: Job, time: Duration) -> Result<Sample, Error> {
        let mut command = Command::new(&self.binary);
        command.arg("sample").arg(serde_json::to_string(&job)?).arg(time.as_millis().to_string());
        command.args(self.core.map(|core| core.to_string()));
        let output = command.kill_on_drop(true).output();
        let output = tokio::time::timeout(Duration::from_secs(60), output).await.map_err(|_| format!("{}: {job:?} hangs", self.name))??;
        if !output.status.success() {
            return Err(format!("{}: {job:?}: {}", self.name, String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Starts it and waits until it listens.
    pub async fn start(&self) -> Result<Running, Error> {
        let mut command = Command::new(&self.binary);
        command.arg("serve").args(self.core.map(|core| core.to_string()));
        // The server ends when its standard input does, so it never outlives this process.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let port = lines.next_line().await?.ok_or_else(|| format!("{} did not start", self.name))?;
        let pid = child.id().ok_or_else(|| format!("{} ended at once", self.name))?;
        Ok(Running { server: self.clone(), port: port.parse()?, pid, child, lines })
    }
}

/// A server that listens. Dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    pub server: Server,
    pub port: u16,
    pid: u32,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The bytes of a request for this server.
    pub fn request(&self, call: Call, id: &serde_json::Value) -> Vec<u8> {
        let path = if self.server.is_bare() { call.bare_path() } else { "/".to_owned() };
        let body = call.body(id);
        let mut request = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: {}\r\n", self.port, body.len());
        for (name, value) in call.headers() {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        request.push_str(&body);
        request.into_bytes()
    }

    /// The request that is measured.
    pub fn measured(&self, call: Call) -> Vec<u8> {
        self.request(call, &json!(harness::wire::ID))
    }

    /// Waits for the next line that a dropped handler prints, and returns its time.
    pub async fn dropped(&mut self) -> Result<u64, Error> {
        let line = self.lines.next_line().await?.ok_or("the server ended")?;
        let time = line.strip_prefix("dropped ").ok_or_else(|| format!("{line:?} is no drop"))?;
        Ok(time.parse()?)
    }

    /// Processor time of all its threads so far, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Error> {
        let mut sum = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split_whitespace().next().ok_or("schedstat is empty")?.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// Resident memory, in bytes.
    pub fn rss(&self) -> Result<u64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("there is no VmRSS")?;
        let kib = line.trim().strip_suffix(" kB").ok_or("VmRSS is not in kB")?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }

    pub async fn stop(mut self) -> Result<(), Error> {
        Ok(self.child.kill().await?)
    }
}

/// Processor time that was not this process's since the machine started, in seconds. Its growth tells how far a measurement was disturbed.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere {
    /// What all others than this process and its ended children have used.
    pub others: f64,
    /// What the host of a virtual machine gave to others, while this one had something to do.
    pub stolen: f64,
}

pub fn elsewhere() -> Result<Elsewhere, Error> {
    let numbers = |text: &str| text.split_whitespace().map(|number| number.parse::<f64>().unwrap_or(0.0)).collect::<Vec<_>>();
    let all = std::fs::read_to_string("/proc/stat")?;
    let all = numbers(all.lines().find_map(|line| line.strip_prefix("cpu ")).ok_or("/proc/stat has no sum")?);
    let own = std::fs::read_to_string("/proc/self/stat")?;
    // The second field, the name in brackets, may hold spaces.
    let own = numbers(own.rsplit_once(')').ok_or("/proc/self/stat has no name")?.1);
    // User, nice, system and interrupt time of all; own user and system time, and the ended children's.
    match (all.get(..8), own.get(11..15)) {
        (Some(all), Some(own)) => Ok(Elsewhere {
            others: (all[..3].iter().chain(&all[5..7]).sum::<f64>() - own.iter().sum::<f64>()) / 100.0,
            stolen: all[7] / 100.0,
        }),
        _ => Err("/proc/stat or /proc/self/stat is too short".into()),
    }
}

/// The directory of this workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the driver is a member")
}

/// Builds a server's package alone, and returns where its program is.
pub fn build(name: &str) -> Result<PathBuf, Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.current_dir(workspace()).args(["build", "--release", "--locked", "--quiet", "--message-format=json-render-diagnostics", "-p"]);
    let output = command.arg(format!("peer-{name}")).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("peer-{name} does not build").into());
    }
    let messages = String::from_utf8(output.stdout)?;
    let executable = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.ok_or_else(|| format!("cargo names no program for peer-{name}").into())
}
