//! `harness completions` and `harness man`.

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints what a shell needs to complete commands and options.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "harness", &mut script);
    output::print_payload(&String::from_utf8_lossy(&script), Exit::Completed)
}

/// Prints the man page of the program, or writes those of all commands.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, CliError> {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(args::command().disable_help_subcommand(true)).render(&mut page);
        rendered.map_err(|source| CliError::Io { action: "write the man page", source })?;
        return output::print_payload(&String::from_utf8_lossy(&page), Exit::Completed);
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::command(), directory));
    written.map_err(|source| CliError::NotWritten { path: directory.clone(), source })?;
    output::print(&format!("man pages written to {}\n", directory.display()), Exit::Completed)
}
