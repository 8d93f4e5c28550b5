//! Killed at two hundred moments: whatever the program had told is in its session, the session is legal,
//! its lock is free, the run goes on to its end, and no tool runs twice.
//!
//! The program tells an event once its record is safe, so every message that was told is one that must be
//! there.

use std::collections::HashSet;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness_core::message::Message;
use harness_session::{JsonlSession, Limits, Stored};
use serde_json::Value;

use super::crash::{calls_and_results, kill};
use super::endpoint::Answer::{self, CallWith, Silence, Text};
use super::endpoint::Endpoint;
use super::program::Program;
use crate::fault::{Fault, Result};
use crate::process;
use crate::repo::read;

/// How often the program is killed.
const RUNS: usize = 200;

/// How long after a line of its output the program is killed; one after the other, as rounds go on.
const DELAYS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_micros(100),
    Duration::from_micros(500),
    Duration::from_millis(2),
    Duration::from_millis(8),
];

const DESCRIPTOR: &str = "\
metadata: { name: kill }
runtime: { entry_agent: clerk }
tools:
  note: { target: test.note }
agents:
  clerk:
    name: Clerk
    instructions: Take three notes.
    model: scripted
    tools: [note]
";

const REGISTRY: &str = "\
version: 1
tools:
  test.note:
    name: note
    description: Takes a note.
    command: sh
    args: [-c, cat >> notes]
    timeout: 60s
    input: json-stdin
    class: unsafe
    parameters: { type: object, properties: { n: { type: integer } } }
";

/// Asks for three notes, one after the other, and is done then.
fn answer(body: &str) -> Answer {
    match body.matches(r#""role":"tool""#).count() {
        0 => CallWith { id: "c1", name: "note", arguments: r#"{"n":1}"# },
        1 => CallWith { id: "c2", name: "note", arguments: r#"{"n":2}"# },
        2 => CallWith { id: "c3", name: "note", arguments: r#"{"n":3}"# },
        _ => Text("Three notes."),
    }
}

pub(super) fn run(program: &Program) -> Result<String> {
    let endpoint = Endpoint::by(answer)?;
    let whole = process::capture(&mut Desk::set_up()?.begin(program, &endpoint))?;
    let moments = whole.lines().count();
    let mut resumed = 0;
    for number in 0..RUNS {
        let (line, round) = (number % moments, number / moments);
        let delay = DELAYS.get(round % DELAYS.len()).copied().unwrap_or_default();
        let went_on = die_and_go_on(program, &endpoint, line, delay).map_err(|fault| {
            Fault::because(format!("killed {delay:?} after line {line} of its output"), fault)
        })?;
        resumed += usize::from(went_on);
    }
    if resumed < RUNS / 2 {
        return Err(Fault::new(format!("only {resumed} of {RUNS} runs were killed before their end")));
    }
    Ok(format!("killed {RUNS} times, went on {resumed} times"))
}

/// Whether the run was killed before its end, and went on.
fn die_and_go_on(program: &Program, endpoint: &Endpoint, line: usize, delay: Duration) -> Result<bool> {
    let desk = Desk::set_up()?;
    let told = desk.kill_after(program, endpoint, line, delay)?;
    let session = desk.path("session.jsonl");
    let Stored { loaded, .. } = stored(&session)?;
    let kept = loaded.messages.iter().map(|message| value(message)).collect::<Result<Vec<_>>>()?;
    if !kept.starts_with(&told) {
        return Err(Fault::new(format!("{} messages were told, {} are there", told.len(), kept.len())));
    }
    let went_on = !kept.is_empty() && !loaded.ended;
    if went_on {
        process::capture(desk.command(program, endpoint).arg("--resume"))?;
        check_end(&session)?;
    }
    desk.check_notes()?;
    Ok(went_on)
}

/// The run has ended, every call has one result, every line is whole.
fn check_end(session: &Path) -> Result<()> {
    let Stored { loaded, .. } = stored(session)?;
    if !loaded.ended || loaded.torn_tail.is_some() || !loaded.open_calls.is_empty() {
        return Err(Fault::new("the resumed session is not at its end"));
    }
    let (calls, results) = calls_and_results(&read(session)?)?;
    if calls != results || calls != ["c1", "c2", "c3"] {
        return Err(Fault::new(format!("calls {calls:?}, but results {results:?}")));
    }
    Ok(())
}

fn stored(session: &Path) -> Result<Stored> {
    JsonlSession::read(session, Limits::default()).map_err(|e| Fault::because("reading the session", e))
}

fn value(message: &Message) -> Result<Value> {
    serde_json::to_value(message).map_err(|e| Fault::because("a message", e))
}

/// A second program is refused with the name of the first, and gets the session when that one was killed.
pub(super) fn one_owner(program: &Program) -> Result<String> {
    let desk = Desk::set_up()?;
    let silent = Endpoint::start(&[Silence])?;
    let mut first = process::start(&mut desk.begin(program, &silent))?;
    let seen = silent.wait_for_request();
    let endpoint = Endpoint::by(answer)?;
    let refusal = process::capture_refusal(&mut desk.begin(program, &endpoint));
    kill(&mut first)?;
    seen?;
    let (refusal, owner) = (refusal?, format!("is in use by process {} of host", first.id()));
    if !refusal.contains(&owner) {
        return Err(Fault::new(format!("the second program was told: {refusal}")));
    }
    process::capture(desk.command(program, &endpoint).arg("--resume"))?;
    check_end(&desk.path("session.jsonl"))?;
    Ok("a second owner is refused until the first is killed".to_owned())
}

/// A temporary folder with a descriptor, a tool and a session.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn set_up() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Fault::because("temporary folder", e))?;
        let desk = Self { folder };
        for (name, text) in [("harness.yaml", DESCRIPTOR), ("registry.yaml", REGISTRY)] {
            std::fs::write(desk.path(name), text).map_err(|e| Fault::because(name, e))?;
        }
        Ok(desk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &Program, endpoint: &Endpoint) -> Command {
        let mut command = program.command(["run", "harness.yaml", "--session", "session.jsonl", "--json"]);
        command.args(["--base-url", &endpoint.url]).current_dir(self.folder.path());
        command
    }

    fn begin(&self, program: &Program, endpoint: &Endpoint) -> Command {
        let mut command = self.command(program, endpoint);
        command.arg("Three notes, please.");
        command
    }

    /// Kills the program some time after it has written so many lines; gives the messages that it told.
    fn kill_after(
        &self,
        program: &Program,
        endpoint: &Endpoint,
        lines: usize,
        delay: Duration,
    ) -> Result<Vec<Value>> {
        let (mut child, output) = process::start_reading(&mut self.begin(program, endpoint))?;
        let mut output = output.split(b'\n');
        let mut seen: Vec<_> = output.by_ref().take(lines).map_while(std::io::Result::ok).collect();
        std::thread::sleep(delay);
        kill(&mut child)?;
        seen.extend(output.map_while(std::io::Result::ok));
        // The last line may be torn.
        let events = seen.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let told = events.filter(|event| event.get("type").is_some_and(|kind| kind == "message_appended"));
        Ok(told.filter_map(|mut event| event.get_mut("message").map(Value::take)).collect())
    }

    /// No note was taken twice.
    fn check_notes(&self) -> Result<()> {
        let notes = std::fs::read_to_string(self.path("notes")).unwrap_or_default();
        let notes: Vec<_> =
            notes.split_inclusive('}').map(str::trim).filter(|note| !note.is_empty()).collect();
        let different: HashSet<_> = notes.iter().collect();
        if different.len() == notes.len() { Ok(()) } else { Err(Fault::new(format!("notes {notes:?}"))) }
    }
}
