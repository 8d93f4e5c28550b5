//! Turns written as short texts.

mod line;
mod parse;
mod play;

use std::fmt;
use std::sync::Arc;

pub use line::ScriptFault;

use crate::origin::Origin;
use crate::run::{Run, RunSpec};
use crate::turn::{Turn, TurnSpec};

/// Plays a script against a turn and gives what happened, one line per event and the verdict last.
/// `agent_prepared` is left out: a script has one agent, and it never changes. [`play_run`] does the same with a run.
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
/// | `gate policy #c1: deny "no"`, `halt "no"`, `hold "why"`, `rewrite {"a":2}`, `allow` | what a gate says |
/// | `check tests: accept`, `amend "words"`, `waive "why"`, `continue "guidance"`, `ask "Which?"`, `refuse "why"` | what a check says |
/// | `arguments #c1: field "problem"` | wrong arguments |
/// | `approve #c1: granted`, `denied "why"`, `edited {"a":2}`, `later` | what the approver says |
/// | `cancel` | the caller cancels |
/// | `steer "text"` | a message waits in the steering queue |
/// | `advance 30s` | the time moves (`ms`, `s`, `m`) |
/// | `crash` | the process dies and a new one goes on from what is durable |
/// | `resume`, `next "text"` | after the end: another turn on the same transcript, going on where it stopped or with a new message |
///
/// # Errors
/// A line that cannot be read; it is named with its number.
pub fn play_turn(spec: TurnSpec, script: &str) -> Result<String, ScriptFault> {
    let script = parse::parse(spec, script)?;
    let spec = Arc::new(script.spec.clone());
    Ok(play::play(script, |log| Turn::new(Arc::clone(&spec), Origin::default(), log)))
}

/// Plays a script against a run, like [`play_turn`]. What the script says of limits and of how calls are executed is said of
/// each turn. No file is known to the run's control.
///
/// # Errors
/// A line that cannot be read; it is named with its number.
pub fn play_run(spec: RunSpec, script: &str) -> Result<String, ScriptFault> {
    let script = parse::parse(spec.turn.clone(), script)?;
    let spec = Arc::new(RunSpec { turn: script.spec.clone(), ..spec });
    Ok(play::play(script, |log| Run::new(Arc::clone(&spec), Origin::default(), log)))
}

/// Plays a script against the default turn and compares what happened; see [`play_turn`].
///
/// White space at the ends of lines and empty lines do not count. A line `...` stands for whatever happened there, so
/// that a test names only the lines that it is about.
///
/// ```
/// harness_core::testing::check_turn(
///     r#"
///     tools: add pure
///     prompt: "2 + 2?"
///     model: call add {"a":2,"b":2} #c1
///     tool #c1: ok 4
///     model: text "It is 4."
///     "#,
///     r#"
///     message_appended user "2 + 2?"
///     turn_started main
///     model_step_started
///     message_appended assistant #c1 add
///     model_step_finished tool_request
///     tool_requested #c1 add
///     tool_started #c1 add
///     message_appended result #c1 "4"
///     tool_finished #c1
///     model_step_started
///     message_appended assistant "It is 4."
///     model_step_finished final_answer
///     turn_finished answer_finalized
///     completed: answer_finalized "It is 4."
///     "#,
/// );
/// ```
///
/// # Panics
/// When what happened differs, or the script cannot be read.
#[track_caller]
pub fn check_turn(script: &str, expected: &str) {
    check_turn_with(TurnSpec::default(), script, expected);
}

/// [`check_turn`] with other settings.
///
/// # Panics
/// When what happened differs, or the script cannot be read.
#[track_caller]
pub fn check_turn_with(spec: TurnSpec, script: &str, expected: &str) {
    compare(play_turn(spec, script), expected);
}

/// Plays a script against a run and compares what happened; see [`play_run`] and [`check_turn`].
///
/// ```
/// use harness_core::run::RunSpec;
///
/// harness_core::testing::check_run(
///     RunSpec::default(),
///     r#"
///     checks: tests end
///     model: text "It works."
///     check tests: continue "Two tests fail."
///     model: text "Now it does."
///     check tests: accept
///     "#,
///     r#"
///     run_started
///     ...
///     decided end tests continue "Two tests fail."
///     ...
///     decided end tests accept
///     ...
///     completed: answer_finalized "Now it does."
///     "#,
/// );
/// ```
///
/// # Panics
/// When what happened differs, or the script cannot be read.
#[track_caller]
pub fn check_run(spec: RunSpec, script: &str, expected: &str) {
    compare(play_run(spec, script), expected);
}

#[track_caller]
#[expect(clippy::panic, reason = "a failed comparison fails the test that made it")]
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
