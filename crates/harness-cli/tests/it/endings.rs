//! Exit codes and outputs of runs that cannot write, and what a pipe gets.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Answer, Gate, Project, Reply, Running, Server, on_terminal, within};

/// The outputs of a run that are files.
const OUTPUTS: [&str; 4] = ["--session", "--record", "--run-record", "--report"];

#[test]
fn fault_22_an_output_that_cannot_be_written_is_refused_before_the_first_request() {
    let project = Project::plain();
    project.write("file", "");
    for option in OUTPUTS {
        let paths = ["missing/out.jsonl", "file/out.jsonl", "."];
        for path in paths.into_iter().filter(|path| (option, *path) != ("--run-record", ".")) {
            let server = Server::start([Reply::text("too late")]);
            let output = project.ask(&server.url, &[option, path]);
            assert_eq!(
                (output.code, output.stdout.as_str()),
                (Some(2), ""),
                "{option} {path}: {}",
                output.stderr
            );
            assert!(output.stderr.contains("error: "), "{option} {path}: {}", output.stderr);
            assert_eq!(server.requests().len(), 0, "{option} {path}");
        }
        assert!(!project.path().join("missing").exists(), "{option} makes no folder");
    }
    let server = Server::start([Reply::text("too late")]);
    let output = project.ask(&server.url, &["--deliverables", "file/out"]);
    assert_eq!((output.code, server.requests().len()), (Some(2), 0), "{}", output.stderr);
    let output = project.ask(&server.url, &["--session", "missing/s.jsonl"]);
    assert!(output.stderr.contains("the directory `missing` does not exist"), "{}", output.stderr);
    assert!(output.stderr.contains("mkdir -p missing"), "{}", output.stderr);
    let mut command =
        project.command(&["chat", "harness.yaml", "--base-url", &server.url, "--session", "missing/s.jsonl"]);
    command.stdin(File::open(project.path().join("harness.yaml")).unwrap());
    let output = Running::start(command).end();
    assert_eq!((output.code, server.requests().len()), (Some(2), 0), "{}", output.stderr);
    assert!(!project.path().join("missing").exists(), "chat makes no folder");
}

#[test]
fn fault_22_an_answer_that_cannot_be_written_has_a_code_of_its_own() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for more in [&[][..], &["--json"]] {
        let server = Server::start([Reply::text("an answer")]);
        let project = Project::plain();
        let mut command =
            project.command(&[&["run", "harness.yaml", "hello", "--base-url", &server.url], more].concat());
        command.stdout(full()).stderr(Stdio::piped());
        let output = within("the end", move || command.output().unwrap());
        assert_eq!(output.status.code(), Some(6), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        // The first line of `--json` is written, and fails, while the request is on its way.
        if more.is_empty() {
            assert_eq!(server.requests().len(), 1);
        }
    }
    let project = Project::plain();
    let mut command = project.command(&["show", "harness.yaml"]);
    command.stdout(full());
    assert_eq!(within("the end", move || command.status().unwrap()).code(), Some(6));
}

#[test]
fn fault_22_a_fault_after_a_request_is_no_refusal() {
    let server = Server::start([Reply::text("an answer")]);
    let project = Project::plain();
    let command = project.command(&["chat", "harness.yaml", "--base-url", &server.url]);
    let output = Running::start_with_input(command, b"hello\n/nothing\n").end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "an answer\n"), "{}", output.stderr);
    let server = Server::start([]);
    let command = project.command(&["chat", "harness.yaml", "--base-url", &server.url]);
    let output = Running::start_with_input(command, b"/nothing\n").end();
    assert_eq!(output.code, Some(2), "{}", output.stderr);
}

#[test]
fn fault_28_text_streams_into_a_pipe_and_stays() {
    for (stop, code) in [(Some(Signal::INT), Some(130)), (None, Some(5))] {
        let (gate, arrived) = Gate::closed();
        let answer = Answer::text("All is well with it.");
        let server = Server::start([Reply::Paused { answer, after: 4, gate }]);
        let project = Project::plain();
        let more: &[&str] = if stop.is_some() { &[] } else { &["--timeout", "2s"] };
        let command =
            project.command(&[&["run", "harness.yaml", "hello", "--base-url", &server.url], more].concat());
        let mut running = Running::start(command);
        within("the pause", move || arrived.recv().unwrap());
        let (back, first) = within("the text before the pause", move || {
            let mut first = [0; 11];
            running.stdout().read_exact(&mut first).unwrap();
            (running, first)
        });
        running = back;
        assert_eq!(&first, b"All is well");
        if let Some(signal) = stop {
            running.signal(signal);
        }
        let output = running.end();
        assert_eq!(output.code, code, "{}", output.stderr);
        assert_eq!(output.stdout.trim_end(), "", "what was shown is not shown again");
        assert!(output.stdout.ends_with('\n'), "the last line is ended");
    }
}

#[test]
fn fault_28_a_chat_streams_into_a_pipe() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([Reply::Paused {
        answer: Answer::text("All is well with it."),
        after: 4,
        gate: gate.clone(),
    }]);
    let project = Project::plain();
    let command = project.command(&["chat", "harness.yaml", "--base-url", &server.url]);
    let mut running = Running::start_with_input(command, b"hello\n");
    within("the pause", move || arrived.recv().unwrap());
    let (running, first) = within("the text before the pause", move || {
        let mut first = [0; 11];
        running.stdout().read_exact(&mut first).unwrap();
        (running, first)
    });
    assert_eq!(&first, b"All is well");
    gate.open();
    let output = running.end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), " with it.\n"), "{}", output.stderr);
}

#[test]
fn fault_28_a_closed_pipe_ends_with_141() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([
        Reply::Paused { answer: Answer::text("All is well with it."), after: 4, gate: gate.clone() },
        Reply::Stream(Answer::call("c", "look", &json!({}))),
    ]);
    let project = Project::plain();
    let mut running =
        Running::start(project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]));
    within("the pause", move || arrived.recv().unwrap());
    running.close_stdout();
    gate.open();
    let output = running.end();
    assert_eq!(output.code, Some(141), "{}", output.stderr);
    let shown = on_terminal(project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]));
    assert!(shown.stdout.contains("look"), "{}", shown.stdout);
}
