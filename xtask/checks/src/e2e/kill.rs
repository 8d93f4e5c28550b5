//! Ended at random moments, some runs at once, by SIGKILL, by SIGHUP and by a closed terminal: whatever the program
//! had told is in its session, the session is legal, its lock is free, the run goes on to its end, no tool
//! runs twice, and of the processes that its tools left in the background none is left.
//!
//! The program tells an event once its record is safe, so every message that was told is one that must be
//! there.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use harness_core::message::{Message, ModelOutput};
use harness_session::{JsonlSession, Limits, Stored};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use super::crash::{calls_and_results, kill};
use super::endpoint::Answer::{self, CallWith, Silence, Text};
use super::endpoint::Endpoint;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::read;
use xtask::stopwatch::Stopwatch;

/// The longest time after a line of its output until the program is ended, in microseconds.
const DELAY: u64 = 8_000;

/// What the moments are drawn from, so that a fault can be had again.
const SEED: u64 = 7;

/// How many runs there are at once: most of their time is waiting.
const AT_ONCE: usize = 8;

/// How long what a program left may take to end.
const ENDING: Duration = Duration::from_secs(20);

/// A way in which the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    HangUp,
    ClosedTerminal,
}

impl Blow {
    const ALL: [Self; 3] = [Self::Kill, Self::HangUp, Self::ClosedTerminal];
}

/// A moment at which the program ends: some time after a line of its output.
#[derive(Clone, Copy, Debug)]
struct Moment {
    blow: Blow,
    line: usize,
    delay: Duration,
}

impl Moment {
    /// One of a run that prints so many lines; the ways take turns.
    fn draw(number: usize, lines: u64, random: &mut u64) -> Self {
        let blow = Blow::ALL.get(number % Blow::ALL.len()).copied().unwrap_or(Blow::Kill);
        let line = usize::try_from(next(random) % lines).unwrap_or_default();
        Self { blow, line, delay: Duration::from_micros(next(random) % DELAY) }
    }
}

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
    args: [note.sh]
    timeout: 60s
    input: json-stdin
    class: unsafe
    parameters: { type: object, properties: { n: { type: integer } } }
";

/// Takes the note, and leaves two processes in the background, outside of its group and deaf to SIGTERM.
const TOOL: &str = "\
for way in one two; do
  ( setsid sh -c 'trap \"\" TERM HUP; exec sleep 1000' </dev/null >/dev/null 2>&1 & )
done
cat >> notes
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

pub(super) fn run(program: &Program, runs: usize) -> Result<String> {
    let endpoint = Endpoint::by(answer)?;
    let whole = process::capture(&mut Desk::set_up()?.begin(program, &endpoint))?;
    let lines = whole.lines().count().max(1) as u64;
    let mut random = SEED;
    let moments: Vec<Moment> = (0..runs).map(|number| Moment::draw(number, lines, &mut random)).collect();
    let waiting = Mutex::new(moments.into_iter().enumerate());
    let went_on = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| work(program, &waiting))).collect();
        workers.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let (killed, resumed) = (runs.div_ceil(Blow::ALL.len()), went_on.iter().sum::<usize>());
    if resumed < killed / 2 {
        return Err(Fault::new(format!("only {resumed} of {killed} runs were killed before their end")));
    }
    Ok(format!("ended {runs} times, nothing was left; went on after {resumed} of {killed} kills"))
}

fn join(worker: ScopedJoinHandle<'_, Result<usize>>) -> Result<usize> {
    worker.join().unwrap_or_else(|_| Err(Fault::new("a worker panicked")))
}

/// Does what waits until nothing does; how many killed runs went on.
fn work(program: &Program, waiting: &Mutex<impl Iterator<Item = (usize, Moment)>>) -> Result<usize> {
    let endpoint = Endpoint::by(answer)?;
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let mut resumed = 0;
    loop {
        // The lock is not held while the run lasts.
        let Some((number, moment)) = lock().next() else { return Ok(resumed) };
        match die_and_go_on(program, &endpoint, moment) {
            Ok(went_on) => resumed += usize::from(went_on && moment.blow == Blow::Kill),
            Err(fault) => {
                lock().by_ref().for_each(drop);
                return Err(Fault::because(format!("run {number}: {moment:?}"), fault));
            }
        }
    }
}

/// The next number of a simple generator (SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Whether the run was killed before its end, and went on.
fn die_and_go_on(program: &Program, endpoint: &Endpoint, moment: Moment) -> Result<bool> {
    let desk = Desk::set_up()?;
    let told = desk.end_at(program, endpoint, moment)?;
    let session = desk.path("session.jsonl");
    let Stored { loaded, .. } = stored(&session)?;
    let kept = loaded.messages.iter().map(|message| value(message)).collect::<Result<Vec<_>>>()?;
    if !kept.starts_with(&told) {
        return Err(Fault::new(format!("{} messages were told, {} are there", told.len(), kept.len())));
    }
    let went_on = !kept.is_empty() && !loaded.ended;
    // At once, beside what may still be ending.
    if went_on {
        process::capture(desk.command(program, endpoint).arg("--resume"))?;
        // Only the record of its end was missing: nothing is left to do, and nothing is done.
        let answer = loaded.messages.last().and_then(|last| last.as_assistant());
        if answer.is_some_and(|answer| matches!(answer.output(), ModelOutput::FinalAnswer)) {
            let again = stored(&session)?.loaded;
            if again.messages != loaded.messages {
                return Err(Fault::new("a run with its final answer was resumed"));
            }
        } else {
            check_end(&session)?;
        }
    }
    desk.check_notes()?;
    desk.check_processes()?;
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
        for (name, text) in [("harness.yaml", DESCRIPTOR), ("registry.yaml", REGISTRY), ("note.sh", TOOL)] {
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

    /// Ends the program some time after it has written so many lines; gives the messages that it told.
    fn end_at(&self, program: &Program, endpoint: &Endpoint, moment: Moment) -> Result<Vec<Value>> {
        let mut command = self.begin(program, endpoint);
        let terminal = match moment.blow {
            Blow::ClosedTerminal => Some(at_terminal(&mut command)?),
            Blow::Kill | Blow::HangUp => None,
        };
        let (mut child, output) = process::start_reading(&mut command)?;
        // What keeps the other side of the terminal open must go.
        drop(command);
        let mut output = output.split(b'\n');
        let mut seen: Vec<_> = output.by_ref().take(moment.line).map_while(std::io::Result::ok).collect();
        std::thread::sleep(moment.delay);
        match moment.blow {
            Blow::Kill => kill(&mut child)?,
            Blow::HangUp => {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(Pid::from_child(&child), Signal::HUP);
            }
            Blow::ClosedTerminal => drop(terminal),
        }
        seen.extend(output.map_while(std::io::Result::ok));
        child.wait().map_err(|e| Fault::because("waiting for the program", e))?;
        // The last line may be torn.
        let events = seen.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let told = events.filter(|event| event.get("type").is_some_and(|kind| kind == "message_appended"));
        Ok(told.filter_map(|mut event| event.get_mut("message").map(Value::take)).collect())
    }

    /// No process of the program or of its tools is left: all of them work in the folder.
    fn check_processes(&self) -> Result<()> {
        let watch = Stopwatch::start();
        loop {
            let left = processes_in(self.folder.path())?;
            if left.is_empty() {
                return Ok(());
            }
            if watch.elapsed() > ENDING {
                return Err(Fault::new(format!("processes are left: {left:?}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
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

/// Gives a start a terminal of its own as its controlling terminal and standard input; the other side of it.
fn at_terminal(command: &mut Command) -> Result<File> {
    let failed = |errno: rustix::io::Errno| Fault::because("a terminal", errno);
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(failed)?;
    grantpt(&ours).and_then(|()| unlockpt(&ours)).map_err(failed)?;
    let name = ptsname(&ours, Vec::new()).map_err(failed)?;
    let not_ours = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
    let theirs = File::options()
        .read(true)
        .write(true)
        .custom_flags(not_ours)
        .open(name.to_string_lossy().as_ref())
        .map_err(|e| Fault::because("a terminal", e))?;
    let mut at_it = process::command("setsid");
    at_it.arg("--ctty").arg(command.get_program()).args(command.get_args()).stdin(theirs);
    if let Some(folder) = command.get_current_dir() {
        at_it.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => at_it.env(name, value),
            None => at_it.env_remove(name),
        };
    }
    *command = at_it;
    Ok(File::from(ours))
}

/// The processes that work in a folder, with their command lines.
fn processes_in(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.canonicalize().map_err(|e| Fault::because("temporary folder", e))?;
    let entries = std::fs::read_dir("/proc").map_err(|e| Fault::because("/proc", e))?;
    let ours = entries.flatten().filter(|entry| {
        let works_in = std::fs::read_link(entry.path().join("cwd"));
        works_in.is_ok_and(|works_in| works_in == folder)
    });
    Ok(ours
        .map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            format!("{} {line}", entry.file_name().to_string_lossy())
        })
        .collect())
}
