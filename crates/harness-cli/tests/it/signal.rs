//! Ctrl-C.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Answer, Gate, Project, Reply, Running, Server, within};

#[test]
fn the_first_ctrl_c_stops_the_run_and_leaves_the_session_in_order() {
    let (gate, arrived) = Gate::closed();
    let answer = Answer::text("half an answer");
    let server = Server::start([Reply::Paused { answer, after: 2, gate }, Reply::text("whole")]);
    let project = Project::plain();
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    let running = Running::start(project.command(&arguments));
    within("the request", move || arrived.recv().unwrap());
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    for expected in [
        "stopping; press Ctrl-C again to exit immediately\n",
        "failed (cancelled) · 1 iteration · 0 tool calls",
        "the session is saved; resume with: harness run harness.yaml --session s.jsonl --resume\n",
    ] {
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }

    let again = project.ask(&server.url, &["--session", "s.jsonl"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "whole\n"), "{}", again.stderr);
}

#[test]
fn a_running_tool_is_stopped_with_everything_that_it_started() {
    let server = Server::start([Reply::Stream(Answer::call("pay-1", "pay", &json!({})))]);
    // The tool's child keeps the pipe `alive` open for as long as it lives.
    let project = Project::new("", "sh -c 'exec 3>alive; echo started >&3; cat release'");
    project.pipe("alive");
    project.pipe("release");
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    let running = Running::start(project.command(&arguments));
    let mut alive = started(&project);
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    let more = within("the end of the tool's child", move || std::io::read_to_string(&mut alive).unwrap());
    assert_eq!(more, "");
    let results =
        project.session("s.jsonl").into_iter().filter(|line| line["message"]["role"] == "toolResult");
    assert_eq!(results.count(), 1, "the call is answered");
}

#[test]
fn the_second_ctrl_c_ends_the_program_at_once() {
    let server = Server::start([Reply::Stream(Answer::call("pay-1", "pay", &json!({})))]);
    // Ignores SIGTERM, so that the run takes its time to stop.
    let project = Project::new("", "trap '' TERM; exec 3>alive; echo started >&3; cat release");
    project.pipe("alive");
    project.pipe("release");
    let arguments = ["run", "harness.yaml", "hello", "--session", "s.jsonl", "--base-url", &server.url];
    let running = Running::start(project.command(&arguments));
    let mut alive = started(&project);
    // Both are there before the program does anything about the first.
    for signal in [Signal::STOP, Signal::INT, Signal::TERM, Signal::CONT] {
        running.signal(signal);
    }
    let output = running.end();
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert!(output.stderr.contains("exited; the session"), "{}", output.stderr);
    within("the end of the tool", move || std::io::read_to_string(&mut alive).unwrap());
}

/// Waits until a tool has written to the pipe `alive`, which it keeps open for as long as it lives.
pub(crate) fn started(project: &Project) -> BufReader<File> {
    let path = project.path().join("alive");
    within("the start of the tool", move || {
        let mut alive = BufReader::new(File::open(path).unwrap());
        let mut line = String::new();
        alive.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        alive
    })
}
