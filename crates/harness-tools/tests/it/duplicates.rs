//! The guard against calls that were made before.

use std::sync::Arc;

use harness_core::testing::{ScriptedTools, ToolStep};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_tools::{DuplicateGuard, DuplicateOptions};

use crate::support::{ask_in, told};

fn inner(outcomes: impl IntoIterator<Item = ToolOutcome>) -> ScriptedTools {
    ScriptedTools::new([ToolDef::new("look", "")]).answering(outcomes.into_iter().map(ToolStep::outcome))
}

fn first_line(guard: &DuplicateGuard, run: &str, arguments: &str) -> String {
    let told = told(&ask_in(run, guard, "look", arguments));
    told.lines().take(2).collect::<Vec<_>>().join(" / ").chars().take(60).collect()
}

#[test]
fn a_repeated_call_is_answered_without_the_tool() {
    let tools = inner([ToolOutcome::text("level 2.1"), ToolOutcome::text("level 3")]);
    let guard = DuplicateGuard::new(Arc::new(tools.clone()), DuplicateOptions::default());
    let ask = |arguments: &str| first_line(&guard, "run", arguments);
    assert_eq!(ask(r#"{"a":1,"b":2}"#), "success / level 2.1");
    assert_eq!(ask(r#"{"b":2,"a":1}"#), "success / You have called `look` with these arguments before");
    assert_eq!(ask(r#"{"a":1,"b":2}"#), "success / `look` was not called again: you have its result f");
    assert_eq!(ask(r#"{"a":1,"b":2}"#), "failed redundant_call_loop_aborted / `look` was called with ");
    assert_eq!(ask(r#"{"a":1}"#), "success / level 3");
    assert_eq!(tools.executions().len(), 2);
}

#[test]
fn the_second_hint_repeats_the_result_and_notes_say_what_happened() {
    let guard =
        DuplicateGuard::new(Arc::new(inner([ToolOutcome::text("level 2.1")])), DuplicateOptions::default());
    ask_in("run", &guard, "look", "{}");
    ask_in("run", &guard, "look", "{}");
    let second = ask_in("run", &guard, "look", "{}");
    assert!(told(&second).ends_with("What it gave:\n\nlevel 2.1"));
    assert_eq!(
        second.metadata.unwrap().text(),
        r#"{"idempotencyGuard":{"blocked":true,"code":"redundant_call_blocked","tier":2,"duplicateCount":2,"previousIteration":1,"previousOutputChars":9}}"#
    );
}

#[test]
fn failures_other_runs_and_exempt_tools_are_called_again() {
    let twice = || [ToolOutcome::error("busy", "busy"), ToolOutcome::text("a"), ToolOutcome::text("b")];
    let guard = DuplicateGuard::new(Arc::new(inner(twice())), DuplicateOptions::default());
    assert_eq!(first_line(&guard, "run", "{}"), "failed busy / busy");
    assert_eq!(first_line(&guard, "run", "{}"), "success / a");
    assert_eq!(first_line(&guard, "other", "{}"), "success / b");
    let mut options = DuplicateOptions::default();
    options.exempt = vec!["look".into()];
    let tools = inner(["a", "a", "a", "a"].map(ToolOutcome::text));
    let guard = DuplicateGuard::new(Arc::new(tools.clone()), options);
    for _ in 0..4 {
        assert_eq!(first_line(&guard, "run", "{}"), "success / a");
    }
    assert_eq!(tools.executions().len(), 4);
}

#[test]
fn a_host_may_say_what_to_do_instead() {
    let guard = DuplicateGuard::new(Arc::new(inner([ToolOutcome::text("a")])), DuplicateOptions::default())
        .with_alternatives(|call| format!("do not {}", call.name));
    ask_in("run", &guard, "look", "{}");
    let told = told(&ask_in("run", &guard, "look", "{}"));
    assert!(told.ends_with("If it is not enough, do not look."), "{told}");
}
