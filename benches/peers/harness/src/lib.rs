//! What every server of the comparison shares. A server's `main` is one call of [`main`].

mod allocations;
mod body;
mod context;
mod sample;
mod serve;
pub mod wire;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::{BoxError, Service};

pub use allocations::{Allocations, allocations};
pub use body::RequestBody;
pub use context::{Context, Guard, monotonic_ns};
pub use sample::{Job, Sample, median};
pub use serve::{pin_to, raise_file_limit};
pub use tower::BoxError as Error;

/// Runs a server as its command line says:
///
/// - `serve [CORE]` prints the port and serves until standard input ends;
/// - `sample JOB MILLISECONDS [CORE]` calls the service in this process and prints a [`Sample`] as JSON;
/// - `count CALL TIMES` makes so many exchanges in this process and prints the allocations of one.
///
/// `bare` tells that the service reads no bodies and needs the call in the path.
pub fn main<S, B>(bare: bool, make: impl FnOnce(Arc<Context>) -> S) -> ExitCode
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(bare, make, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run<S, B>(bare: bool, make: impl FnOnce(Arc<Context>) -> S, arguments: &[String]) -> Result<(), BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let core = |text: Option<&String>| text.map(|core| core.parse::<usize>()).transpose();
    match arguments.first().map(String::as_str) {
        Some("serve") => serve::serve(make, core(arguments.get(1))?),
        Some("sample") if arguments.len() >= 3 => {
            if let Some(core) = core(arguments.get(3))? {
                pin_to(core)?;
            }
            let job = serde_json::from_str(&arguments[1])?;
            let sample = sample::sample(make, bare, job, Duration::from_millis(arguments[2].parse()?))?;
            println!("{}", serde_json::to_string(&sample)?);
            Ok(())
        }
        Some("count") if arguments.len() == 3 => {
            let call = serde_json::from_str(&arguments[1])?;
            println!("{}", sample::count(make, bare, call, arguments[2].parse()?)?);
            Ok(())
        }
        _ => Err("usage: serve [CORE] | sample JOB MILLISECONDS [CORE] | count CALL TIMES".into()),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
