//! Loops: when they stop, what a failure does, what the next round gets.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::message::Cost;
use harness_core::{Json, Millis};
use harness_flow::channel::ChannelSpec;
use harness_flow::{ExecutionSpec, Flow, Loop, OnLoopError, Step, StepCx, Until, Verdict};
use parking_lot::Mutex;

use crate::stage::{Stage, text};

/// Gives these in order (`!x` fails with x) and notes its inputs.
fn script(outputs: &[&str]) -> (Step, Arc<Mutex<Vec<String>>>) {
    let outputs: VecDeque<String> = outputs.iter().map(|output| (*output).to_owned()).collect();
    let (outputs, inputs) = (Mutex::new(outputs), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&inputs);
    let step = Step::run("body", move |input: String, _| {
        noted.lock().push(input);
        let next = outputs.lock().pop_front().expect("one more output");
        async move { next.strip_prefix('!').map_or(Ok(next.clone()), |problem| Err(problem.to_owned())) }
    });
    (step, inputs)
}

#[track_caller]
fn check(outputs: &[&str], until: Until, make: impl FnOnce(Loop) -> Loop, expected: &str, inputs: &[&str]) {
    let (body, seen) = script(outputs);
    let told = Stage::new().run(make(Loop::new("loop", [body], until)), text("in"));
    assert_eq!((&*told, seen.lock().as_slice()), (expected, own(inputs).as_slice()));
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn plain(given: Loop) -> Loop {
    given
}

#[test]
fn predicates_are_asked_after_each_round() {
    check(&["a", "b"], Until::max_steps(2), plain, r#""b""#, &["in", "a"]);
    check(&["a", "b", "b"], Until::converged(), plain, r#""b""#, &["in", "a", "b"]);
    check(&["a", "an END"], Until::output_contains("END"), plain, r#""an END""#, &["in", "a"]);
    check(&["END!", "END"], Until::output_equals("END"), plain, r#""END""#, &["in", "END!"]);
    check(&["a"], Until::no_tool_calls(), plain, r#""a""#, &["in"]);
    check(&["a"], Until::max_cost(Cost(0)), plain, r#""a""#, &["in"]);
    let both = || [Until::max_steps(2), Until::output_contains("b")];
    check(&["b"], Until::any(both()), plain, r#""b""#, &["in"]);
    check(&["b", "a", "b"], Until::all(both()), plain, r#""b""#, &["in", "b", "a"]);
}

#[test]
fn the_bound_of_rounds_counts_every_attempt() {
    let bound = "loop `loop` reached its limit of 2 rounds";
    check(&["a", "b"], Until::never(), |l| l.max_iterations(2), bound, &["in", "a"]);
    let retry = |l: Loop| l.max_iterations(2).on_error(OnLoopError::Retry);
    check(&["!x", "a"], Until::max_steps(2), retry, bound, &["in", "in"]);
}

#[test]
fn a_failure_ends_repeats_or_skips() {
    check(&["a", "!x"], Until::never(), plain, "step `body` failed: x", &["in", "a"]);
    let retry = |l: Loop| l.on_error(OnLoopError::Retry);
    check(&["a", "!x", "b"], Until::max_steps(2), retry, r#""b""#, &["in", "a", "a"]);
    let skip = |l: Loop| l.on_error(OnLoopError::Skip);
    check(&["!x", "a", "!y", "b"], Until::max_steps(2), skip, r#""b""#, &["in", "in", "a", "a"]);
}

#[test]
fn the_next_input_is_made_from_output_and_verdict() {
    let until = Until::any([
        Until::max_steps(2),
        Until::custom(
            |snapshot| async move { Ok(Verdict::feedback(format!("after {}", snapshot.step_count))) },
        ),
    ]);
    let prepare = |l: Loop| {
        l.prepare(|output, verdict, _| {
            Json::string(&format!("{output} {}", verdict.feedback.as_deref().unwrap_or("-")))
        })
    };
    check(&["a", "b"], until, prepare, r#""b""#, &["in", "\"a\" -"]);
}

#[track_caller]
fn check_verdict(until: &Until, expected: &str) {
    let told = Arc::new(Mutex::new(String::new()));
    let (until, noted) = (until.clone(), Arc::clone(&told));
    let judge = Until::custom(move |snapshot| {
        let (until, noted) = (until.clone(), Arc::clone(&noted));
        async move {
            let verdict = until.judge(&snapshot).await;
            *noted.lock() = verdict.reason.or(verdict.feedback).unwrap_or_default();
            Ok(Verdict::stop("seen"))
        }
    });
    check(&["a"], judge, plain, r#""a""#, &["in"]);
    assert_eq!(*told.lock(), expected);
}

#[test]
fn verdicts_say_why() {
    check_verdict(&Until::max_steps(1), "Reached max steps (1)");
    check_verdict(&Until::max_cost(Cost(0)), "Reached max cost ($0)");
    check_verdict(&Until::max_duration(Millis(0)), "Reached max duration (0ms)");
    check_verdict(&Until::verified(|_| async { Ok(Ok(())) }), "Verification passed");
    check_verdict(&Until::verified(|_| async { Ok(Err("more".to_owned())) }), "more");
    check_verdict(&Until::custom(|_| async { Err("broken".to_owned()) }), "Predicate error: broken");
    check_verdict(
        &Until::all([Until::max_steps(1), Until::output_equals("a")]),
        "Reached max steps (1); Output matched sentinel: a",
    );
    check_verdict(&Until::all([]), "All predicates satisfied");
    check_verdict(&Until::any([]), "");
}

#[test]
fn a_loop_looks_into_its_inbox_before_it_stops() {
    let stage = Stage::new();
    let execution = stage.runner().start(ExecutionSpec::new("x"));
    let inbox = ChannelSpec::queue("inbox", 3).external();
    execution.external(&inbox).and_then(|channel| channel.send(text("one more"))).expect("it is open");
    let count = Step::run("count", |n: u64, _: StepCx| async move { Ok::<_, String>(n + 1) });
    let flow =
        Flow::new(Loop::new("l", [count], Until::max_steps(1)).inbox(inbox, Millis(5))).expect("a flow");
    let output = stage.drive(execution.run(&flow, Json::of(&0).expect("JSON"))).expect("an output");
    assert_eq!((output.text(), stage.now()), ("2", 5));
    let texts: Vec<_> = execution.cx().messages().iter().map(|message| message.joined_text()).collect();
    assert_eq!(texts, ["one more"]);
}
