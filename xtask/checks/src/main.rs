//! Chores that need the product: `cargo xtask` starts them.
#![expect(clippy::print_stdout, reason = "a chore's output is its result")]
#![expect(clippy::print_stderr, reason = "faults of a chore go to the terminal")]

mod conformance;
mod e2e;
mod schema;
mod stop_reasons;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::fault::Fault;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's chores that need the product")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every conformance vector below the given folders.
    Conformance(conformance::Options),
    /// Run the release program end to end.
    E2e(e2e::Options),
    /// Serve the model of the end-to-end checks until stopped, to try local agents by hand.
    ModelServer(e2e::ServerOptions),
    /// Write the JSON Schemas of descriptors and the description of the server.
    Schema,
    /// Write the reference page of stop reasons from the source.
    StopReasons,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Conformance(options) => conformance::run(options),
        Chore::E2e(options) => e2e::run(&options),
        Chore::ModelServer(options) => e2e::serve(&options),
        Chore::Schema => schema::run(),
        Chore::StopReasons => stop_reasons::write(),
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
