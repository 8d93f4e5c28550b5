//! The checks, in their order.

use super::program::Program;
use super::{acp, agents, chat, crash, first_run, graphs, kill, local_model, mcp, relay, serve, start_up};
use crate::fault::{Fault, Result};
use crate::stopwatch::{Stopwatch, Took};

/// Which checks to run.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Options {
    /// Only the check with this name.
    #[arg(value_name = "CHECK")]
    check: Option<String>,
    /// The same.
    #[arg(long, value_name = "CHECK", conflicts_with = "check")]
    only: Option<String>,
}

type Check = fn(&Program) -> Result<String>;

/// Name, and what does it; the text that a check returns is its finding.
const CHECKS: &[(&str, Check)] = &[
    ("start-up", start_up::run),
    ("first-run", first_run::run),
    ("crash", crash::run),
    ("kill", kill::run),
    ("owner", kill::one_owner),
    ("chat", chat::run),
    ("graphs", graphs::run),
    ("mcp", mcp::run),
    ("acp", acp::run),
    ("relay", relay::run),
    ("serve", serve::run),
    ("agents", agents::run),
    ("local-model", local_model::run),
];

/// Builds the release program and runs the checks; goes on after a failed one.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted =
        |name: &str| options.check.as_ref().or(options.only.as_ref()).is_none_or(|only| only == name);
    if CHECKS.iter().all(|(name, _)| !wanted(name)) {
        let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
        return Err(Fault::new(format!("no such check; there are {}", names.join(", "))));
    }
    let program = Program::build()?;
    let mut failed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| wanted(name)) {
        let watch = Stopwatch::start();
        let result = check(&program);
        let (verdict, text) = match result {
            Ok(finding) => ("ok  ", finding),
            Err(fault) => {
                failed += 1;
                ("FAIL", fault.to_string())
            }
        };
        println!("{verdict} {name} ({}): {text}", Took(watch.elapsed()));
    }
    if failed == 0 { Ok(()) } else { Err(Fault::new(format!("{failed} end-to-end checks failed"))) }
}
