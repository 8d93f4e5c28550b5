//! Loops of calls, ceilings that are reserved, the closing step near a limit, runtime policies.

use crate::script::play_turn;
use harness_core::tool::ToolDef;
use harness_core::turn::TurnSpec;

use crate::bare::{bare, strict};

/// What happened, without the lines of no interest here.
#[track_caller]
fn played(spec: TurnSpec, script: &str) -> Vec<String> {
    let told = play_turn(spec, script).unwrap_or_else(|fault| panic!("{fault}"));
    let interesting = |line: &&str| {
        !["model_step", "tool_requested", "tool_started", "turn_", "-- "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    told.lines().filter(interesting).map(str::to_owned).collect()
}

/// A turn whose model makes these calls one after another, then answers.
fn calls(tools: &str, made: &[(&str, &str, &str)]) -> String {
    use std::fmt::Write as _;
    let mut script = format!("tools: {tools}\nlimits: iterations 30, calls 30\n");
    for (n, (tool, arguments, result)) in made.iter().enumerate() {
        let _ = write!(script, "model: call {tool} {arguments} #c{n}\ntool #c{n}: ok {result}\n");
    }
    script + "model: text \"done\"\n"
}

const HINT: &str = "message_appended user \"You repeat the same calls";

fn hints(told: &[String]) -> usize {
    told.iter().filter(|line| line.starts_with(HINT)).count()
}

#[test]
fn a_cycle_is_hinted_at_once_and_then_stops_the_turn() {
    let (a, b) = (("look", "{}", "empty"), ("list", "{}", "nothing"));
    let told = played(bare(), &calls("look pure, list pure", &[a, b, a, b]));
    assert_eq!(hints(&told), 1);
    assert_eq!(told.last().map(String::as_str), Some("completed: answer_finalized \"done\""));

    let told = played(bare(), &calls("look pure, list pure", &[a, b, a, b, a, b]));
    assert_eq!(hints(&told), 1);
    assert!(told.iter().any(|line| line == "limit_reached redundant_tool_loop"), "{told:?}");
    assert!(told.iter().any(|line| line == "failed: redundant_tool_loop"), "{told:?}");
}

#[test]
fn longer_cycles_are_found_and_changing_results_are_none() {
    let round = [("look", "{\"n\":1}", "x"), ("look", "{\"n\":2}", "x"), ("list", "{}", "y")];
    let rounds = |n: usize| std::iter::repeat_n(round, n).flatten().collect::<Vec<_>>();
    let told = played(bare(), &calls("look pure, list pure", &rounds(3)));
    assert!(told.iter().any(|line| line == "failed: redundant_tool_loop"), "{told:?}");

    let (a, b) = (("look", "{}", "1"), ("list", "{}", "2"));
    let changing = [a, b, ("look", "{}", "3"), b, ("look", "{}", "4"), b, ("look", "{}", "5"), b];
    assert_eq!(hints(&played(bare(), &calls("look pure, list pure", &changing))), 0);
    let mut off = bare();
    off.longest_cycle = 0;
    assert_eq!(hints(&played(off, &calls("look pure, list pure", &[a, b, a, b, a, b]))), 0);
}

#[test]
fn a_polling_tool_may_say_the_same_again_and_again() {
    let ask = ("status", "{}", "waiting");
    let told = played(bare(), &calls("status pure polling", &[ask; 6]));
    assert_eq!(told.last().map(String::as_str), Some("completed: answer_finalized \"done\""));
    let told = played(bare(), &calls("status pure", &[ask; 3]));
    assert!(told.iter().any(|line| line == "failed: redundant_tool_loop"), "{told:?}");
    assert!(!ToolDef::new("status", "").polling, "no tool polls unless it says so");
}

const SPENDING: &str = "
    tools: add pure
    limits: tokens 100
    model: call add {} #c1 usage 30/10
    tool #c1: ok 4
    model: call add {\"n\":2} #c2 usage 30/10
    tool #c2: ok 5
    model: text \"done\" usage 30/10
";

#[test]
fn a_step_that_would_pass_a_ceiling_is_not_asked_for() {
    let told = played(bare(), SPENDING);
    assert!(told.iter().any(|line| line == "limit_reached budget_reached 80/100"), "{told:?}");
    assert!(told.iter().any(|line| line == "deferred: budget_reached"), "{told:?}");
}

#[test]
fn the_closing_step_comes_before_a_ceiling_and_sums_up() {
    let mut spec = bare();
    spec.closing_step = true;
    let told = played(spec, &SPENDING.replacen("tokens 100", "tokens 120", 1));
    let closing = told.iter().position(|line| line == "limit_reached budget_reached 80/120");
    assert!(closing.is_some(), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("deferred: budget_reached \"done\""));
}

#[test]
fn with_a_closing_step_the_last_permitted_result_reaches_the_model() {
    let mut spec = strict();
    spec.closing_step = true;
    spec.limits.tool_calls = 1;
    let told = played(
        spec,
        "tools: add\nmodel: call add {} #c1\ntool #c1: ok 4\nmodel: call add {} #c2\nmodel: text \"4 it is\"",
    );
    assert_eq!(told.last().map(String::as_str), Some("deferred: max_tool_calls_reached \"4 it is\""));
}
