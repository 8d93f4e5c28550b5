//! The project's own chores: `cargo xtask CHORE`.
//!
//! A chore is a module with a `run` function. Chores print to the terminal, start other programs
//! only through [`process`], read the clock only through [`stopwatch`], and never belong to the
//! product: no crate depends on this one.
#![expect(clippy::print_stdout, reason = "a chore's output is its result")]
#![expect(clippy::print_stderr, reason = "faults of a chore go to the terminal")]

mod bench;
mod ci;
mod conformance;
mod e2e;
mod fault;
mod fuzz;
mod process;
mod repo;
mod schema;
mod sim;
mod stopwatch;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Run every conformance vector below the given folders.
    Conformance(conformance::Options),
    /// Run the release program end to end.
    E2e(e2e::Options),
    /// Serve the model of the end-to-end checks until stopped, to try local agents by hand.
    ModelServer(e2e::ServerOptions),
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
        Chore::Conformance(options) => conformance::run(&options),
        Chore::E2e(options) => e2e::run(&options),
        Chore::ModelServer(options) => e2e::serve(&options),
        Chore::Bench(chore) => bench::run(&chore),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Sim(options) => sim::run(&options),
        Chore::Schema => schema::run(),
        Chore::Tidy => tidy::run(),
        Chore::StopReasons => tidy::write_stop_reasons(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fault::Shown) => ExitCode::FAILURE,
        Err(Fault::Text(text)) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}
