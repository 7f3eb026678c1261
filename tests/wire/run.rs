//! Runs cases against a server and reports each by name.

use std::fmt::Write as _;
use std::sync::RwLock;
use std::thread::{self, JoinHandle};

use crate::case::{Case, Due, Exchange, Step};
use crate::check;
use crate::exchange::Running;
use crate::protocol;
use crate::response::Reply;
use crate::server::Target;

/// Shared by the cases that run beside one another; a case that wants the machine for itself holds it alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// What holds for every reply besides its case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rules {
    /// It consists of messages of the protocol.
    Protocol,
    /// Nothing: the server speaks another one.
    None,
}

/// The outcome of a case file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// One line for each case, and one for each of its problems.
    pub(crate) text: String,
    pub(crate) held: usize,
    pub(crate) failed: usize,
}

impl Report {
    pub(crate) fn add(&mut self, file: &str, case: &Case, problems: &[String]) {
        // Writing to a string does not fail.
        let _ = if problems.is_empty() {
            self.held += 1;
            writeln!(self.text, "ok   {file}/{}", case.id)
        } else {
            self.failed += 1;
            writeln!(self.text, "FAIL {file}/{}  ({})", case.id, case.why)
        };
        for problem in problems {
            let _ = writeln!(self.text, "     {problem}");
        }
    }
}

/// Runs one case: everything about it that does not hold.
pub(crate) fn run(target: &Target, case: &Case, rules: Rules) -> Vec<String> {
    let (_shared, _alone);
    if case.alone {
        _alone = MACHINE
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    } else {
        _shared = MACHINE
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    }

    let mut bad = Vec::new();
    let mut background: Vec<(&Exchange, JoinHandle<Reply>)> = Vec::new();
    for step in &case.steps {
        match step {
            Step::Sleep(time) => thread::sleep(*time),
            Step::Join(name) => {
                let joined = background.extract_if(.., |(exchange, _)| {
                    exchange.background.as_ref() == Some(name)
                });
                for (exchange, thread) in joined {
                    bad.extend(judge(exchange, thread.join().ok(), rules));
                }
            }
            Step::Exchange(exchange) => match Running::start(target, exchange) {
                Err(error) => bad.push(named(exchange, format!("no connection: {error}"))),
                Ok(running) if exchange.background.is_some() => {
                    background.push((exchange, thread::spawn(move || running.finish())));
                }
                Ok(running) => bad.extend(judge(exchange, Some(running.finish()), rules)),
            },
        }
    }
    // Those that nobody joins expect nothing; they end before the next case starts, so that it finds a quiet server.
    for (exchange, thread) in background {
        if thread.join().is_err() {
            bad.push(named(exchange, "the check itself panicked".into()));
        }
    }
    bad
}

fn judge(exchange: &Exchange, reply: Option<Reply>, rules: Rules) -> Vec<String> {
    let problems = match (&exchange.due, reply) {
        (_, None) => vec!["the check itself panicked".into()],
        (Due::Answer(expect), Some(reply)) => {
            let mut problems = check::problems(expect, &reply);
            if let Rules::Protocol = rules {
                problems.extend(protocol::problems(&exchange.request, &reply));
            }
            problems
        }
        (Due::Nothing, Some(reply)) => reply
            .status
            .map(|status| format!("an answer came: {status}"))
            .into_iter()
            .collect(),
    };
    problems
        .into_iter()
        .map(|problem| named(exchange, problem))
        .collect()
}

fn named(exchange: &Exchange, problem: String) -> String {
    if exchange.name.is_empty() {
        problem
    } else {
        format!("{}: {problem}", exchange.name)
    }
}
