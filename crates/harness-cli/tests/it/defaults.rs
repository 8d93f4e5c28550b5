//! Which descriptor a command uses when none is named, and what a single argument of `run` is.

use std::fs;

use crate::support::{Output, Project, Reply, Running, Server, harness};

/// A project with its files in `desk`, and directories below and beside it.
fn nested() -> Project {
    let project = Project::plain();
    for name in ["harness.yaml", "registry.yaml", "look.sh", "pay.sh"] {
        project.write(&format!("desk/{name}"), &project.read(name));
        fs::remove_file(project.path().join(name)).unwrap();
    }
    for directory in ["desk/notes/old", "empty"] {
        fs::create_dir_all(project.path().join(directory)).unwrap();
    }
    project
}

/// Standard error with the project's path as `ROOT`.
fn messages(project: &Project, output: &Output) -> String {
    let root = project.path().canonicalize().unwrap();
    output.stderr.replace(root.to_str().unwrap(), "ROOT").replace(project.path().to_str().unwrap(), "ROOT")
}

/// What `harness run` sends from a directory, and whether it reports the descriptor.
#[track_caller]
fn check_run(directory: &str, arguments: &[&str], stdin: &str, message: &str, report: &str) {
    let project = nested();
    let server = Server::start([Reply::text("Good.")]);
    let arguments = [&["run", "--base-url", &server.url], arguments].concat();
    let command = harness(&project.path().join(directory), &arguments);
    let output = Running::start_with_input(command, stdin.as_bytes()).end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Good.\n"), "{}", output.stderr);
    let requests = server.requests();
    let sent = requests[0]["messages"].as_array().unwrap().last().unwrap();
    assert!(sent.to_string().contains(message), "{sent}");
    let reported: Vec<String> = messages(&project, &output)
        .lines()
        .filter(|line| line.starts_with("using "))
        .map(str::to_owned)
        .collect();
    assert_eq!(reported.join("\n"), report);
}

#[test]
fn run_finds_the_descriptor_of_the_current_or_a_parent_directory() {
    check_run("desk", &["hello"], "", "hello", "");
    check_run("desk/notes/old", &["hello"], "", "hello", "using ROOT/desk/harness.yaml");
}

#[test]
fn run_takes_a_file_or_a_directory_before_the_message() {
    check_run("", &["desk", "hello"], "", "hello", "");
    check_run("", &["desk/harness.yaml", "hello"], "", "hello", "");
    check_run("empty", &["../desk", "hello"], "", "hello", "");
}

#[test]
fn run_reads_the_message_from_standard_input() {
    check_run("desk", &[], "from a pipe", "from a pipe", "");
    check_run("desk", &["-"], "from a pipe", "from a pipe", "");
    check_run("", &["desk"], "from a pipe", "from a pipe", "");
    check_run("", &["desk", "-"], "from a pipe", "from a pipe", "");
}

#[test]
fn run_sends_a_single_argument_that_is_no_path() {
    check_run("desk", &["tea and/or coffee?"], "", "tea and/or coffee?", "");
    check_run("desk", &["what is harness.yaml?"], "", "what is harness.yaml?", "");
}

#[track_caller]
fn check_fails(directory: &str, arguments: &[&str], expected: &str) {
    let project = nested();
    let output = Running::start(harness(&project.path().join(directory), arguments)).end();
    assert_eq!((output.code, messages(&project, &output).as_str()), (Some(2), expected));
}

#[test]
fn a_missing_descriptor_is_reported_with_what_to_do() {
    let none = "error: no `harness.yaml` in `ROOT/empty` or its parent directories\n  \
                hint: create one with `harness new`, or pass a descriptor: `harness run FILE \"…\"`\n";
    for arguments in [
        &["run", "hello"][..],
        &["check"],
        &["show"],
        &["graph"],
        &["hash"],
        &["serve"],
        &["acp"],
        &["tools"],
    ] {
        check_fails("empty", arguments, none);
    }
    let directory = "error: no `harness.yaml` in `empty`\n  \
                     hint: create one with `harness new empty`, or pass a descriptor file\n";
    check_fails("", &["run", "empty"], directory);
    check_fails("", &["show", "empty"], directory);
    for path in ["none.yaml", "my none.json", "none/desk"] {
        let expected = format!(
            "error: descriptor `{path}` not found\n  \
             hint: check the path; to send it as a message, pass the descriptor first: `harness run FILE \"…\"`\n"
        );
        check_fails("desk", &["run", path], &expected);
    }
}

/// A command prints the same from the descriptor's directory, from below it, and with the directory named.
#[track_caller]
fn check_same(command: &[&str], expected: &str) {
    let project = nested();
    let run = |directory: &str, more: &[&str]| {
        let arguments = [command, more].concat();
        let output = Running::start(harness(&project.path().join(directory), &arguments)).end();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output.stdout
    };
    let here = run("desk", &[]);
    assert!(here.contains(expected), "{here}");
    for (directory, more) in [("desk/notes", &[][..]), ("", &["desk"]), ("empty", &["../desk"])] {
        let there = run(directory, more);
        assert_eq!(there.lines().last(), here.lines().last(), "{directory}");
    }
}

#[test]
fn every_command_has_the_same_default() {
    check_same(&["check"], "harness.yaml");
    check_same(&["hash"], "sha256:");
    check_same(&["show"], "You are the desk.");
    check_same(&["show", "--agent", "desk"], "look (look)");
    check_same(&["graph"], "agent_desk");
    check_same(&["tools"], "look");
    check_same(&["hash", "--agents"], "agent desk");
}

#[test]
fn diff_compares_with_the_default_descriptor() {
    let project = nested();
    let run = |directory: &str, arguments: &[&str]| {
        Running::start(harness(&project.path().join(directory), arguments)).end()
    };
    let desk = project.read("desk/harness.yaml");
    project.write("old.yaml", &desk.replace("You are the desk.", "You are the door."));
    for (directory, arguments) in [
        ("desk", &["diff", "../old.yaml"][..]),
        ("desk/notes", &["diff", "../../old.yaml"]),
        ("", &["diff", "old.yaml", "desk"]),
    ] {
        let output = run(directory, arguments);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        assert!(output.stdout.contains("changed agents: `desk`"), "{}", output.stdout);
    }
    assert_eq!(run("desk", &["diff", "harness.yaml"]).code, Some(0));
}

#[test]
fn chat_uses_the_default_descriptor_also_with_a_model() {
    let project = nested();
    for (arguments, agent) in [(&[][..], true), (&["--model", "other"], true), (&["--model", "other"], false)]
    {
        let server = Server::start([Reply::text("Good.")]);
        let arguments = [&["chat", "--base-url", &server.url], arguments].concat();
        let directory = project.path().join(if agent { "desk/notes" } else { "empty" });
        let output = Running::start_with_input(harness(&directory, &arguments), b"hello\n").end();
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Good.\n"), "{}", output.stderr);
        let request = server.requests().remove(0);
        assert_eq!(request["messages"].to_string().contains("You are the desk."), agent, "{request}");
    }
}

#[test]
fn a_session_continues_from_another_directory() {
    let project = nested();
    let server = Server::start([Reply::text("One."), Reply::text("Two.")]);
    let run = |directory: &str, arguments: &[&str]| {
        let arguments = [arguments, &["--base-url", &server.url]].concat();
        Running::start(harness(&project.path().join(directory), &arguments)).end()
    };
    let first = run("desk/notes", &["run", "hello", "--session", "s.jsonl"]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), "One.\n"), "{}", first.stderr);
    let second = run("desk/notes", &["run", "again", "--session", "s.jsonl"]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), "Two.\n"), "{}", second.stderr);
    let resumed = run("", &["resume", "desk/notes/s.jsonl", "--descriptor", "desk"]);
    assert!(resumed.stderr.contains("nothing to resume") || resumed.code == Some(0), "{}", resumed.stderr);
}
