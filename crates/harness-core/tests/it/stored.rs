//! Everything that is stored or journaled comes back from its JSON text as it was.
//!
//! Raw JSON text does not survive serde's buffers, and that fails only at run time: so every variant is
//! sent through text, out of random scenarios that use them all.

use std::collections::BTreeSet;

use harness_core::Json;
use harness_core::machine::{Effect, Input, Op, Reply};
use harness_core::outcome::Continuation;
use harness_core::testing::replay;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::world::case;

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let json = Json::of(value).expect("it has a JSON form");
    let back: T = json.to().unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(back, *value, "{json}");
    assert_eq!(Json::of(&back).expect("it has a JSON form"), json, "written again it differs");
}

/// The name of a variant: the only key of an externally tagged value, or the value itself.
fn variant(value: &impl Serialize) -> String {
    let text = Json::of(value).expect("it has a JSON form").text().to_owned();
    text.split('"').nth(1).expect("a name").to_owned()
}

#[test]
fn every_effect_operation_input_reply_and_event_survives_its_text() {
    let mut seen = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..1_500 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let driver = case.run();
        for (_, input) in driver.inputs() {
            check(input);
            seen.insert(format!("input {}", variant(input)));
            if let Input::Reply(_, reply) = input {
                seen.insert(format!("reply {}", variant(reply)));
            }
        }
        for effect in replay(&mut case.machine(), driver.inputs()) {
            check(&effect);
            seen.insert(describe(&effect));
            if let Effect::Perform(_, Op::Store { records }) = &effect {
                seen.extend(records.iter().map(|record| format!("record {}", variant(record))));
            }
        }
        if let Some(continuation) = driver.machine().end().and_then(|end| end.continuation.clone()) {
            check::<Continuation>(&continuation);
        }
    }
    let missing: Vec<_> = expected().filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "never seen, so never checked: {missing:?}");
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Event(event) => format!("event {}", event.kind.name()),
        Effect::Perform(_, op) => format!("op {}", variant(op)),
        Effect::AbortAll | Effect::Done(_) => format!("effect {}", variant(effect)),
    }
}

/// All variants that a turn produces.
#[expect(clippy::too_many_lines, reason = "one case after another")]
fn expected() -> impl Iterator<Item = String> {
    let lists: [(&str, &[&str]); 6] = [
        ("effect", &["abortAll", "done"]),
        ("record", &["messages", "callStarted", "callFinished", "turnEnd"]),
        (
            "op",
            &[
                "prepare",
                "append",
                "recall",
                "compact",
                "model",
                "afterModel",
                "arguments",
                "gate",
                "approve",
                "noteApproval",
                "tool",
                "drain",
                "check",
                "store",
            ],
        ),
        ("input", &["start", "reply", "wake", "cancel"]),
        (
            "reply",
            &[
                "prepared",
                "appended",
                "recalled",
                "compacted",
                "model",
                "afterModel",
                "arguments",
                "gate",
                "approval",
                "approvalNoted",
                "tool",
                "drained",
                "check",
                "stored",
                "interrupted",
            ],
        ),
        (
            "event",
            &[
                "turn_started",
                "message_appended",
                "model_step_started",
                "model_step_finished",
                "model_step_failed",
                "tool_requested",
                "decided",
                "approval_requested",
                "approval_decided",
                "tool_started",
                "tool_retried",
                "tool_finished",
                "tool_failed",
                "handed_off",
                "clarification_requested",
                "steering_injected",
                "view_planned",
                "part_failed",
                "limit_reached",
                "turn_finished",
            ],
        ),
    ];
    lists.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}")))
}

/// What a turn of these scenarios does not produce.
#[test]
fn the_rest_survives_its_text_too() {
    use harness_core::event::{Event, EventKind};
    let reply =
        r#"{"check":{"answer":{"Ok":{"verdict":{"ask":{"text":"Which?"}},"facts":{"n":1.10}}},"took":3}}"#;
    check::<Reply>(&Json::parse(reply).expect("JSON").to().expect("a reply"));
    let end = r#"{"stop":{"reason":"cancelled","evidence":{"cancelled":{"by":"me"}}},"iterations":1,"turns":1,"usage":{"modelCalls":1,"toolCalls":0},"elapsed":5}"#;
    let events = [
        r#""type":"run_started","descriptorHash":"sha256:0""#.to_owned(),
        r#""type":"call_repaired","call":{"type":"toolCall","id":"c","name":"t","arguments":{"n":1.10}},"how":"rerun""#
            .to_owned(),
        r#""type":"persist_failed","message":"full""#.to_owned(),
        r#""type":"agent_prepared","offer":{"agent":"a","instructions":"Be brief.","tools":[],"model":"m","settings":{"n":1.10}}"#
            .to_owned(),
        r#""type":"view_planned","by":"layers","messages":2,"spans":1,"plan":{"spans":[{"kept":{"start":0,"end":2}}]}"#
            .to_owned(),
        r#""type":"decided","by":"g","point":"result","callId":"c","verdict":"accept","durationMs":7,"fault":{"source":"gate","code":"timeout","message":"late"}"#
            .to_owned(),
        r#""type":"decided","by":"g","point":"end","verdict":"waive","reason":"why","durationMs":0"#.to_owned(),
        format!(r#""type":"run_finished","end":{end}"#),
    ];
    for fields in events {
        let text = format!(r#"{{"seq":1,"at":2,"turn":1,"iteration":0,{fields},"origin":{{}}}}"#);
        let event: Event = Json::parse(&text).expect("JSON").to().unwrap_or_else(|e| panic!("{e}: {text}"));
        check(&event);
        assert!(!matches!(event.kind, EventKind::TurnStarted { .. }));
    }
    let effects = [
        format!(r#"{{"perform":[7,{{"store":{{"records":[{{"runEnd":{end}}}]}}}}]}}"#),
        r#"{"perform":[8,{"save":{"messages":3,"state":{"version":3,"n":1.10}}}]}"#.to_owned(),
    ];
    for text in effects {
        check::<Effect>(&Json::parse(&text).expect("JSON").to().unwrap_or_else(|e| panic!("{e}: {text}")));
    }
}
