//! Running a recorded run again.

use harness_core::testing::ScriptedModel;
use harness_record::{
    CompareOptions, InputMode, InputSource, RecordedModel, ReplayInput, ReplayMode, ReplayTools,
    compare_records,
};

use super::*;

/// Runs again what was recorded, with these live outcomes; gives what came of it and the tools.
fn replay(
    record: &RunRecord,
    mode: ReplayMode,
    steps: Option<Vec<ModelStep>>,
    live: Vec<ToolOutcome>,
) -> (RunRecord, ReplayTools) {
    let mut scene = Scene::new([], live);
    scene.model = match steps {
        Some(steps) => Arc::new(ScriptedModel::new(steps)),
        None => Arc::new(RecordedModel::new(record)),
    };
    let tools = ReplayTools::new(Arc::clone(&scene.tools), record, mode);
    scene.tools = Arc::new(tools.clone());
    let input = ReplayInput::of(record, InputMode::Recorded);
    (scene.history, scene.prompt) = (input.history, input.prompt.map(|prompt| Message::clone(&prompt)));
    scene.spec.turn.on_tool_failure = harness_core::turn::OnToolFailure::EndOnFault;
    (scene.run().record, tools)
}

#[track_caller]
fn check_stats(tools: &ReplayTools, recorded: u64, replayed: u64, missing: u64, live: u64) {
    let stats = tools.stats();
    let counted = (
        stats.recorded_tool_calls,
        stats.replayed_from_record,
        stats.missing_tool_calls,
        stats.live_fallback_calls,
    );
    assert_eq!(counted, (recorded, replayed, missing, live));
}

#[test]
fn a_strict_replay_needs_no_network_and_gives_the_same_run() {
    let record = usual().run().record;
    let (again, tools) = replay(&record, ReplayMode::Strict, None, Vec::new());
    let compared = compare_records(&record, &again, &CompareOptions::default());
    assert!(compared.equal, "{}", compared.text());
    check_stats(&tools, 2, 2, 0, 0);
    assert_eq!(tools.unused(), 0);
    let details = |record: &RunRecord| {
        let of = |call: &harness_record::ToolCallEntry| (call.status.clone(), call.error_code.clone());
        record.tool_calls.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(details(&again), details(&record), "failures are replayed as failures");
}

/// The recorded question, and then other calls than the recorded ones.
fn other_calls() -> Vec<ModelStep> {
    vec![asks([call("x", "look", r#"{"order":9}"#)]), says("Done.")]
}

#[test]
fn a_strict_replay_does_not_execute_what_was_not_recorded() {
    let record = usual().run().record;
    let (again, tools) =
        replay(&record, ReplayMode::Strict, Some(other_calls()), vec![ToolOutcome::text("live")]);
    assert_eq!(again.stop_reason.as_str(), "runtime_error");
    assert_eq!(again.error_name.as_deref(), Some("replay_missing_call"));
    check_stats(&tools, 2, 0, 1, 0);
}

#[test]
fn a_hybrid_replay_executes_what_was_not_recorded() {
    let record = usual().run().record;
    let (again, tools) =
        replay(&record, ReplayMode::Hybrid, Some(other_calls()), vec![ToolOutcome::text("live")]);
    assert_eq!(again.response.as_deref(), Some("Done."));
    check_stats(&tools, 2, 0, 1, 1);
}

#[test]
fn a_live_replay_takes_nothing_from_the_record() {
    let record = usual().run().record;
    let live = vec![ToolOutcome::text("a"), ToolOutcome::text("b")];
    let (again, tools) = replay(&record, ReplayMode::Live, None, live);
    assert_eq!(again.response.as_deref(), Some("It is on its way."));
    check_stats(&tools, 2, 0, 0, 0);
}

#[test]
fn equal_calls_are_answered_first_in_first_out() {
    let look = || call("c", "look", r#"{"a":1,"b":2}"#);
    let steps = || [asks([look()]), asks([look()]), says("Done.")];
    let record = Scene::new(steps(), [ToolOutcome::text("first"), ToolOutcome::text("second")]).run().record;
    let swapped = || call("c", "look", r#"{"b":2.0,"a":1}"#);
    let steps = vec![asks([swapped()]), asks([swapped()]), says("Done.")];
    let (again, tools) = replay(&record, ReplayMode::Strict, Some(steps), Vec::new());
    let outputs: Vec<_> = again
        .items
        .iter()
        .filter(|item| item.role() == "toolResult")
        .map(|item| item.joined_text())
        .collect();
    assert_eq!(outputs, ["first", "second"]);
    check_stats(&tools, 2, 2, 0, 0);
}

#[test]
fn denied_calls_are_not_replayed() {
    let mut scene = Scene::new([asks([call("c1", "drop", "{}")]), says("Done.")], []);
    scene.policy = true;
    let record = scene.run().record;
    let (again, tools) = replay(&record, ReplayMode::Strict, None, Vec::new());
    assert_eq!(again.error_name.as_deref(), Some("replay_missing_call"), "this time no policy denies it");
    check_stats(&tools, 0, 0, 1, 0);
}

#[test]
fn a_recorded_fault_of_the_model_is_a_fault_again() {
    use harness_core::port::{ModelFault, ModelFaultCode};
    let fault = ModelFault::new(ModelFaultCode::RateLimited, "too many requests");
    let record =
        Scene::new([asks([call("c1", "look", "{}")]), ModelStep::fault(fault)], [ToolOutcome::text("4")])
            .run()
            .record;
    let (again, _) = replay(&record, ReplayMode::Strict, None, Vec::new());
    assert_eq!(again.error_name, record.error_name);
    assert_eq!(again.error_message, record.error_message);
}

#[test]
fn a_run_that_wants_more_answers_than_there_are_is_told() {
    let mut record = usual().run().record;
    record.model_calls.truncate(1);
    let (again, _) = replay(&record, ReplayMode::Strict, None, Vec::new());
    assert_eq!(again.error_name.as_deref(), Some("recording"));
}

#[test]
fn the_input_is_the_recorded_messages_or_the_question() {
    let mut scene = Scene::new([says("Yes.")], []);
    scene.history = vec![Arc::new(Message::user("Hello")), Arc::new(AssistantMessage::text("Hi.").into())];
    let mut record = scene.run().record;
    let input = ReplayInput::of(&record, InputMode::Recorded);
    assert_eq!((input.history.len(), input.source), (2, InputSource::InputItemCount));
    assert_eq!(input.prompt.unwrap().joined_text(), "Where is order 7?");
    let input = ReplayInput::of(&record, InputMode::Question);
    assert_eq!((input.history.len(), input.source), (0, InputSource::Question));
    record.items.clear();
    let input = ReplayInput::of(&record, InputMode::Recorded);
    assert_eq!(input.source, InputSource::QuestionFallback);
    assert_eq!(input.prompt.unwrap().joined_text(), "Where is order 7?");
}
