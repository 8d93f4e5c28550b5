//! Killed without warning, taken up again: every call is answered exactly once, no tool runs
//! twice, and the run completes.

use serde_json::json;

use crate::support::{Answer, Gate, PATIENCE, Project, Reply, Running, Server, until, within};
use crate::{calls_and_results, ran};

const DESCRIPTOR: &str = "\
metadata: { name: crash }
runtime: { entry_agent: clerk }
tools:
  note: { target: test.note }
agents:
  clerk:
    name: Clerk
    instructions: Take a note, then say so.
    model: scripted
    tools: [note]
";

/// The tool says that it started and then waits to be let go. It outlives the program that is
/// killed, so it also ends when its folder is gone.
const TOOL: &str = "\
#!/bin/sh
echo ran >> runs
while [ -e runs ] && [ ! -e go ]; do sleep 0.02; done
echo noted
";

const REGISTRY: &str = "\
version: 1
tools:
  test.note:
    name: note
    description: Takes a note.
    command: sh
    args: [note.sh]
    timeout: 60s
    input: json-stdin
    class: unsafe
    parameters: { type: object, properties: {}, additionalProperties: false }
";

const ANSWER: &str = "All is noted.";

/// A folder with a descriptor, a tool and a session.
fn project() -> Project {
    Project::of(&[("harness.yaml", DESCRIPTOR), ("registry.yaml", REGISTRY), ("note.sh", TOOL)])
}

fn run(project: &Project, server: &Server, last: &str) -> std::process::Command {
    project.command(&["run", "harness.yaml", "--session", "session.jsonl", "--base-url", &server.url, last])
}

fn call() -> Reply {
    Reply::Stream(Answer::call("c1", "note", &json!({})))
}

/// The resumed run gives its answer; the session answers every call exactly once, in a file of whole lines, and the
/// tool ran as often as it should.
#[track_caller]
fn resumes(project: &Project, expected_runs: usize) {
    project.write("go", "");
    let server = Server::start([Reply::text(ANSWER)]);
    let answer = ran(run(project, &server, "--resume"));
    assert!(answer.contains(ANSWER), "{answer}");
    let session = project.session("session.jsonl");
    let (calls, results) = calls_and_results(&session);
    assert_eq!(calls, results);
    let runs = project.path().join("runs");
    let runs = if runs.exists() { project.read("runs").lines().count() } else { 0 };
    assert_eq!(runs, expected_runs);
}

#[track_caller]
fn check_killed_while_the_model_is_asked(before: Vec<Reply>, expected_runs: usize) {
    let project = project();
    project.write("go", "");
    let (gate, arrived) = Gate::closed();
    let silence = Reply::Paused { answer: Answer::text(""), after: 0, gate };
    let server = Server::start(before.into_iter().chain([silence]));
    let program = Running::start(run(&project, &server, "Please note this."));
    within("the request", move || arrived.recv().unwrap());
    program.kill();
    resumes(&project, expected_runs);
}

#[test]
fn a_run_that_was_killed_in_its_first_model_call_is_resumed() {
    check_killed_while_the_model_is_asked(vec![], 0);
}

#[test]
fn a_run_that_was_killed_in_its_second_model_call_is_resumed() {
    check_killed_while_the_model_is_asked(vec![call()], 1);
}

#[test]
fn a_run_that_was_killed_in_a_tool_is_resumed() {
    let project = project();
    let server = Server::start([call()]);
    let program = Running::start(run(&project, &server, "Please note this."));
    until(PATIENCE, "the tool", || project.path().join("runs").exists());
    program.kill();
    resumes(&project, 1);
}
