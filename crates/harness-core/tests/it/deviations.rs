//! Rules of turns that are listed in `docs/design/deviations.md`.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Cost, Message, ToolCall};
use harness_core::port::{CompactAsk, Compaction, Compactor};
use harness_core::testing::{EventLog, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::{Plan, Span, Transcript};
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Fault, Json, Origin, StopReason, Time};

use crate::script::check_turn_with;

use crate::bare::{bare, strict};

/// A model that calls `tide` once and then answers, and the tool `tide`.
fn tide() -> (ScriptedModel, ScriptedTools) {
    let model = ScriptedModel::new([
        AssistantMessage::calls([ToolCall::new("c1", "tide", Json::empty_object())]),
        AssistantMessage::text("Berth 4 is free."),
    ]);
    let tools = ScriptedTools::new([ToolDef::new("tide", "")]).answering([ToolOutcome::text("low")]);
    (model, tools)
}

async fn run(ports: &Ports, origin: Origin) -> (Arc<End>, Turn) {
    run_with(ports, origin, strict()).await
}

async fn run_with(ports: &Ports, origin: Origin, spec: TurnSpec) -> (Arc<End>, Turn) {
    let mut turn = Turn::new(Arc::new(spec), origin, Transcript::default());
    let end = drive(&mut turn, ports, &Cancel::never(), Start::prompt(Message::user("Status?"))).await;
    (end, turn)
}

fn ports(model: ScriptedModel, tools: ScriptedTools) -> Ports {
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::frozen(Time(0))));
    ports.tools = Arc::new(tools);
    ports
}

#[tokio::test]
async fn a_sink_that_fails_does_not_change_the_turn() {
    let (model, tools) = tide();
    let mut ports = ports(model, tools);
    let log = EventLog::default();
    ports.hub.fold(log.clone());
    let mut subscription = ports.hub.subscribe(1);
    let observer = tokio::spawn(async move {
        assert!(subscription.next().await.is_none(), "the sink failed");
    });
    let (end, _) = run(&ports, Origin::default()).await;
    drop(ports);
    assert!(observer.await.expect_err("it failed").is_panic());
    assert_eq!(end.reason(), StopReason::AnswerFinalized);
    assert_eq!(log.lines().last().map(String::as_str), Some("turn_finished answer_finalized"));
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_not_offered_whatever_the_registry_lists() {
    let (model, tools) = tide();
    let ports = ports(model.clone(), tools.clone().ignoring_allowed());
    let mut origin = Origin::default();
    origin.allowed_tools = Some(Arc::from(["crane".into()]));
    let (end, _) = run(&ports, origin).await;
    assert_eq!(end.reason(), StopReason::ToolUnavailable);
    assert!(tools.executions().is_empty());
    assert!(model.requests().iter().all(|request| request.tools().is_empty()));
}

#[tokio::test]
async fn a_result_answers_the_call_that_was_made() {
    let (model, tools) = tide();
    let (_, turn) = run(&ports(model, tools), Origin::default()).await;
    let result = turn.log().iter().find_map(|m| m.as_tool_result().cloned()).expect("a result");
    assert_eq!((result.tool_call_id.as_str(), result.tool_name.as_str()), ("c1", "tide"));
}

#[test]
fn a_tool_that_requires_approval_does_not_run_without_it() {
    check_turn_with(
        strict(),
        r#"
        tools: crane approval
        model: call crane {} #c1
        "#,
        r#"
        ...
        tool_requested #c1 crane
        approval_requested c1 "`crane` needs approval"
        turn_finished approval_required
        awaiting_approval: approval_required
        "#,
    );
}

#[test]
fn a_cost_below_nothing_is_refused() {
    assert!("-1".parse::<Cost>().is_err());
    assert!(Json::parse("-0.5").expect("JSON").to::<Cost>().is_err());
}

/// Shows a model the last message and nothing else.
struct LastOnly;

impl Compactor for LastOnly {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        Ok(Compaction::planned(Plan { spans: Arc::from([Span::Kept(ask.view.len() - 1..usize::MAX)]) }))
    }
}

#[tokio::test]
async fn a_view_never_splits_a_call_from_its_result() {
    let (model, tools) = tide();
    let mut ports = ports(model.clone(), tools);
    ports.compactor = Some(Arc::new(LastOnly));
    let log = EventLog::default();
    ports.hub.fold(log.clone());
    let (end, _) = run_with(&ports, Origin::default(), bare()).await;
    assert_eq!(end.reason(), StopReason::AnswerFinalized);
    let seen: Vec<_> = model.requests().iter().map(|request| request.view.len()).collect();
    assert_eq!(seen, [1, 3], "the prompt alone, then everything");
    assert!(log.lines().iter().any(|line| line.contains("plan_refused")), "{:?}", log.lines());
}
