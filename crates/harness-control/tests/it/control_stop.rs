//! When a controlled run ends, and what its end says.

use harness_control::{ControlEvent, ControlSpec, FeedbackKind, SignalSpec, StallSpec, StopCode, WorkSpec};
use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
use harness_core::port::{ModelFault, ModelFaultCode};
use harness_core::testing::ModelStep;
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::{Evidence, Fault, Json, Outcome};

use crate::controlled::{Scene, calls, done, impatient, says};

/// The decisions and the end of a run.
#[track_caller]
fn decides(scene: Scene, decisions: &str, ended: &str) {
    let played = scene.play();
    assert_eq!(played.decisions().join(" "), decisions);
    assert_eq!(played.ended(), ended);
    let report = &played.report();
    assert_eq!(played.decisions().len(), played.end.turns as usize, "one decision for each turn");
    assert_eq!(played.decisions().last().map(String::as_str), Some(report.decision.code.as_str()));
    assert_eq!(played.unused, 0);
}

fn working(text: &str) -> [harness_core::message::AssistantMessage; 2] {
    [calls(&[("look", "{}")]), says(text)]
}

#[test]
fn the_signal_ends_the_turn_and_the_run_without_another_request() {
    let [call, text] = working("It is 14.");
    let scene = Scene::new(impatient(), [call, text, done()]).with_tool("look", [ToolOutcome::text("14")]);
    let played = scene.play();
    assert_eq!(played.decisions(), ["agent_working", "agent_done"]);
    assert_eq!(played.ended(), "answer_finalized done signal:accepted");
    assert_eq!(played.requests.len(), 3);
    assert_eq!(played.end.answer.as_deref(), Some("It is 14."), "the signal is no answer");
    let report = &played.report();
    assert_eq!(report.completion.as_ref().map(|report| report.summary.as_str()), Some("finished"));
}

#[test]
fn other_calls_beside_the_signal_still_run() {
    let both = calls(&[("look", "{}"), ("work_complete", r#"{"summary":"s"}"#)]);
    let played = Scene::new(impatient(), [both]).with_tool("look", [ToolOutcome::text("seen")]).play();
    assert_eq!(played.decisions(), ["agent_done"]);
    assert!(
        played.events.lines().contains(&"tool_finished #look-0".to_owned()),
        "{:?}",
        played.events.lines()
    );
}

#[test]
fn a_signal_that_its_tool_refused_is_none() {
    let control = ControlSpec::default().with_signal(named("finish", SignalSpec::default().patience(0, 0)));
    let mut finish = ToolDef::new("finish", "ends the work");
    finish.terminal = true;
    let scene = Scene::new(control, [calls(&[("finish", "{}")]), says("a")])
        .with_def(finish, [ToolOutcome::error("no", "not yet")]);
    decides(scene, "agent_done", "completion_waived done signal:waived");
}

fn named(tool: &str, mut signal: SignalSpec) -> SignalSpec {
    signal.tool = tool.into();
    signal
}

#[test]
fn an_interactive_run_waives_a_missing_signal_and_says_so() {
    let played = Scene::new(impatient(), [says("a"), says("b")]).play();
    assert_eq!(played.decisions(), ["work_complete_not_called", "agent_done"]);
    assert_eq!(played.ended(), "completion_waived done signal:waived");
    assert_eq!(played.end.waived[0].gate, "signal");
    assert_eq!(played.report().decision.retries, Some(2));
}

#[test]
fn strict_automation_never_accepts_a_missing_signal() {
    let scene = Scene::new(impatient(), (0..4).map(|n| says(&format!("answer {n}")))).strict().turns(4);
    decides(
        scene,
        "work_complete_not_called work_complete_required_strict work_complete_required_strict max_turns",
        "max_turns_reached exhausted signal:refused",
    );
}

#[test]
fn a_limit_names_the_first_gate_that_is_not_satisfied() {
    let played =
        Scene::new(impatient(), working("x")).with_tool("look", [ToolOutcome::text("1")]).turns(1).play();
    assert_eq!(played.decisions(), ["max_turns"]);
    let report = &played.report();
    assert_eq!(report.decision.first_unmet.map(FeedbackKind::as_str), Some("work_complete_missing"));
    assert_eq!(played.end.outcome().as_str(), "deferred", "a limit is never completion");
}

#[test]
fn work_that_is_done_in_the_last_turn_is_done() {
    decides(
        Scene::new(impatient(), [done()]).turns(1),
        "agent_done",
        "answer_finalized done signal:accepted",
    );
}

#[test]
fn turns_without_calls_are_prompted_before_they_count_as_an_end() {
    let control = ControlSpec::default().with_signal(SignalSpec::default().patience(2, 0));
    let [call, text] = working("w");
    let scene = Scene::new(control, [says("a"), says("b"), call, text, says("c"), says("d"), says("e")]);
    decides(
        scene.with_tool("look", [ToolOutcome::text("1")]),
        "continuation_prompt continuation_prompt agent_working continuation_prompt continuation_prompt agent_done",
        "completion_waived done signal:waived",
    );
}

#[test]
fn a_shared_budget_that_is_used_up_ends_the_run() {
    let refused = ModelFault::new(ModelFaultCode::BudgetReached, "the budget `users` is used up");
    let replies = [ModelStep::from(says("a")), ModelStep::from(refused)];
    let control = ControlSpec::default().with_signal(SignalSpec::default().patience(2, 0));
    let scene = Scene::new(control.with_stall(StallSpec::after(2)), replies);
    let played = scene.play();
    assert_eq!(played.decisions(), ["continuation_prompt", "budget"]);
    assert_eq!(played.end.outcome(), Outcome::Deferred);
    let said = if let Evidence::Fault(fault) = &played.end.stop.evidence { &*fault.message } else { "" };
    assert_eq!(said, "the budget `users` is used up");
}

#[test]
fn work_resets_the_count_of_ends_without_the_signal() {
    let turn = |text: &str| [says(text)].into_iter().chain(working("w"));
    let replies = turn("a").chain(turn("b")).chain([says("c"), says("d")]);
    decides(
        Scene::new(impatient(), replies).with_tool("look", [ToolOutcome::text("1")]),
        "work_complete_not_called agent_working work_complete_not_called agent_working work_complete_not_called \
         agent_done",
        "completion_waived done signal:waived",
    );
}

#[test]
fn a_run_that_changes_nothing_stalls_at_exactly_the_threshold() {
    let control = ControlSpec::default()
        .with_signal(SignalSpec::default().patience(50, 3))
        .with_stall(StallSpec::after(3));
    decides(
        Scene::new(control, [says("working"), says("working"), says("working")]),
        "continuation_prompt continuation_prompt stalled",
        "stalled stalled signal:refused",
    );
}

#[test]
fn a_failing_call_that_is_made_again_and_again_stalls() {
    let control = impatient().with_stall(StallSpec::after(2).nudging());
    let turn = || [calls(&[("look", "{}")]), says("trying")];
    let scene = Scene::new(control, turn().into_iter().chain(turn()).chain(turn()));
    let played = scene.with_tool("look", [ToolOutcome::error("down", "no connection")]).play();
    assert_eq!(played.decisions(), ["agent_working", "stall_nudged", "stalled"]);
    assert_eq!(played.told("made no progress").last(), Some(&1), "told once before the stop");
}

#[test]
fn a_new_result_is_progress() {
    let control = impatient().with_stall(StallSpec::after(2));
    let turn = || [calls(&[("look", "{}")]), says("looking")];
    let scene = Scene::new(control, turn().into_iter().chain(turn()).chain(turn()).chain([done()]));
    let results = ["1", "2", "3"].map(ToolOutcome::text);
    let played = scene.with_tool("look", results).play();
    assert_eq!(played.decisions(), ["agent_working", "agent_working", "agent_working", "agent_done"]);
}

/// Refuses as often as it is told to.
struct Refuses(std::sync::atomic::AtomicU32);

impl Check for Refuses {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let left = self.0.load(std::sync::atomic::Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
        if left == 0 {
            return Ok(CheckVerdict::Accept.into());
        }
        Ok(CheckVerdict::Continue { guidance: "the tests were not run".into() }.into())
    }
}

#[test]
fn a_check_of_the_application_is_enforced_and_its_reason_told() {
    let replies = (0..6).map(|_| done());
    let played = Scene::new(impatient(), replies)
        .with_check(check::new("tests", Points::END, Refuses(5.into())))
        .play();
    assert_eq!(played.decisions().join(" "), "agent_stop_hook_blocked ".repeat(5) + "agent_done");
    assert_eq!(played.ended(), "answer_finalized done signal:accepted tests:accepted");
    assert_eq!(played.told("the tests were not run"), [0, 1, 2, 3, 4, 5], "each refusal once, and it stays");
}

/// What a work tool gives for these items, each as (id, status, artifact role, artifact).
fn ledger(items: &[(&str, &str, &str, &str)]) -> ToolOutcome {
    let items: Vec<_> = items
        .iter()
        .map(|(id, status, role, artifact)| {
            serde_json::json!({"id": id, "title": format!("item {id}"), "status": status, "artifact_role": role,
                "artifact": artifact})
        })
        .collect();
    let count = items.len();
    let mut outcome = ToolOutcome::text("done");
    let told = serde_json::json!({"ledger": {"items": items, "before": 0, "added": count, "changes": count}});
    outcome.structured = Json::of(&told).ok();
    outcome
}

fn with_items() -> ControlSpec {
    impatient().with_work(WorkSpec::default())
}

#[test]
fn open_work_items_keep_a_run_going_and_deliverables_are_handed_over() {
    let replies = [calls(&[("work_item_add", "{}")]), done(), calls(&[("work_item_update", "{}")]), done()];
    let played = Scene::new(with_items(), replies)
        .with_tool("work_item_add", [ledger(&[("1", "pending", "deliverable", "")])])
        .with_tool("work_item_update", [ledger(&[("1", "done", "deliverable", "the report")])])
        .play();
    assert_eq!(played.decisions(), ["work_items_incomplete", "agent_done"]);
    assert_eq!(
        played.ended(),
        "answer_finalized done signal:accepted control_invariant:accepted work_items:accepted"
    );
    let report = &played.report();
    assert_eq!(report.deliverables[0].content, "the report");
    assert_eq!(
        report.items.as_ref().map(|items| (items.total, items.done, items.open.len())),
        Some((1, 1, 0))
    );
    let changed = ControlEvent::WorkItemsChanged { changed: vec!["1".to_owned()], closed: 1, total: 1 };
    assert!(played.control_events().contains(&changed));
}

#[test]
fn a_failed_audit_that_nothing_answers_keeps_a_run_from_its_end() {
    let failed =
        r#"{"verdict":"fail","checks":[{"name":"sum","result":"fail","detail":""}],"summary":"off"}"#;
    let audit = ledger(&[("1", "done", "control", failed)]);
    let scene = Scene::new(with_items(), [calls(&[("work_item_set_artifact", "{}")]), done(), done()]);
    let played = scene.with_tool("work_item_set_artifact", [audit]).turns(2).play();
    assert_eq!(played.decisions(), ["control_invariant_violation", "max_turns"]);
    assert_eq!(
        played.ended(),
        "max_turns_reached exhausted signal:accepted control_invariant:refused work_items:not_asked"
    );
    assert_eq!(played.told("- sum").last(), Some(&1));
}

#[test]
fn limits_of_a_turn_are_not_limits_of_the_run() {
    let mut scene = Scene::new(impatient(), working("x").into_iter().chain([done()]));
    scene.spec.turn.limits.iterations = 1;
    let played = scene.with_tool("look", [ToolOutcome::text("1")]).play();
    assert_eq!(played.report().decision.code, StopCode::AgentDone);
}

#[test]
fn the_budget_of_the_run_ends_it() {
    let mut scene = Scene::new(impatient(), [says("a"), says("b")]);
    scene.spec.limits.amount.iterations = 1;
    let played = scene.play();
    assert_eq!(played.decisions(), ["budget"]);
    assert_eq!(played.ended(), "max_iterations_reached exhausted signal:refused");
    assert_eq!(played.unused, 1);
}
