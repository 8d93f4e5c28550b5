//! The project's own chores: `cargo xtask CHORE`.
//!
//! A chore is a module with a `run` function. Chores print to the terminal, start other programs
//! only through [`xtask::process`], read the clock only through [`xtask::stopwatch`], and never belong to the
//! product: none of its crates depends on this one. Chores that need the product are in the package `checks`, so that the
//! others start after seconds of compiling.
#![expect(clippy::print_stdout, reason = "a chore's output is its result")]
#![expect(clippy::print_stderr, reason = "faults of a chore go to the terminal")]

mod bench;
mod checks;
mod ci;
mod fuzz;
mod sim;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use xtask::fault::Fault;

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
    Conformance(checks::Arguments),
    /// Run the release program end to end.
    #[command(disable_help_flag = true)]
    E2e(checks::Arguments),
    /// Serve the model of the end-to-end checks until stopped, to try local agents by hand.
    #[command(disable_help_flag = true)]
    ModelServer(checks::Arguments),
    /// Measure this project and its peers.
    #[command(subcommand)]
    Bench(bench::Chore),
    /// Read changed documents and streams, the same for each seed, and look for panics and hangs.
    Fuzz(fuzz::Options),
    /// Play timelines of threads that a seed decides, and look at every law.
    Sim(sim::Options),
    /// Write the JSON Schemas of descriptors and the description of the server.
    Schema,
    /// Check the rules of the tree that no compiler checks.
    Tidy,
    /// Write the reference page of stop reasons from the source.
    StopReasons,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Ci(options) => ci::run(&options),
        Chore::Nightly(options) => ci::run_nightly(&options),
        Chore::Conformance(arguments) => checks::run("conformance", &arguments),
        Chore::E2e(arguments) => checks::run("e2e", &arguments),
        Chore::ModelServer(arguments) => checks::run("model-server", &arguments),
        Chore::Bench(chore) => bench::run(&chore),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Sim(options) => sim::run(&options),
        Chore::Schema => checks::run("schema", &checks::Arguments::default()),
        Chore::Tidy => tidy::run(),
        Chore::StopReasons => checks::run("stop-reasons", &checks::Arguments::default()),
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
