//! One server that uses every part of the crate: an axum router, the layer on the MCP route, plain
//! functions.
//!
//! ```text
//! cargo run --example everything -- [--addr 127.0.0.1:3000] [--keep-alive-ms N] [--stream-after-ms N] [--modern-only]
//! ```
//!
//! It serves HTTP/1.1 and cleartext HTTP/2 on one port, and ends on SIGINT or SIGTERM.

#![expect(
    unreachable_pub,
    reason = "a program exports nothing, so `pub` says enough"
)]

mod app;
mod args;
mod completion;
mod content;
mod discover;
mod input;
mod methods;
mod param_headers;
mod prompts;
mod resources;
mod seal;
mod server;
mod stats;
mod tools;

use std::process::ExitCode;

use args::Args;

#[tokio::main]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("{why}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match server::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
