//! Killed without warning, taken up again: every call is answered exactly once, no tool runs
//! twice, and the run completes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use super::endpoint::Answer::{Call, Silence, Text};
use super::endpoint::{Answer, Endpoint};
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::read;
use xtask::stopwatch::Stopwatch;

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

/// A moment to die at.
struct Moment {
    name: &'static str,
    /// Answers before the crash; the kill comes when all have been asked for.
    before: &'static [Answer],
    /// True when the kill also has to wait for the tool to run, and the tool must not end.
    in_tool: bool,
    /// How often the tool has run in the end.
    runs: usize,
}

const MOMENTS: &[Moment] = &[
    Moment { name: "first model call", before: &[Silence], in_tool: false, runs: 0 },
    Moment { name: "tool", before: &[Call { id: "c1", name: "note" }], in_tool: true, runs: 1 },
    Moment {
        name: "second model call",
        before: &[Call { id: "c1", name: "note" }, Silence],
        in_tool: false,
        runs: 1,
    },
];

pub(super) fn run(program: &Program) -> Result<String> {
    for moment in MOMENTS {
        die_and_resume(program, moment)
            .map_err(|e| Fault::because(format!("killed during {}", moment.name), e))?;
    }
    Ok(format!("killed and resumed at {} moments", MOMENTS.len()))
}

fn die_and_resume(program: &Program, moment: &Moment) -> Result<()> {
    let desk = Desk::set_up()?;
    if !moment.in_tool {
        desk.let_the_tool_go()?;
    }
    let endpoint = Endpoint::start(moment.before)?;
    let mut first = desk.command(program, &endpoint, "Please note this.");
    let mut child = process::start(first.stderr(desk.create("stderr")?))?;
    let came_there = wait_for(moment, &desk, &endpoint);
    kill(&mut child)?;
    desk.let_the_tool_go()?;
    came_there.map_err(|e| Fault::because(e, read(&desk.path("stderr")).unwrap_or_default()))?;

    let endpoint = Endpoint::start(&[Text(ANSWER)])?;
    let answer = process::capture(&mut desk.command(program, &endpoint, "--resume"))?;
    if !answer.contains(ANSWER) {
        return Err(Fault::new(format!("the resumed run printed {answer:?}")));
    }
    desk.check(moment.runs)
}

fn wait_for(moment: &Moment, desk: &Desk, endpoint: &Endpoint) -> Result<()> {
    for _ in moment.before {
        endpoint.wait_for_request()?;
    }
    if moment.in_tool { desk.wait_for_the_tool() } else { Ok(()) }
}

/// Ends the process as a power cut would.
pub(super) fn kill(child: &mut Child) -> Result<()> {
    let killed = child.kill().and_then(|()| child.wait());
    killed.map(drop).map_err(|e| Fault::because("killing the program", e))
}

/// A temporary folder with a descriptor, a tool and a session.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn set_up() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        let desk = Self { folder };
        desk.write("harness.yaml", DESCRIPTOR)?;
        desk.write("registry.yaml", REGISTRY)?;
        desk.write("note.sh", TOOL)?;
        Ok(desk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.path(name), text).map_err(|e| Fault::because(name, e))
    }

    fn create(&self, name: &str) -> Result<File> {
        File::create(self.path(name)).map_err(|e| Fault::because(name, e))
    }

    fn let_the_tool_go(&self) -> Result<()> {
        self.write("go", "")
    }

    fn wait_for_the_tool(&self) -> Result<()> {
        let watch = Stopwatch::start();
        while !self.path("runs").exists() {
            if watch.elapsed() > Duration::from_secs(30) {
                return Err(Fault::new("the tool did not start"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn command(&self, program: &Program, endpoint: &Endpoint, last: &str) -> Command {
        let mut command = program.command(["run", "harness.yaml", "--session", "session.jsonl"]);
        command.args(["--base-url", &endpoint.url, last]).current_dir(self.folder.path());
        command
    }

    /// The session answers every call exactly once, in a file of whole lines; the tool ran as
    /// often as it should.
    fn check(&self, runs: usize) -> Result<()> {
        let session = read(&self.path("session.jsonl"))?;
        let (calls, results) = calls_and_results(&session)?;
        if calls != results {
            return Err(Fault::new(format!("calls {calls:?}, but results {results:?}")));
        }
        let ran = lines_of(&self.path("runs"));
        if ran != runs {
            return Err(Fault::new(format!("the tool ran {ran} times, not {runs}")));
        }
        Ok(())
    }
}

fn lines_of(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// The ids of all calls and of all results, in the order of the file.
pub(super) fn calls_and_results(session: &str) -> Result<(Vec<String>, Vec<String>)> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for line in session.lines() {
        let entry: Value =
            serde_json::from_str(line).map_err(|e| Fault::because(format!("session line {line}"), e))?;
        let text = |value: &Value, key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let Some(message) = entry.get("message") else { continue };
        results.extend(text(message, "toolCallId"));
        let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
        let asked = blocks.filter(|block| block.get("type").is_some_and(|kind| kind == "toolCall"));
        calls.extend(asked.filter_map(|block| text(block, "id")));
    }
    Ok((calls, results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_are_found_in_a_session() {
        let session = r#"{"type":"session","version":1}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"toolCall","id":"c1"}]}}
{"type":"call","call_id":"c1","state":"started"}
{"type":"message","message":{"role":"toolResult","toolCallId":"c1","content":[]}}"#;
        assert_eq!(calls_and_results(session), Ok((vec!["c1".to_owned()], vec!["c1".to_owned()])));
    }
}
