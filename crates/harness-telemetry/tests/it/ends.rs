//! However a run ends: its spans stand below each other as its work did, and all of them are closed.

use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_core::driver::{Ports, drive};
use harness_core::event::Hub;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{DeltaPart, ModelFault, ModelFaultCode};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, Json, Origin, ParentCall, Time};
use harness_telemetry::{SpanOptions, Spans};
use parking_lot::Mutex;

use crate::tree::Tree;
use crate::world::{answered, block_on, origin, ports, run, two_tools};

/// Runs with spans, and shows them with some fields.
fn watched(mut ports: Ports, cancel: &Cancel, fields: &[&str]) -> String {
    let tree = Tree::default();
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tree.watch(|| block_on(run(&ports, cancel)));
    tree.show(fields)
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, Json::empty_object())
}

fn calling(id: &str, name: &str) -> ModelStep {
    ModelStep::answer(AssistantMessage::calls([call(id, name)]))
}

#[test]
fn a_run_its_turn_its_model_calls_and_two_tools_side_by_side() {
    let shown = watched(
        two_tools(),
        &Cancel::never(),
        &[
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.agent.name",
            "gen_ai.tool.name",
            "gen_ai.tool.call.id",
            "gen_ai.conversation.id",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.response.id",
            "gen_ai.response.finish_reasons",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "harness.cost",
            "harness.outcome",
            "harness.stop_reason",
            "harness.iterations",
            "harness.tool_calls",
            "harness.tool.status",
        ],
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent main name=invoke_agent id=t1 name=main outcome=completed stop_reason=answer_finalized iterations=2 input_tokens=230 output_tokens=12 tool_calls=2 cost=0.5
      turn 1 name=main outcome=completed stop_reason=answer_finalized iterations=2 input_tokens=230 output_tokens=12 tool_calls=2 cost=0.5
        chat vendor/model name=chat name=main model=vendor/model name=openrouter model=vendor/model-1 id=gen-1 finish_reasons=toolUse input_tokens=110 output_tokens=5 cost=0.25
        execute_tool read name=execute_tool name=read id=c1 status=success
        execute_tool write !read_only name=execute_tool name=write id=c2 status=failed
        chat vendor/model name=chat name=main model=vendor/model name=openrouter model=vendor/model-1 id=gen-1 finish_reasons=stop input_tokens=120 output_tokens=7 cost=0.25
    ");
}

#[test]
fn a_model_that_fails_is_marked_and_what_it_used_is_told() {
    let mut partial = AssistantMessage::text("It");
    partial.usage = Some(Arc::new(harness_core::message::Usage::tokens(30, 2)));
    let fault = ModelFault::new(ModelFaultCode::Network, "the connection broke").with_partial(partial);
    let ports = ports([ModelStep::fault(fault)], ScriptedTools::default());
    let fields = ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "otel.status_description"];
    insta::assert_snapshot!(watched(ports, &Cancel::never(), &fields), @r"
    invoke_agent main !runtime_error input_tokens=30 output_tokens=2 status_description=the connection broke
      turn 1 !runtime_error input_tokens=30 output_tokens=2 status_description=the connection broke
        chat !network input_tokens=30 output_tokens=2 status_description=the connection broke
    ");
}

#[test]
fn a_model_that_hangs_is_cut_off_and_closed() {
    let hangs = ModelStep::hang().with_deltas([DeltaPart::Text("Half an ans".into())]);
    let shown = watched(ports([hangs], ScriptedTools::default()), &Cancel::never(), &["harness.stop_reason"]);
    insta::assert_snapshot!(shown, @r"
    invoke_agent main stop_reason=timeout_reached
      turn 1 stop_reason=timeout_reached [limit_reached: timeout_reached]
        chat !aborted
    ");
}

#[test]
fn a_tool_that_hangs_and_one_that_panics_are_closed_as_failed() {
    let two = AssistantMessage::calls([call("c1", "slow"), call("c2", "bad")]);
    let tools = ScriptedTools::new([ToolDef::new("slow", ""), ToolDef::new("bad", "")])
        .answering([ToolStep::hang().of("slow"), ToolStep::panic("boom").of("bad")]);
    let shown = watched(
        ports([ModelStep::answer(two)], tools),
        &Cancel::never(),
        &["harness.stop_reason", "harness.tool.status"],
    );
    insta::assert_snapshot!(shown, @r"
    invoke_agent main stop_reason=timeout_reached
      turn 1 stop_reason=timeout_reached [limit_reached: timeout_reached]
        chat
        execute_tool slow !interrupted status=timeout
        execute_tool bad !tool_panicked status=failed
    ");
}

#[test]
fn a_call_of_a_tool_that_is_not_there_has_a_span_too() {
    let ports = ports(
        [calling("c1", "nowhere"), ModelStep::answer(AssistantMessage::text("ok"))],
        ScriptedTools::default(),
    );
    insta::assert_snapshot!(watched(ports, &Cancel::never(), &["harness.tool.ran", "harness.outcome"]), @r"
    invoke_agent main outcome=completed
      turn 1 outcome=completed
        chat
        execute_tool nowhere !unknown_tool ran=false
        chat
    ");
}

#[test]
fn a_run_that_is_cancelled_before_it_begins() {
    let cancel = Cancel::new();
    cancel.cancel();
    let shown = watched(two_tools(), &cancel, &["otel.status_description"]);
    insta::assert_snapshot!(shown, @r"
    invoke_agent main !cancelled status_description=cancelled by caller
      turn 1 !cancelled status_description=cancelled by caller
    ");
}

#[test]
fn a_run_whose_future_is_dropped_leaves_nothing_open_although_its_hub_lives_on() {
    let tree = Tree::default();
    let tools = ScriptedTools::new([ToolDef::new("slow", "")]).answering([ToolStep::hang()]);
    let mut ports = ports([calling("c1", "slow")], tools);
    ports.clock = Arc::new(VirtualClock::still(Time(0)));
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tree.watch(|| {
        assert!(Box::pin(run(&ports, &Cancel::never())).now_or_never().is_none());
        insta::assert_snapshot!(tree.show(&[]), @r"
        invoke_agent main !abandoned
          turn 1 !abandoned
            chat
            execute_tool slow !abandoned
        ");
    });
}

#[test]
fn a_listener_that_goes_away_leaves_nothing_open() {
    let tree = Tree::default();
    let spans = Arc::new(Mutex::new(Spans::new(SpanOptions::new())));
    let log = harness_core::testing::EventLog::default();
    let mut ports = two_tools();
    ports.hub.fold(log.clone());
    block_on(run(&ports, &Cancel::never()));
    tree.watch(|| {
        let mut hub = Hub::default();
        hub.fold(Arc::clone(&spans));
        // Up to where the first call has begun.
        let events = log.events();
        let at = events.iter().position(|event| event.kind.name() == "tool_started").unwrap();
        hub.publish(&events[..=at]);
        drop((hub, spans));
    });
    insta::assert_snapshot!(tree.show(&[]), @r"
    invoke_agent main !abandoned
      turn 1 !abandoned
        chat vendor/model
        execute_tool read !abandoned
    ");
}

#[test]
fn a_turn_without_a_run_is_the_agent_itself() {
    let tree = Tree::default();
    let mut ports = ports([answered(AssistantMessage::text("done"), 1, 1)], ScriptedTools::default());
    ports.hub.fold(Spans::new(SpanOptions::new()));
    let spec = Arc::new(TurnSpec::default());
    let mut turn = Turn::new(spec, origin(), Transcript::default());
    let begin = Start::prompt(Message::user("go"));
    tree.watch(|| block_on(drive(&mut turn, &ports, &Cancel::never(), begin)));
    insta::assert_snapshot!(tree.show(&["harness.stop_reason"]), @r"
    invoke_agent main stop_reason=answer_finalized
      chat vendor/model
    ");
}

/// A tool that runs another agent.
struct Delegate(ToolDef, Spans);

impl Tool for Delegate {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let model = ScriptedModel::new([AssistantMessage::text("4")]);
        let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
        ports.hub.fold(self.1.clone());
        let parent = ParentCall::new(cx.call.id.clone(), cx.agent.clone(), &cx.origin);
        let mut origin: Origin = cx.origin.child(parent);
        origin.run = Some(format!("of {}", cx.call.id).into());
        let spec = Arc::new(RunSpec::default());
        let mut run = Run::new(spec, origin, Transcript::default());
        let begin = Start::prompt(Message::user("2 + 2?"));
        let end = Box::pin(drive(&mut run, &ports, &cx.cancel, begin)).await;
        ToolOutcome::text(end.answer.clone().unwrap_or_default())
    }
}

#[test]
fn sub_agents_stand_below_the_calls_that_began_them() {
    let spans = Spans::new(SpanOptions::new());
    let tree = Tree::default();
    let both = AssistantMessage::calls([call("c1", "task"), call("c2", "task")]);
    let mut ports = ports(
        [ModelStep::answer(both), ModelStep::answer(AssistantMessage::text("8"))],
        ScriptedTools::default(),
    );
    ports.tools = Arc::new(Toolbox::new([Arc::new(Delegate(ToolDef::new("task", ""), spans.clone())) as _]));
    ports.hub.fold(spans);
    tree.watch(|| block_on(run(&ports, &Cancel::never())));
    insta::assert_snapshot!(tree.show(&["gen_ai.conversation.id", "harness.run.id"]), @r"
    invoke_agent main id=t1 id=r1
      turn 1
        chat
        execute_tool task
          invoke_agent main id=t1 id=of c1
            turn 1
              chat
        execute_tool task
          invoke_agent main id=t1 id=of c2
            turn 1
              chat
        chat
    ");
}

#[test]
fn what_a_caller_has_entered_is_above_the_run() {
    let tree = Tree::default();
    let mut ports = ports([ModelStep::answer(AssistantMessage::text("ok"))], ScriptedTools::default());
    ports.hub.fold(Spans::new(SpanOptions::new()));
    tree.watch(|| {
        tracing::info_span!("request").in_scope(|| block_on(run(&ports, &Cancel::never())));
    });
    insta::assert_snapshot!(tree.show(&[]), @r"
    request
      invoke_agent main
        turn 1
          chat
    ");
}

#[test]
fn nobody_listens_and_nothing_happens() {
    let mut ports = two_tools();
    ports.hub.fold(Spans::new(SpanOptions::new()));
    let end = block_on(run(&ports, &Cancel::never()));
    assert_eq!(end.reason().as_str(), "answer_finalized");
}
