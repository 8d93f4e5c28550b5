//! Turns written as short texts.

mod line;
mod parse;
mod play;

use std::fmt;
use std::sync::Arc;

pub(crate) use line::ScriptFault;

use harness_core::Origin;
use harness_core::turn::{Turn, TurnSpec};

/// Plays a script against a turn and gives what happened, one line per event and the verdict last.
/// `agent_prepared` is left out: a script has one agent, and it never changes.
///
/// # Script
/// One thing per line; empty lines and lines that begin with `//` are left out. A line takes effect when
/// everything that the lines before it say has happened.
///
/// | line | meaning |
/// |---|---|
/// | `tools: add pure, log, pay unsafe approval` | the tools; flags are `pure`, `idempotent`, `unsafe`, `sequential`, `polling`, `approval` |
/// | `limits: iterations 3, calls 2, elapsed 30s, invalid 2, tokens 100, cost 5` | limits that differ from the spec's |
/// | `parallel 4` | calls of a batch run at once |
/// | `gates: policy audit` | the tool gates; one without a line allows |
/// | `checks: tests end, words prompt answer` | the checks and where they are asked; one without a line accepts |
/// | `approver` | somebody decides about held calls |
/// | `prompt: "Hello"` | the prompt; `go` when absent |
/// | `model: text "done"` | an answer; `usage 10/5` and `cost 0.1` may follow on every model line |
/// | `model: call add {"a":1} #c1, call log {} #c2` | calls |
/// | `model: ask "Which?"`, `refuse "No"`, `approve id kind "what"`, `invalid "why"`, `fault code "why"` | the other outputs |
/// | `tool #c1: ok 4`, `error CODE TEXT`, `retry CODE TEXT`, `fault CODE TEXT` | what comes of an execution; `retry` is a failure worth another try |
/// | `tool #c1: waits id "what"` | its work waits for an approval |
/// | `gate policy #c1: deny "no"`, `halt "no"`, `hold "why"`, `rewrite {"a":2}`, `allow` | what a gate says |
/// | `check tests: accept`, `amend "words"`, `waive "why"`, `continue "guidance"`, `ask "Which?"`, `refuse "why"` | what a check says |
/// | `arguments #c1: field "problem"` | wrong arguments |
/// | `approve #c1: granted`, `denied "why"`, `edited {"a":2}`, `later` | what the approver says |
/// | `cancel` | the caller cancels |
/// | `steer "text"` | a message waits in the steering queue |
/// | `advance 30s` | the time moves (`ms`, `s`, `m`) |
/// | `crash` | the process dies and a new one goes on from what is durable |
/// | `decide #c1: granted` | after the end: another turn with a decision about a pending call |
/// | `resume`, `next "text"` | after the end: another turn on the same transcript, going on where it stopped or with a new message |
///
/// # Errors
/// A line that cannot be read; it is named with its number.
pub(crate) fn play_turn(spec: TurnSpec, script: &str) -> Result<String, ScriptFault> {
    let script = parse::parse(spec, script)?;
    let spec = Arc::new(script.spec.clone());
    Ok(play::play(script, |log| Turn::new(Arc::clone(&spec), Origin::default(), log)))
}

/// Plays a script against a turn and compares what happened; see [`play_turn`].
///
/// White space at the ends of lines and empty lines do not count. A line `...` stands for whatever happened there, so
/// that a test names only the lines that it is about.
///
/// # Panics
/// When what happened differs, or the script cannot be read.
#[track_caller]
pub(crate) fn check_turn_with(spec: TurnSpec, script: &str, expected: &str) {
    compare(play_turn(spec, script), expected);
}

#[track_caller]
fn compare(happened: Result<String, ScriptFault>, expected: &str) {
    let happened = happened.unwrap_or_else(|fault| panic!("{fault}"));
    let lines: Vec<_> = Lines(&happened).iter().collect();
    let wanted: Vec<_> = Lines(expected).iter().collect();
    assert!(
        fits(&lines, &wanted),
        "it did not happen as expected\n--- happened\n{happened}\n--- expected\n{}",
        Lines(expected),
    );
}

/// Whether these lines are the wanted ones, of which `...` stands for any number of lines.
fn fits(lines: &[&str], wanted: &[&str]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => {
            (0..=lines.len()).any(|at| lines.get(at..).is_some_and(|left| fits(left, rest)))
        }
        Some((line, rest)) => {
            lines.split_first().is_some_and(|(first, left)| first == line && fits(left, rest))
        }
    }
}

/// A text whose lines count without the white space around them.
struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0.lines().map(str::trim).filter(|line| !line.is_empty())
    }
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
