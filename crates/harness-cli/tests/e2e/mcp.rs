//! A real MCP server behind a descriptor: its tools are called by the release program, it is killed in the
//! middle of a call, and started again by the next one.
//!
//! The library's own tests speak for a server word by word.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::{Value, json};

use crate::support::{Answer, PATIENCE, Project, Reply, Running, Server, until};
use crate::{installed, ran};

/// Below the folder in which it is installed.
const ENTRY: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

const DESCRIPTOR: &str = "\
metadata: { name: mcp }
runtime: { entry_agent: clerk }
tools:
  everything: { target: everything.* }
agents:
  clerk:
    name: Clerk
    instructions: Use the tools.
    model: scripted
    tools: [everything]
";

const REGISTRY: &str = "\
version: 1
tools:
  everything:
    mcp: { command: [sh, server.sh] }
    timeout: 60s
";

/// The server, with what it is told noted on the way. The shell leads the group that all of it is in.
const SERVER: &str = "echo $$ >> groups\ntee -a told | node ENTRY stdio\n";

const ANSWER: &str = "All tools were used.";

/// A call, and what its result holds.
struct Call {
    tool: &'static str,
    arguments: Value,
    expected: &'static str,
}

fn call(tool: &'static str, arguments: Value, expected: &'static str) -> Call {
    Call { tool, arguments, expected }
}

/// A folder with a descriptor, a registry, a server and a session.
fn project() -> Project {
    let entry = installed("mcp").join(ENTRY);
    let server = SERVER.replace("ENTRY", &format!("'{}'", entry.display()));
    Project::of(&[
        ("harness.yaml", DESCRIPTOR),
        ("registry.yaml", REGISTRY),
        ("server.sh", &server),
        ("told", ""),
    ])
}

/// The calls one after the other, then the answer.
fn server(calls: &[Call]) -> Server {
    let reply = |(number, Call { tool, arguments, .. }): (usize, &Call)| {
        Reply::Stream(Answer::call(&format!("c{number}"), &format!("everything__{tool}"), arguments))
    };
    let replies: Vec<Reply> = calls.iter().enumerate().map(reply).collect();
    Server::start(replies.into_iter().chain([Reply::text(ANSWER)]))
}

fn run(project: &Project, server: &Server) -> Command {
    let arguments = ["run", "harness.yaml", "--session", "session.jsonl", "--base-url", &server.url];
    project.command(&[&arguments[..], &["Use the tools."]].concat())
}

/// The process groups of the servers, in the order of their starts.
fn groups(project: &Project) -> Vec<Pid> {
    project.read("groups").lines().map(|group| Pid::from_raw(group.parse().unwrap()).unwrap()).collect()
}

/// The run ended with the answer, each call has its one result with what it should hold, and no server
/// is left.
#[track_caller]
fn finish(project: &Project, answer: &str, calls: &[Call]) {
    assert!(answer.contains(ANSWER), "{answer}");
    let session = project.session("session.jsonl");
    let messages = session.iter().map(|entry| &entry["message"]);
    let results: Vec<Value> = messages.filter(|message| message["toolCallId"].is_string()).cloned().collect();
    assert_eq!(results.len(), calls.len());
    for (Call { tool, expected, .. }, mut result) in calls.iter().zip(results) {
        result.sort_all_objects();
        assert!(result.to_string().contains(expected), "{tool}: {result}");
    }
    // Of a server that was killed, its children may wait for somebody to reap them; only the last one
    // was ended by the program.
    let last = groups(project).pop().unwrap();
    assert!(test_kill_process_group(last).is_err(), "the server is left");
}

#[test]
fn every_result_holds_what_it_should_and_the_server_is_gone() {
    let project = project();
    ran(project.command(&["check", "--connect", "harness.yaml"]));
    let calls = [
        call("echo", json!({ "message": "hello" }), r#""text":"Echo: hello""#),
        call("get-sum", json!({ "a": 2, "b": 3 }), "is 5"),
        call("get-structured-content", json!({ "location": "Chicago" }), r#""structured":{"#),
        call("get-tiny-image", json!({}), r#""mimeType":"image/png""#),
        call("get-resource-links", json!({ "count": 1 }), r#""mcpResourceLink":"#),
        call("get-sum", json!({ "a": "two" }), r#""isError":true"#),
    ];
    let server = server(&calls);
    finish(&project, &ran(run(&project, &server)), &calls);
}

#[test]
fn a_call_whose_server_is_killed_is_answered_truthfully_and_the_next_finds_a_new_one() {
    const LONG_CALL: &str = "trigger-long-running-operation";
    let project = project();
    let calls = [
        call(LONG_CALL, json!({ "duration": 600, "steps": 1 }), "may have had effects"),
        call("echo", json!({ "message": "again" }), r#""text":"Echo: again""#),
    ];
    let server = server(&calls);
    let running = Running::start(run(&project, &server));
    until(PATIENCE, "the call", || project.read("told").contains(LONG_CALL));
    kill_process_group(*groups(&project).last().unwrap(), Signal::KILL).unwrap();
    let output = running.end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    finish(&project, &output.stdout, &calls);
    assert!(project.read("session.jsonl").contains("killed by signal 9"), "how the server ended is told");
    assert_eq!(groups(&project).len(), 2, "another server was started");
}
