//! Events for auditors.

use harness_core::canonical;
use harness_record::governance_events;

use super::*;

fn record() -> RunRecord {
    let mut scene = Scene::new(
        [asks([call("c1", "look", "{}"), call("c2", "drop", "{}")]), says("Done.")],
        [ToolOutcome::text("seen")],
    );
    scene.policy = true;
    scene.options.metadata = Some(json(r#"{"tenant":"t"}"#));
    let ran = scene.run();
    let mut events = ran.events;
    let end = events.pop().unwrap();
    for (gate, decision) in [("tone", "accept"), ("pii", "refuse")] {
        let kind = format!(
            r#""type":"decided","by":"{gate}","point":"answer","verdict":"{decision}","facts":{{"n":1}},"durationMs":0"#
        );
        let text =
            format!(r#"{{"seq":{},"at":{},"turn":1,"iteration":1,{kind},"origin":{{}}}}"#, end.seq, end.at.0);
        events.push(json(&text).to().unwrap());
    }
    events.push(end);
    let mut options = RecordOptions::default();
    options.metadata = Some(json(r#"{"tenant":"t"}"#));
    refolded(&events, options, RunStart::default())
}

#[test]
fn a_record_gives_its_end_then_policies_then_guardrails() {
    let events = governance_events(&record(), false);
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let name = event.subject.name.as_deref().unwrap_or("-");
            format!("{} {} {name} {:?}", event.r#type, event.subject.kind, event.severity)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    aioc.run.completed run - Info
    aioc.policy.allowed tool look Info
    aioc.policy.denied tool drop Warn
    aioc.guardrail.passed guardrail tone Info
    aioc.guardrail.triggered guardrail pii Warn
    "#);
    assert!(events.iter().all(|event| event.metadata.is_none()));
    let trace = events[1].trace.as_ref().unwrap();
    assert_eq!(trace.prompt_hash.as_deref(), Some(canonical::sha256_hex("You are the desk.").as_str()));
    assert_eq!(events[1].subject.args_hash.as_deref(), Some(canonical::sha256_hex("{}").as_str()));
}

#[test]
fn ids_are_digests_of_what_an_event_is_about() {
    let events = governance_events(&record(), true);
    let id = |key: &str| canonical::sha256_hex(format!("aioc.governance_event.v0|{key}"));
    assert_eq!(events[0].id, id("aioc.run.completed|run-1|run"));
    assert_eq!(events[1].id, id("aioc.policy.allowed|run-1|policy:1:c1:allow"));
    assert_eq!(events[2].id, id("aioc.policy.denied|run-1|policy:1:c2:deny"));
    assert_eq!(events[4].id, id("aioc.guardrail.triggered|run-1|guardrail:2:pii:triggered"));
    assert_eq!(events[0].metadata.as_ref().map(Json::text), Some(r#"{"tenant":"t"}"#));
    assert_eq!(events[1].metadata.as_ref().map(Json::text), Some(r#"{"rule":1}"#));
}
