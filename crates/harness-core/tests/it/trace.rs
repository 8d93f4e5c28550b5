//! The flat trace and turn result, as folds of events.

use std::sync::Arc;

use harness_core::event::{Fold as _, TraceFold, turn_result};
use harness_core::machine::{Machine, Op, Origin, Reply, Start};
use harness_core::message::{AssistantMessage, Cost, Message, ToolCall, Usage};
use harness_core::port::{Offer, ToolDef, ToolOutcome};
use harness_core::testing::{Answer, Outside, Ran, ScriptedDriver};
use harness_core::transcript::Transcript;
use harness_core::turn::{TurnSpec, TurnState};
use harness_core::{Json, Millis, OpId, Time};

use crate::bare::strict;

const BEGIN: Time = Time(1_767_225_600_000);

/// One request for two calls, of which the second is one too many.
struct Harbor;

impl Outside for Harbor {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        let reply = match op {
            Op::Prepare { .. } => {
                Reply::Prepared(Ok(Arc::new(Offer::new("main", "", [ToolDef::new("tide", "")]))))
            }
            Op::Model { .. } => {
                let call = |id: &str, at: &str| ToolCall::new(id, "tide", Json::parse(at).expect("JSON"));
                let mut message = AssistantMessage::calls([call("c1", r#"{"berth":4}"#), call("c2", "{}")]);
                message.usage = Some(Arc::new(Usage::tokens(10, 5).with_cost(Cost(2_500_000))));
                Reply::Model(Ok(Arc::new(message.into())))
            }
            _ => Reply::Tool(Ok(Box::new(ToolOutcome::text("low")))),
        };
        Answer::After(Millis(40), reply)
    }
}

fn origin() -> Origin {
    let mut origin = Origin::default();
    origin.assistant = Some("harbor".into());
    origin.turn = Some("t-1".into());
    origin.session = Some("s-1".into());
    origin.thread = Some("th-1".into());
    origin.metadata = Some(Json::parse(r#"{"k":1.10}"#).expect("JSON"));
    origin
}

fn spec() -> TurnSpec {
    let mut spec = strict();
    spec.limits.tool_calls = 1;
    spec
}

fn run() -> ScriptedDriver<TurnState, Harbor> {
    let machine = Machine::new(Arc::new(spec()), origin(), Transcript::default());
    let mut driver = ScriptedDriver::new(machine, Harbor, BEGIN);
    let ran = driver.run(Start::prompt(Message::user("Status?")));
    assert!(matches!(ran, Ran::Ended(_)));
    driver
}

#[test]
fn trace_has_flat_events_and_no_call_that_never_ran() {
    let mut trace = TraceFold::default();
    run().events().iter().for_each(|event| trace.apply(event));
    let lines: Vec<_> = trace.events().map(|event| Json::of(event).expect("JSON").to_string()).collect();
    let common = r#""assistantId":"harbor","turnId":"t-1","sessionId":"s-1","#;
    let lines: Vec<_> =
        lines.iter().map(|l| l.replace(common, "").replace(r#","metadata":{"k":1.10}"#, "")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"type":"turn_started","timestamp":"2026-01-01T00:00:00.040Z","iteration":0,"toolCallCount":0,"elapsedMs":0}
    {"type":"model_step_started","timestamp":"2026-01-01T00:00:00.040Z","iteration":1,"toolCallCount":0,"elapsedMs":0}
    {"type":"model_step_finished","timestamp":"2026-01-01T00:00:00.080Z","iteration":1,"toolCallCount":0,"elapsedMs":40,"outputType":"tool_request","usage":{"inputTokens":10,"outputTokens":5,"costUnits":0.0025}}
    {"type":"tool_requested","timestamp":"2026-01-01T00:00:00.080Z","iteration":1,"toolCallCount":0,"elapsedMs":40,"calls":[{"id":"c1","name":"tide","input":{"berth":4}},{"id":"c2","name":"tide","input":{}}]}
    {"type":"tool_started","timestamp":"2026-01-01T00:00:00.080Z","iteration":1,"toolCallCount":1,"elapsedMs":40,"call":{"id":"c1","name":"tide","input":{"berth":4}}}
    {"type":"tool_finished","timestamp":"2026-01-01T00:00:00.120Z","iteration":1,"toolCallCount":1,"elapsedMs":80,"result":{"callId":"c1","toolName":"tide","status":"success","output":"low"}}
    {"type":"limit_reached","timestamp":"2026-01-01T00:00:00.120Z","iteration":1,"toolCallCount":1,"elapsedMs":80,"stopReason":"max_tool_calls_reached"}
    {"type":"turn_finished","timestamp":"2026-01-01T00:00:00.120Z","iteration":1,"toolCallCount":1,"elapsedMs":80,"outcome":"deferred","stopReason":"max_tool_calls_reached"}
    "#);
}

#[test]
fn turn_result_is_made_from_the_end() {
    let driver = run();
    let end = driver.machine().end().expect("an end");
    insta::assert_snapshot!(turn_result(end, &origin()), @r#"{"outcome":"deferred","stopReason":"max_tool_calls_reached","turnId":"t-1","sessionId":"s-1","continuation":{"id":"t-1:deferred","type":"deferred","createdAt":"2026-01-01T00:00:00.120Z","turnId":"t-1","sessionId":"s-1","resumeToken":"t-1:deferred:2026-01-01T00:00:00.120Z","state":{"stopReason":"max_tool_calls_reached","iteration":1,"toolCallCount":1},"metadata":{"assistantId":"harbor","threadId":"th-1"}},"traceSummary":{"iterationCount":1,"toolCallCount":1,"hadContinuation":true,"finalEventType":"turn_finished"},"usage":{"modelCalls":1,"toolCalls":1,"totalInputTokens":10,"totalOutputTokens":5,"totalCostUnits":0.0025}}"#);
}

#[test]
fn only_the_last_events_are_kept() {
    let mut trace = TraceFold::keeping(2);
    run().events().iter().for_each(|event| trace.apply(event));
    let kinds: Vec<_> = trace.events().map(|event| event.kind).collect();
    assert_eq!(kinds, ["limit_reached", "turn_finished"]);
    assert_eq!(trace.dropped(), 6);
}
