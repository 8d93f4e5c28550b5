//! The checks, in their order.

use super::program::Program;
use super::{acp, agents, chat, crash, first_run, graphs, kill, local_model, mcp, relay, serve, start_up};
use xtask::fault::{Fault, Result};
use xtask::stopwatch::{Stopwatch, Took};

/// Which checks to run.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Options {
    /// Only the check with this name; without one, all but those that take long to install: agents and local-model.
    #[arg(value_name = "CHECK")]
    check: Option<String>,
    /// The same.
    #[arg(long, value_name = "CHECK", conflicts_with = "check")]
    only: Option<String>,
    /// How many runs the check `kill` ends at random moments; default 60.
    #[arg(long, value_name = "N")]
    kills: Option<usize>,
}

/// Runs that are ended where nothing else is said.
const KILLS: usize = 60;

type Check = fn(&Program, &Options) -> Result<String>;

/// Checks that run only by name.
const LONG: [&str; 2] = ["agents", "local-model"];

/// Name, and what does it; the text that a check returns is its finding.
const CHECKS: &[(&str, Check)] = &[
    ("start-up", |program, _| start_up::run(program)),
    ("first-run", |program, _| first_run::run(program)),
    ("crash", |program, _| crash::run(program)),
    ("kill", |program, options| kill::run(program, options.kills.unwrap_or(KILLS))),
    ("owner", |program, _| kill::one_owner(program)),
    ("chat", |program, _| chat::run(program)),
    ("graphs", |program, _| graphs::run(program)),
    ("mcp", |program, _| mcp::run(program)),
    ("acp", |program, _| acp::run(program)),
    ("relay", |program, _| relay::run(program)),
    ("serve", |program, _| serve::run(program)),
    ("agents", |program, _| agents::run(program)),
    ("local-model", |program, _| local_model::run(program)),
];

/// Builds the release program and runs the checks; goes on after a failed one.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted = |name: &str| match options.check.as_ref().or(options.only.as_ref()) {
        Some(only) => only == name,
        None => !LONG.contains(&name),
    };
    if CHECKS.iter().all(|(name, _)| !wanted(name)) {
        let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
        return Err(Fault::new(format!("no such check; there are {}", names.join(", "))));
    }
    let program = Program::build()?;
    let mut failed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| wanted(name)) {
        let watch = Stopwatch::start();
        let result = check(&program, options);
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
