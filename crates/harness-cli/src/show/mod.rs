//! `harness show`.

mod agent;
mod human;
mod json;

use harness::descriptor::load_file;

use crate::args::ShowArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints a descriptor with its prompts and parts in place, or what one of its agents would get.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, CliError> {
    let descriptor = args.descriptor.find()?;
    if let Some(agent) = &args.agent {
        return agent::show(args, &descriptor, agent);
    }
    let value = load_file(&descriptor)?.to_value();
    if args.json {
        output::print_json(&value, Exit::Completed)
    } else {
        output::print_payload(&value.to_yaml(), Exit::Completed)
    }
}
