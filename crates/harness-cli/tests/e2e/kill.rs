//! Ended at random moments, some runs at once, by SIGKILL, by SIGHUP and by a closed terminal: whatever the program
//! had told is in its session, the session is legal, its lock is free, the run goes on to its end, no tool
//! runs twice, and of the processes that its tools left in the background none is left.
//!
//! The program tells an event once its record is safe, so every message that was told is one that must be
//! there.

use std::collections::HashSet;
use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::core::message::ModelOutput;
use harness::session::{FileSession, OpenOptions, Stored};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Answer, Gate, Project, Reply, Running, Server, at_own_terminal, until, within};
use crate::{calls_and_results, ran};

/// The longest time after a line of its output until the program is ended, in microseconds.
const DELAY: u64 = 8_000;

/// What the moments are drawn from, so that a fault can be had again.
const SEED: u64 = 7;

/// How many runs there are at once: most of their time is waiting.
const AT_ONCE: usize = 8;

/// How long what the program left may take to end.
const ENDING: Duration = Duration::from_secs(20);

/// How many runs are ended where `HARNESS_E2E_KILLS` says nothing else.
const KILLS: usize = 60;

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
        let line = usize::try_from(next(random) % lines).unwrap();
        let delay = Duration::from_micros(next(random) % DELAY);
        Self { blow: Blow::ALL[number % Blow::ALL.len()], line, delay }
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
fn answer(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let taken = messages.iter().filter(|message| message["role"] == "tool").count();
    let note = |id, n| Reply::Stream(Answer::call(id, "note", &json!({ "n": n })));
    match taken {
        0 => note("c1", 1),
        1 => note("c2", 2),
        2 => note("c3", 3),
        _ => Reply::text("Three notes."),
    }
}

/// A folder with a descriptor, a tool and a session.
fn project() -> Project {
    Project::of(&[("harness.yaml", DESCRIPTOR), ("registry.yaml", REGISTRY), ("note.sh", TOOL)])
}

fn run(project: &Project, server: &Server, last: &str) -> Command {
    let run =
        ["run", "harness.yaml", "--session", "session.jsonl", "--json", "--base-url", &server.url, last];
    project.command(&run)
}

fn begin(project: &Project, server: &Server) -> Command {
    run(project, server, "Three notes, please.")
}

#[expect(clippy::disallowed_methods, reason = "`cargo xtask e2e kill --kills N` says how many")]
fn kills() -> usize {
    std::env::var("HARNESS_E2E_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

#[test]
fn a_run_that_is_ended_at_any_moment_loses_nothing_and_leaves_nothing() {
    let server = Server::by(answer);
    let runs = kills();
    let lines = ran(begin(&project(), &server)).lines().count() as u64;
    let mut random = SEED;
    let moments: Vec<Moment> = (0..runs).map(|number| Moment::draw(number, lines, &mut random)).collect();
    let waiting = Mutex::new(moments.into_iter());
    let resumed: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| work(&server, &waiting))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let killed = runs.div_ceil(Blow::ALL.len());
    assert!(resumed >= killed / 2, "only {resumed} of {killed} runs were killed before their end");
    println!("ended {runs} times, nothing was left; went on after {resumed} of {killed} kills");
}

/// Does what waits until nothing does; how many killed runs went on.
fn work(server: &Server, waiting: &Mutex<impl Iterator<Item = Moment>>) -> usize {
    // The lock is not held while a run lasts.
    let moments = std::iter::from_fn(|| waiting.lock().next());
    moments.filter(|moment| die_and_go_on(server, *moment) && moment.blow == Blow::Kill).count()
}

/// Whether the run was killed before its end, and went on.
fn die_and_go_on(server: &Server, moment: Moment) -> bool {
    let project = project();
    let told = end_at(&project, server, moment);
    let session = project.path().join("session.jsonl");
    let Stored { loaded, .. } = stored(&session);
    let kept = loaded.messages.iter().map(|message| serde_json::to_value(message).unwrap());
    let kept: Vec<Value> = kept.collect();
    assert!(kept.starts_with(&told), "{moment:?}: {} messages told, {} kept", told.len(), kept.len());
    let went_on = !kept.is_empty() && !loaded.ended;
    // At once, beside what may still be ending.
    if went_on {
        ran(run(&project, server, "--resume"));
        // Only the record of its end was missing: nothing is left to do, and nothing is done.
        let answer = loaded.messages.last().and_then(|last| last.as_assistant());
        if answer.is_some_and(|answer| matches!(answer.output(), ModelOutput::FinalAnswer)) {
            assert_eq!(stored(&session).loaded.messages, loaded.messages, "{moment:?}");
        } else {
            check_end(&project);
        }
    }
    check_notes(&project);
    until(ENDING, "the end of every process of the run", || processes_in(project.path()).is_empty());
    went_on
}

/// Ends the program some time after it has written so many lines; gives the messages that it told.
fn end_at(project: &Project, server: &Server, moment: Moment) -> Vec<Value> {
    let mut command = begin(project, server);
    let mut terminal = None;
    if moment.blow == Blow::ClosedTerminal {
        let (at_it, ours) = at_own_terminal(&command);
        (command, terminal) = (at_it, Some(ours));
    }
    let mut running = Running::start(command);
    let mut seen = String::new();
    for _ in 0..moment.line {
        running.stdout().read_line(&mut seen).unwrap();
    }
    std::thread::sleep(moment.delay);
    match moment.blow {
        Blow::Kill => running.signal(Signal::KILL),
        Blow::HangUp => running.signal(Signal::HUP),
        Blow::ClosedTerminal => drop(terminal),
    }
    seen.push_str(&running.end().stdout);
    // The last line may be torn.
    let events = seen.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told = events.filter(|event| event["type"] == "message_appended");
    told.map(|mut event| event["message"].take()).collect()
}

/// The run has ended, every call has one result, every line is whole.
#[track_caller]
fn check_end(project: &Project) {
    let Stored { loaded, .. } = stored(&project.path().join("session.jsonl"));
    assert!(loaded.ended && loaded.torn_tail.is_none() && loaded.open_calls.is_empty(), "{loaded:?}");
    let session = project.session("session.jsonl");
    let (calls, results) = calls_and_results(&session);
    assert_eq!((&calls[..], &results[..]), (&["c1", "c2", "c3"][..], &["c1", "c2", "c3"][..]));
}

fn stored(session: &Path) -> Stored {
    FileSession::read(session, &OpenOptions::new()).unwrap()
}

/// No note was taken twice.
fn check_notes(project: &Project) {
    let notes = fs::read_to_string(project.path().join("notes")).unwrap_or_default();
    let notes: Vec<_> = notes.split_inclusive('}').map(str::trim).filter(|note| !note.is_empty()).collect();
    let different: HashSet<_> = notes.iter().collect();
    assert_eq!(different.len(), notes.len(), "{notes:?}");
}

/// The processes that work in a folder: the program and its tools.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ours = entries.filter(|entry| {
        let works_in = fs::read_link(entry.path().join("cwd"));
        works_in.is_ok_and(|works_in| works_in == folder)
    });
    ours.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_second_owner_is_refused_until_the_first_is_killed() {
    let project = project();
    let (gate, arrived) = Gate::closed();
    let silent = Server::start([Reply::Paused { answer: Answer::text(""), after: 0, gate }]);
    let first = Running::start(begin(&project, &silent));
    within("the request", move || arrived.recv().unwrap());
    let server = Server::by(answer);
    let second = Running::start(begin(&project, &server)).end();
    let owner = format!("is in use by process {} of host", first.id());
    assert!(second.code != Some(0) && second.stderr.contains(&owner), "{second:?}");
    first.kill();
    ran(run(&project, &server, "--resume"));
    check_end(&project);
}
