//! The top-level help, with the commands in groups.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{CommandFactory as _, Subcommand as _};

use super::{Cli, Command};
use crate::exit::Exit;

/// Headings, with the commands of each in the order of a reader's work.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run agents", &["run", "chat", "resume", "serve", "worker", "acp", "bridge"]),
    ("Define agents", &["new", "check", "show", "graph", "diff", "hash", "schema", "tools"]),
    ("Inspect and test", &["session", "inspect", "replay", "regress"]),
    ("Set up", &["engine", "dev", "doctor", "completions", "man"]),
];

/// The text after the options.
pub(super) const EXAMPLES: &str = "\
Examples:
  harness run harness.yaml \"Where is my order 1042?\"
  harness chat --model ollama/llama3.2";

/// Examples of each command, without the name of the program.
const COMMANDS: [(&str, &[&str]); 24] = [
    (
        "run",
        &[
            "run harness.yaml \"Where is my order 1042?\"",
            "run \"And the stove?\" --session ada.jsonl --max-cost 0.5",
        ],
    ),
    ("chat", &["chat", "chat --model ollama/llama3.2 --session ada.jsonl"]),
    ("resume", &["resume ada.jsonl", "resume ada.jsonl --deny call-1=\"too much\""]),
    ("serve", &["serve --sessions threads", "serve --listen 0.0.0.0:8787 --token-file token"]),
    (
        "worker",
        &[
            "worker --register",
            "worker --listen 0.0.0.0:9080 --advertise http://workers:9080 --identity-key publickeyv1_KEY",
        ],
    ),
    (
        "engine",
        &[
            "engine status",
            "engine stuck --json",
            "engine register http://workers-1:9080",
            "engine settle ada",
        ],
    ),
    ("dev", &["dev cluster", "dev cluster harness.yaml --data cluster -- --model demo"]),
    ("acp", &["acp harness.yaml", "acp --model ollama/llama3.2"]),
    ("bridge", &["bridge --cli codex --channel specialists"]),
    ("new", &["new my-desk"]),
    ("check", &["check", "check agents/*.yaml --json"]),
    ("show", &["show", "show --agent desk --context customer.premium=true"]),
    ("graph", &["graph", "graph harness.yaml --format dot"]),
    ("diff", &["diff old.yaml new.yaml", "diff old.yaml --json"]),
    ("hash", &["hash", "hash harness.yaml --agents"]),
    ("schema", &["schema > descriptor.schema.json", "schema --events"]),
    ("tools", &["tools", "tools --call find_order --input '{\"order_id\":\"1042\"}'"]),
    ("session", &["session list", "session show ada.jsonl", "session search \"order 1042\" chats.db"]),
    (
        "inspect",
        &[
            "inspect order.json",
            "inspect order.json --html order.html",
            "inspect old.json new.json --html both.html",
            "inspect records/ --html runs.html",
        ],
    ),
    ("replay", &["replay order.json", "replay order.json --descriptor new.yaml"]),
    ("regress", &["regress suite.yaml"]),
    ("doctor", &["doctor --json", "doctor --engine http://engine:8080 --admin http://engine:9070"]),
    ("completions", &["completions bash > ~/.local/share/bash-completion/completions/harness"]),
    ("man", &["man | man -l -", "man ~/.local/share/man/man1"]),
];

/// The command line with examples in the help of each command.
pub(crate) fn command() -> clap::Command {
    COMMANDS.iter().fold(Cli::command(), |program, (name, examples)| {
        let lines: Vec<String> = examples.iter().map(|example| format!("  harness {example}")).collect();
        let block = format!("Examples:\n{}", lines.join("\n"));
        program.mut_subcommand(name, |command| add(command, &block, exits(name)))
    })
}

/// Exit codes of a command whose notes do not list them.
fn exits(name: &str) -> &'static [Exit] {
    match name {
        "serve" | "worker" | "acp" | "bridge" => {
            &[Exit::Completed, Exit::Failed, Exit::Refused, Exit::Unwritten]
        }
        _ => &[Exit::Completed, Exit::Refused, Exit::Unwritten, Exit::OutputClosed],
    }
}

/// Puts a block before the notes of a command, and its exit codes behind them.
fn add(command: clap::Command, block: &str, exits: &[Exit]) -> clap::Command {
    let with = |notes: Option<&StyledStr>| {
        let notes = notes.map(ToString::to_string).unwrap_or_default();
        let codes = if notes.contains("Exit codes:") { String::new() } else { Exit::help_with(exits) };
        let parts = [block, notes.trim_end(), codes.trim_end()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    };
    let short = with(command.get_after_help());
    let long = command.get_after_long_help().map(|notes| with(Some(notes)));
    let command = command.after_help(short);
    match long {
        Some(long) => command.after_long_help(long),
        None => command,
    }
}

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

    #[test]
    fn help_of_every_command_has_examples_and_exit_codes_once() {
        for mut command in command().get_subcommands().filter(|command| command.get_name() != "help").cloned()
        {
            for help in [command.render_help().to_string(), command.render_long_help().to_string()] {
                for heading in ["Examples:", "Exit codes:"] {
                    assert_eq!(help.matches(heading).count(), 1, "{heading} in {help}");
                }
                // Lines are broken for the terminal, so a paragraph of the source has one.
                let rows: Vec<&str> = help.lines().collect();
                let is_broken = |pair: &&[&str]| {
                    pair.iter().all(|row| row.starts_with(char::is_alphanumeric)) && pair[0].len() < 80
                };
                assert_eq!(rows.windows(2).find(is_broken), None, "{help}");
            }
        }
    }

    #[test]
    fn examples_are_valid_command_lines() {
        for (name, examples) in COMMANDS {
            for example in examples {
                let line = example.split(['>', '|']).next().unwrap();
                let words = words(line);
                let parsed = command().try_get_matches_from([&["harness".to_owned()], &*words].concat());
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                assert_eq!(words[0], name);
            }
        }
    }

    /// The words of a line in the rules of a shell, without escapes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.trim().chars() {
            match quote {
                Some(open) if c == open => quote = None,
                None if c == '"' || c == '\'' => quote = Some(c),
                None if c == ' ' => words.push(String::new()),
                _ => words.last_mut().unwrap().push(c),
            }
        }
        words
    }
}
