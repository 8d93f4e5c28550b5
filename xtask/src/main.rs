//! The project's own chores: `cargo xtask CHORE`.
//!
//! A chore is a module with a `run` function. Chores print to the terminal, start other programs
//! only through [`process`], read the clock only through [`stopwatch`], and never belong to the product: this package
//! depends on none of its crates, so that a chore starts after seconds of compiling, and none of them on this one.
#![expect(clippy::print_stdout, reason = "a chore's output is its result")]
#![expect(clippy::print_stderr, reason = "faults of a chore go to the terminal")]

mod bench;
mod ci;
mod conformance;
mod counts;
mod docs;
mod e2e;
mod fault;
mod fuzz;
mod markdown;
mod npm;
mod process;
mod repo;
mod sim;
mod stopwatch;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::counts::TestCounts;
use crate::fault::Fault;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check everything that a change must pass, in order, until the first failure.
    Ci(ci::Options),
    /// Run what the gate leaves out for its length, and go on after a failure.
    Nightly(ci::Options),
    /// Run every conformance vector below the given folders.
    #[command(disable_help_flag = true)]
    Conformance(conformance::Arguments),
    /// Run the program end to end.
    E2e(e2e::Options),
    /// Take the pictures of the documentation, in `docs/images`.
    Screenshots,
    /// Measure this project and its peers.
    #[command(subcommand)]
    Bench(bench::Chore),
    /// Read changed documents and streams, the same for each seed, and look for panics and hangs.
    Fuzz(fuzz::Options),
    /// Play timelines of threads that a seed decides, and look at every law.
    Sim(sim::Options),
    /// Build the site of the documentation into `target/site`.
    Docs(docs::Options),
    /// Check the rules of the tree that no compiler checks.
    Tidy,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Ci(options) => ci::run(&options),
        Chore::Nightly(options) => ci::run_nightly(&options),
        Chore::Conformance(arguments) => conformance::run(&arguments),
        Chore::E2e(options) => e2e::run(&options, &mut TestCounts::default()),
        Chore::Screenshots => e2e::run(&e2e::Options::only("screenshots"), &mut TestCounts::default()),
        Chore::Bench(chore) => bench::run(&chore),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Sim(options) => sim::run(&options),
        Chore::Docs(options) => docs::run(&options),
        Chore::Tidy => tidy::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            if let Fault::Text(text) = fault {
                eprintln!("error: {text}");
            }
            ExitCode::FAILURE
        }
    }
}
