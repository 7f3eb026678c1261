//! The command line.

use std::time::Duration;

pub const USAGE: &str = "\
usage: everything [--addr HOST:PORT] [--keep-alive-ms N] [--stream-after-ms N] [--modern-only]

  --addr HOST:PORT     where to listen; port 0 picks a free one   [127.0.0.1:3000]
  --keep-alive-ms N    the longest silence of a stream, 0 for any [15000]
  --stream-after-ms N  how long a reply may be silent before it
                       becomes a stream, 0 for any                [15000]
  --modern-only        refuses clients of earlier revisions

environment:
  EVERYTHING_STATE_KEY  the secret that seals `requestState`, 32 bytes or more; the instances behind
                        one load balancer share it. A random one when it is not set.";

/// What the command line asks for. What it leaves out is the layer's default.
#[derive(Debug)]
pub struct Args {
    pub addr: String,
    pub keep_alive: Option<Duration>,
    pub stream_after: Option<Duration>,
    pub modern_only: bool,
}

impl Args {
    /// `None` when help is wanted.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut args = Self {
            addr: "127.0.0.1:3000".into(),
            keep_alive: None,
            stream_after: None,
            modern_only: false,
        };
        while let Some(word) = words.next() {
            let (name, given) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || {
                let value = given.clone().or_else(|| words.next());
                value.ok_or_else(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--addr" => args.addr = value()?,
                "--keep-alive-ms" => args.keep_alive = Some(milliseconds(&name, &value()?)?),
                "--stream-after-ms" => args.stream_after = Some(milliseconds(&name, &value()?)?),
                "--modern-only" if given.is_none() => args.modern_only = true,
                "-h" | "--help" => return Ok(None),
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(Some(args))
    }
}

fn milliseconds(name: &str, value: &str) -> Result<Duration, String> {
    let parsed = value.parse().map(Duration::from_millis);
    parsed.map_err(|_| format!("{name} takes a whole number of milliseconds, not {value:?}"))
}
