//! `harness completions`.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints what a shell needs to complete commands and options.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "harness", &mut script);
    output::print_payload(&String::from_utf8_lossy(&script), Exit::Completed)
}
