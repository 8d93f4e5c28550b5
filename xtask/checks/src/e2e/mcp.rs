//! A real MCP server behind a descriptor: its tools are called by the release program, it is killed in the
//! middle of a call, and started again by the next one.
//!
//! The server comes from the package registry of Node. Where it cannot be had, the check says so and does
//! not fail: the library's own tests speak for a server word by word.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::endpoint::Answer::{CallWith, Text};
use super::endpoint::{Answer, Endpoint};
use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::{Workspace, read};
use xtask::stopwatch::Stopwatch;

const PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";

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

/// Calls, and what the result of each holds.
const CALLS: &[(Answer, &str)] = &[
    (
        CallWith { id: "c1", name: "everything__echo", arguments: r#"{"message":"hello"}"# },
        r#""text":"Echo: hello""#,
    ),
    (CallWith { id: "c2", name: "everything__get-sum", arguments: r#"{"a":2,"b":3}"# }, "is 5"),
    (
        CallWith {
            id: "c3",
            name: "everything__get-structured-content",
            arguments: r#"{"location":"Chicago"}"#,
        },
        r#""structured":{"#,
    ),
    (CallWith { id: "c4", name: "everything__get-tiny-image", arguments: "{}" }, r#""mimeType":"image/png""#),
    (
        CallWith { id: "c5", name: "everything__get-resource-links", arguments: r#"{"count":1}"# },
        r#""mcpResourceLink":"#,
    ),
    (CallWith { id: "c6", name: "everything__get-sum", arguments: r#"{"a":"two"}"# }, r#""isError":true"#),
];

/// A call that takes longer than anybody waits, and one that follows when its server was killed.
const KILLED: &[(Answer, &str)] = &[
    (
        CallWith {
            id: "k1",
            name: "everything__trigger-long-running-operation",
            arguments: r#"{"duration":600,"steps":1}"#,
        },
        "may have had effects",
    ),
    (
        CallWith { id: "k2", name: "everything__echo", arguments: r#"{"message":"again"}"# },
        r#""text":"Echo: again""#,
    ),
];

pub(super) fn run(program: &Program) -> Result<String> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("mcp");
    if let Err(fault) = npm::install(&folder, &[PACKAGE]) {
        return Ok(format!("skipped, because the server cannot be had: {fault}"));
    }
    let entry = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let wrap = |what, e| Fault::because(what, e);
    call_tools(program, &entry).map_err(|e| wrap("tools of a server", e))?;
    kill_in_call(program, &entry).map_err(|e| wrap("a server killed in a call", e))?;
    Ok(format!("{} calls, and a server killed in the middle of one", CALLS.len() + KILLED.len()))
}

/// Every result holds what it should, and the server is gone afterwards.
fn call_tools(program: &Program, entry: &Path) -> Result<()> {
    let desk = Desk::set_up(entry)?;
    process::capture(
        program.command(["check", "--connect", "harness.yaml"]).current_dir(desk.folder.path()),
    )?;
    let endpoint = Endpoint::start(script(CALLS))?;
    let answer = process::capture(&mut desk.command(program, &endpoint))?;
    desk.finish(&answer, CALLS)
}

/// The call that was under way is answered truthfully, and the next one finds a new server.
fn kill_in_call(program: &Program, entry: &Path) -> Result<()> {
    let desk = Desk::set_up(entry)?;
    let endpoint = Endpoint::start(script(KILLED))?;
    let mut command = desk.command(program, &endpoint);
    let mut child = process::start(command.arg("--json"))?;
    let killed = desk.wait_for_call("trigger-long-running-operation").and_then(|()| desk.kill_server());
    if killed.is_err() {
        // Nobody would ever answer it.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| Fault::because("waiting for the program", e))?;
    killed?;
    if !status.success() {
        return Err(Fault::new(format!("the program failed: {status}")));
    }
    desk.finish(ANSWER, KILLED)?;
    let session = read(&desk.path("session.jsonl"))?;
    if session.contains("killed by signal 9") && desk.groups()?.len() == 2 {
        return Ok(());
    }
    Err(Fault::new(format!("how the server ended is not told, or no other was started: {session}")))
}

/// The calls one after the other, then the answer.
fn script(calls: &[(Answer, &str)]) -> &'static [Answer] {
    let script: Vec<Answer> = calls.iter().map(|(answer, _)| *answer).chain([Text(ANSWER)]).collect();
    // The endpoint's thread may outlive the check.
    Box::leak(script.into_boxed_slice())
}

/// A temporary folder with a descriptor, a registry and a session.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn set_up(entry: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        let desk = Self { folder };
        let server = SERVER.replace("ENTRY", &format!("'{}'", entry.display()));
        for (name, text) in
            [("harness.yaml", DESCRIPTOR), ("registry.yaml", REGISTRY), ("server.sh", &server), ("told", "")]
        {
            fs::write(desk.path(name), text).map_err(|e| Fault::because(name, e))?;
        }
        Ok(desk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &Program, endpoint: &Endpoint) -> std::process::Command {
        let mut command = program.command(["run", "harness.yaml", "--session", "session.jsonl"]);
        command.args(["--base-url", &endpoint.url, "Use the tools."]).current_dir(self.folder.path());
        command
    }

    /// Waits until the server was told of a call.
    fn wait_for_call(&self, tool: &str) -> Result<()> {
        let watch = Stopwatch::start();
        while !read(&self.path("told"))?.contains(tool) {
            if watch.elapsed() > Duration::from_mins(1) {
                return Err(Fault::new(format!("the server was not told to call {tool}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The process groups of the servers, in the order of their starts.
    fn groups(&self) -> Result<Vec<String>> {
        Ok(read(&self.path("groups"))?.lines().map(str::to_owned).collect())
    }

    fn kill_server(&self) -> Result<()> {
        let groups = self.groups()?;
        let group = groups.last().ok_or_else(|| Fault::new("no server was started"))?;
        process::run(&mut signal("KILL", group))
    }

    /// The run ended with the answer, each call has its one result with what it should hold, and no server
    /// is left.
    fn finish(&self, answer: &str, calls: &[(Answer, &str)]) -> Result<()> {
        if !answer.contains(ANSWER) {
            return Err(Fault::new(format!("the run printed {answer:?}")));
        }
        let results = results(&read(&self.path("session.jsonl"))?)?;
        if results.len() != calls.len() {
            return Err(Fault::new(format!("{} calls have {} results", calls.len(), results.len())));
        }
        for ((call, expected), result) in calls.iter().zip(&results) {
            if !result.contains(expected) {
                return Err(Fault::new(format!("the result of {call:?} does not hold {expected}: {result}")));
            }
        }
        // Of a server that was killed, its children may wait for somebody to reap them; only the last one
        // was ended by the program.
        match self.groups()?.last() {
            Some(group) if process::succeeds(&mut signal("0", group)) => {
                Err(Fault::new(format!("the server of process group {group} is left")))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Sends a signal to a whole group.
fn signal(name: &str, group: &str) -> std::process::Command {
    let mut command = process::command("sh");
    command.args(["-c", "kill -s \"$1\" -- \"-$2\"", "sh", name, group]);
    command
}

/// The messages that answer calls, as text, in the order of the session.
fn results(session: &str) -> Result<Vec<String>> {
    let mut results = Vec::new();
    for line in session.lines() {
        let mut entry: Value =
            serde_json::from_str(line).map_err(|e| Fault::because(format!("session line {line}"), e))?;
        entry.sort_all_objects();
        let message = entry.get("message").filter(|message| message.get("toolCallId").is_some());
        results.extend(message.map(Value::to_string));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_in_a_session() {
        let session = r#"{"type":"session","version":1}
{"type":"message","message":{"role":"assistant","content":[]}}
{"type":"message","message":{"role":"toolResult","toolCallId":"c1","content":[]}}"#;
        assert_eq!(
            results(session),
            Ok(vec![r#"{"content":[],"role":"toolResult","toolCallId":"c1"}"#.into()])
        );
    }
}
