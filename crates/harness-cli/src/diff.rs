//! `harness diff`.

use std::fmt::Write as _;

use harness::descriptor::diff::DescriptorDiff;
use harness::descriptor::load_file;

use crate::args::DiffArgs;
use crate::descriptor;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, DIM, GOOD, NOTE, harmless};

/// Prints the differences between two descriptors. Returns [`Exit::Failed`] if they differ.
pub(crate) fn diff(args: &DiffArgs) -> Result<Exit, CliError> {
    let (before, after) = (descriptor::at(&args.before)?, descriptor::find(args.after.as_deref())?);
    let diff = load_file(&before)?.diff(&load_file(&after)?);
    let exit = if diff.is_empty() { Exit::Completed } else { Exit::Failed };
    if args.json { output::print_json(&diff, exit) } else { output::print_long(&text(&diff), exit) }
}

/// The changes with a colour for each mark, then the agents that are not what they were.
fn text(diff: &DescriptorDiff) -> String {
    if diff.is_empty() {
        return format!("no difference: both are {}\n", diff.after);
    }
    let mut text = String::new();
    for line in harmless(&diff.to_string()).lines() {
        let style = match line.trim_start().chars().next() {
            Some('+') => GOOD,
            Some('-') => BAD,
            Some('~') => NOTE,
            _ => DIM,
        };
        let _ = writeln!(text, "{style}{line}{style:#}");
    }
    if !diff.affected_agents.is_empty() {
        let agents: Vec<String> = diff.affected_agents.iter().map(|id| format!("`{id}`")).collect();
        let _ = writeln!(text, "\nchanged agents: {}", harmless(&agents.join(", ")));
    }
    text
}
