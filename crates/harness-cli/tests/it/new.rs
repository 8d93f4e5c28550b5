//! `harness new`, and the README that it writes.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Answer, Output, Reply, Running, Server, harness, shell};

fn run(directory: &Path, arguments: &[&str]) -> Output {
    Running::start(harness(directory, arguments)).end()
}

/// The fenced blocks of a README in order, as a person copies them: what is behind the opening fence, and the text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((info, text.join("\n") + "\n"));
        }
    }
    blocks
}

/// Adds the line of the text that the file lacks after the line before it; a single line replaces the line with its
/// key.
fn edit(file: &Path, text: &str) {
    let mut lines: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    let mut edited: Vec<&str> = text.lines().collect();
    let last = edited.pop().unwrap();
    if let Some(before) = edited.last() {
        let at = lines.iter().position(|line| line == before).unwrap();
        lines.insert(at + 1, last.to_owned());
    } else {
        let (key, _) = last.split_once(": ").unwrap();
        let old = lines.iter_mut().find(|line| line.split_once(": ").is_some_and(|(own, _)| own == key));
        last.clone_into(old.unwrap());
    }
    fs::write(file, lines.join("\n") + "\n").unwrap();
}

/// Follows the README of a new folder, by the model of these variables; everything that was said must stand in what
/// was printed.
#[track_caller]
fn follow_the_readme(variables: &[(&str, &str)], expected: &[&str]) {
    let folder = TempDir::new().unwrap();
    let created = run(folder.path(), &["new"]);
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    let mut printed = String::new();
    for (info, text) in blocks(&fs::read_to_string(folder.path().join("README.md")).unwrap()) {
        match info.split_once(' ') {
            None => {
                for line in text.lines() {
                    let mut command = shell(folder.path(), line);
                    command.envs(variables.iter().copied());
                    let output = Running::start(command).end();
                    assert_eq!(output.code, Some(0), "{line}: {}", output.stdout);
                    printed += &output.stdout;
                }
            }
            Some(("sh", name)) => fs::write(folder.path().join(name), text).unwrap(),
            Some((_, "registry.yaml")) => {
                let file = OpenOptions::new().append(true).open(folder.path().join("registry.yaml"));
                file.unwrap().write_all(text.as_bytes()).unwrap();
            }
            Some((_, name)) => edit(&folder.path().join(name), &text),
        }
    }
    assert!(!printed.contains("warning"), "{printed}");
    let mut rest = printed.as_str();
    for part in expected {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is missing in:\n{rest}")).1;
    }
}

#[test]
fn the_new_readme_works_as_written() {
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "find_product", &json!({ "word": "tent" }))),
        Reply::text("The trail tent costs 249 EUR."),
        Reply::Stream(Answer::call("c2", "opening_hours", &json!({ "day": "Sunday" }))),
        Reply::text("We are closed on Sunday."),
    ]);
    follow_the_readme(
        &[("OPENROUTER_API_KEY", "key-1"), ("OPENROUTER_BASE_URL", &server.url)],
        &[
            "✓ find_product",
            "The trail tent costs 249 EUR.",
            "is valid: 2 agents, entry `desk`, 1 tool",
            "Trail tent for two: 249 EUR, in stock\n",
            "Sunday: closed\n",
            "is valid: 2 agents, entry `desk`, 2 tools",
            "✓ opening_hours",
            "We are closed on Sunday.",
        ],
    );
    let results = server.requests()[3].to_string();
    assert!(results.contains("Sunday: closed"), "{results}");
}

#[test]
fn the_new_readme_works_without_a_key() {
    let demo = ["✓ find_product", "Trail tent for two: 249 EUR", "✓ opening_hours", "Sunday: closed"];
    follow_the_readme(&[], &demo);
}

#[test]
fn new_creates_a_valid_directory_and_prints_commands() {
    let folder = TempDir::new().unwrap();
    let output = run(folder.path(), &["new", "my desk"]);
    insta::assert_snapshot!(output.stdout, @r#"
    created my desk/harness.yaml
    created my desk/registry.yaml
    created my desk/README.md
    created my desk/tools/find_product.sh
    created my desk/data/products.txt
    model: openai/gpt-4.1-mini (no API key found: the demo model answers)

    try it:
      cd 'my desk'
      harness run "What does the tent cost?"
    "#);
    let checked = run(&folder.path().join("my desk"), &["check", "--strict"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{}", checked.stdout);
}

/// The model for these API keys, in the output and in the descriptor.
#[track_caller]
fn check_model(names: &[&str], model: &str, note: &str) {
    let folder = TempDir::new().unwrap();
    let mut command = harness(folder.path(), &["new"]);
    for name in names {
        command.env(name, "sk-do-not-print");
    }
    let output = Running::start(command).end();
    assert!(output.stdout.contains(&format!("model: {model} ({note})\n")), "{}", output.stdout);
    assert!(!output.stdout.contains("sk-do-not-print") && output.stderr.is_empty(), "{}", output.stderr);
    let descriptor = fs::read_to_string(folder.path().join("harness.yaml")).unwrap();
    assert!(descriptor.contains(&format!("\n  model: {model}\n")), "{descriptor}");
}

#[test]
fn new_names_a_model_of_the_provider_with_an_api_key() {
    let default = "openai/gpt-4.1-mini";
    check_model(&[], default, "no API key found: the demo model answers");
    check_model(&["OPENROUTER_API_KEY"], default, "API key from OPENROUTER_API_KEY");
    check_model(&["OPENAI_API_KEY"], default, "API key from OPENAI_API_KEY");
    check_model(&["ANTHROPIC_API_KEY"], "anthropic/claude-haiku-4.5", "API key from ANTHROPIC_API_KEY");
    check_model(&["ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"], default, "API key from OPENROUTER_API_KEY");
}

#[test]
fn new_replaces_files_only_with_force() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("desk")).unwrap();
    let registry = folder.path().join("desk/registry.yaml");
    fs::write(&registry, "mine").unwrap();
    let output = run(folder.path(), &["new", "desk"]);
    let expected = "error: `desk/registry.yaml` already exists\n  \
                    hint: choose another directory or pass `--force`; nothing was written\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), expected));
    assert_eq!(fs::read_dir(folder.path().join("desk")).unwrap().count(), 1, "nothing is written");
    assert_eq!(fs::read_to_string(&registry).unwrap(), "mine");
    assert_eq!(run(folder.path(), &["new", "desk", "--force"]).code, Some(0));
    assert!(fs::read_to_string(&registry).unwrap().starts_with("# Binds the tool targets"));
}

#[test]
fn new_reports_a_directory_that_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("desk.yaml"), "").unwrap();
    let output = run(folder.path(), &["new", "desk.yaml"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.starts_with("error: cannot write desk.yaml: "), "{}", output.stderr);
}
