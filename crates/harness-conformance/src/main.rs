//! Golden vectors of any directory: `cargo xtask conformance [DIR…]`.
#![expect(clippy::print_stderr, reason = "errors of a chore go to the terminal")]

use std::process::ExitCode;

use clap::Parser as _;
use harness_conformance::Selection;

fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "a chore's output is its result")]
    let mut output = std::io::stdout();
    match harness_conformance::run(&Selection::parse(), &mut output) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::FAILURE
        }
    }
}
