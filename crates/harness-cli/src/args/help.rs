//! The top-level help, with the commands in groups.

use std::fmt::Write as _;

use clap::Subcommand as _;

use super::Command;

/// Headings, with the commands of each in the order of a reader's work.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run agents", &["run", "chat", "resume", "serve", "acp", "bridge"]),
    ("Define agents", &["new", "check", "show", "graph", "diff", "hash", "schema", "tools"]),
    ("Inspect and test", &["session", "inspect", "replay", "regress"]),
    ("Set up", &["doctor", "completions"]),
];

/// The text after the options.
pub(super) const EXAMPLES: &str = "\
Examples:
  harness run harness.yaml \"Where is my order 1042?\"
  harness chat --model ollama/llama3.2";

/// Help template of the program.
pub(super) fn template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("harness"));
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "\n{heading}:");
        for name in names {
            let about = commands.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<12} {about}");
        }
    }
    text.push_str("\nOptions:\n{options}{after-help}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command_once() {
        let commands = Command::augment_subcommands(clap::Command::new("harness"));
        let mut names: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, names);
    }
}
