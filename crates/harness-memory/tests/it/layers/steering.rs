//! What a turn makes of the layers' opinions.

use std::sync::Arc;

use harness_core::decide::{DecideCx, GateVerdict};
use harness_core::message::ToolCall;
use harness_core::port::{ContextPipeline as _, ProposedCall};
use harness_core::tool::ToolDef;
use harness_core::{Cancel, Json, Time};
use harness_memory::MemoryError;
use harness_memory::layer::{Decided, Decision, FnLayer, LayerDef, LayerSetup};

use super::{Stage, answer, cx, log, run, user};

fn opinion(decision: Result<Decision, MemoryError>) -> Stage {
    let say = move |decision: Result<Decision, MemoryError>| async move { decision.map(Decided::from) };
    let for_answers = decision.clone();
    let layer = FnLayer::new(LayerDef::new("steering", 90, []))
        .on_before_tool(move |_, _| say(decision.clone()))
        .on_after_model(move |_, _| say(for_answers.clone()));
    Stage::new(LayerSetup::new().with(layer))
}

#[track_caller]
fn check(decision: Result<Decision, MemoryError>, expected: GateVerdict) {
    let stage = opinion(decision);
    let log = log([user("go")]);
    let cx = cx(&log);
    let gate_cx = DecideCx::new(log.prefix(), Arc::clone(&cx.origin), Cancel::never(), Time(0));
    let call = Arc::new(ToolCall::new("c", "plan_updatePrd", Json::empty_object()));
    let ask = ProposedCall::new(call, ToolDef::new("plan_updatePrd", ""), "main".into(), 1);
    let gate = stage.layers.gate();
    let said = run(&stage.clock, gate.decide(&ask, &gate_cx, &stage.clock)).answer;
    assert_eq!(said, Ok(expected.into()));
}

fn denied(message: &str) -> GateVerdict {
    GateVerdict::Deny { message: message.to_owned() }
}

#[test]
fn a_call_that_a_layer_objects_to_does_not_run() {
    check(Ok(Decision::Allow), GateVerdict::Allow);
    check(Ok(Decision::deny("read only")), denied("Tool call denied: read only"));
    check(Ok(Decision::Deny { guidance: None }), denied("Tool call denied: steering rule violation"));
    check(Ok(Decision::guide("use grep")), denied("Tool call redirected: use grep"));
    check(Err(MemoryError::failed("offline")), GateVerdict::Allow);
    check(
        Err(MemoryError::config("MISSING_CALL_MODEL", "no model")),
        GateVerdict::Halt { message: "Tool call denied: no model".to_owned(), reason: "no model".to_owned() },
    );
}

#[test]
fn guidance_is_given_three_times_and_then_the_answer_is_taken() {
    let stage = opinion(Ok(Decision::Guide { guidance: None }));
    let log = log([user("go")]);
    let cx = cx(&log);
    let judged: Vec<bool> = (0..5)
        .map(|_| run(&stage.clock, stage.layers.after_model(&answer("a"), &cx)).unwrap().is_some())
        .collect();
    assert_eq!(judged, [true, true, true, false, true]);
    run(&stage.clock, stage.layers.recall(&cx)).unwrap();
    assert_eq!(stage.layers.usage("run").unwrap().exhausted_guides, 1, "the report says so");
}

#[test]
fn a_denied_answer_is_never_taken() {
    let stage = opinion(Ok(Decision::deny("no secrets")));
    let log = log([user("go")]);
    let cx = cx(&log);
    for _ in 0..10 {
        let judged = run(&stage.clock, stage.layers.after_model(&answer("a"), &cx)).unwrap();
        assert_eq!(judged, Some("no secrets".to_owned()));
    }
}

#[test]
fn a_layer_that_is_set_up_wrongly_is_not_passed_over() {
    let stage = opinion(Err(MemoryError::config("MISSING_CALL_MODEL", "no model")));
    let log = log([user("go")]);
    let fault = run(&stage.clock, stage.layers.after_model(&answer("a"), &cx(&log))).unwrap_err();
    assert_eq!((&*fault.code, &*fault.message), ("MISSING_CALL_MODEL", "no model"));
}
