//! What a person sees on a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::support::{Answer, Gate, Project, Reply, Server, normal, terminal, within};

#[test]
fn text_streams_calls_are_shown_and_the_last_line_sums_up() {
    let (gate, arrived) = Gate::closed();
    let server = Server::start([
        Reply::Stream(Answer::call("c1", "look", &json!({ "at": "left" }))),
        Reply::Paused { answer: Answer::text("All **is** well."), after: 3, gate: gate.clone() },
    ]);
    let project = Project::plain();
    let (mut ours, theirs) = terminal();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]);
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop(command);
    within("the pause", move || arrived.recv().unwrap());
    let shown = within("the end", move || {
        let mut shown = vt100::Parser::new(24, 120, 0);
        let mut buffer = [0; 1024];
        while !shown.screen().contents().contains("All is") {
            let read = ours.read(&mut buffer).unwrap();
            shown.process(&buffer[..read]);
        }
        gate.open();
        // Reading fails when the program's side is closed.
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            shown.process(&buffer[..read]);
        }
        shown
    });
    assert!(child.wait().unwrap().success());
    insta::assert_snapshot!(normal(&shown.screen().contents()), @r#"
    • desk
    → look {"at":"left"}
    ✓ look [TIME]
    All is well.
    completed (answer_finalized) · 2 iterations · 1 tool call · 200 + 10 tokens · cost 0.0002 · [TIME]
    "#);
    let bold = |column| shown.screen().cell(3, column).unwrap().bold();
    assert_eq!([bold(0), bold(4), bold(5), bold(7)], [false, true, true, false]);
}

#[test]
fn a_run_of_many_turns_says_how_far_it_is_in_one_line_that_is_rewritten() {
    let server = Server::start([
        Reply::text("half of it"),
        Reply::Stream(Answer::call("w1", "work_complete", &json!({ "summary": "said it" }))),
    ]);
    let project = Project::plain();
    let (mut ours, theirs) = terminal();
    let arguments =
        ["run", "harness.yaml", "hello", "--base-url", &server.url, "--until-done", "--max-turns", "9"];
    let mut command = project.command(&arguments);
    command.stdout(Stdio::null()).stderr(theirs).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop(command);
    let shown = within("the end", move || {
        let mut shown = Vec::new();
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..read]);
        }
        String::from_utf8(shown).unwrap()
    });
    assert!(child.wait().unwrap().success());
    let lines: Vec<&str> = shown.split("\r\u{1b}[2K").collect();
    assert!(lines.iter().any(|line| line.contains("turn 1 of 9 · 100 % of the budget left")), "{shown:?}");
    assert!(lines.iter().any(|line| line.contains("turn 2 of 9 · 99 % of the budget left")), "{shown:?}");
    let last = lines.last().unwrap();
    assert!(last.contains("completed") && !last.contains("of the budget left"), "{shown:?}");
}

/// Reads what is shown until it ends with a text.
fn read_until(mut ours: File, end: &'static [u8]) -> (File, Vec<u8>) {
    within("a text on the terminal", move || {
        let mut shown = Vec::new();
        let mut byte = [0];
        while !shown.ends_with(end) {
            ours.read_exact(&mut byte).unwrap();
            shown.push(byte[0]);
        }
        (ours, shown)
    })
}

/// Answers the prompt for the tool `pay`; checks the exit code, and how often the tool ran.
#[track_caller]
fn check_answered(project: &Project, mut command: Command, answer: &[u8], expected: (i32, usize)) {
    let (ours, theirs) = terminal();
    command.stdin(theirs.try_clone().unwrap()).stdout(Stdio::null()).stderr(theirs).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut ours, shown) = read_until(ours, b"[l]ater: ");
    assert!(String::from_utf8(shown).unwrap().contains("? pay {}"), "the call is shown");
    ours.write_all(answer).unwrap();
    let status = within("the end", move || {
        let mut rest = Vec::new();
        // Reading fails when the program's side is closed.
        let _ = ours.read_to_end(&mut rest);
        child.wait().unwrap()
    });
    let log = project.path().join("pay.log");
    let runs = if log.exists() { project.read("pay.log").lines().count() } else { 0 };
    assert_eq!((status.code(), runs), (Some(expected.0), expected.1));
}

#[track_caller]
fn check_approval(answer: &[u8], expected_code: i32, expected_runs: usize) {
    let server = Server::start([Reply::Stream(Answer::call("p1", "pay", &json!({}))), Reply::text("done")]);
    let project = Project::new("", "echo ran >>pay.log").with_pay("    requires_approval: true\n");
    let command = project.command(&["run", "harness.yaml", "hello", "--base-url", &server.url]);
    check_answered(&project, command, answer, (expected_code, expected_runs));
}

#[test]
fn a_person_approves_a_call() {
    check_approval(b"y\n", 0, 1);
}

#[test]
fn a_person_refuses_a_call() {
    check_approval(b"n\n", 0, 0);
}

#[test]
fn a_person_decides_later() {
    check_approval(b"l\n", 4, 0);
}

/// Calls a tool that needs approval, with an answer on the terminal.
#[track_caller]
fn check_tool_approval(answer: &[u8], expected_code: i32, expected_runs: usize) {
    let project = Project::new("", "echo ran >>pay.log").with_pay("    requires_approval: true\n");
    let command = project.command(&["tools", "registry.yaml", "--call", "pay"]);
    check_answered(&project, command, answer, (expected_code, expected_runs));
}

#[test]
fn a_tool_that_needs_approval_is_tried_only_after_a_yes() {
    check_tool_approval(b"y\n", 0, 1);
    check_tool_approval(b"n\n", 2, 0);
    check_tool_approval(b"l\n", 4, 0);
}
