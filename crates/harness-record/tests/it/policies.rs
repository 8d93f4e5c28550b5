//! Records of runs under core's own policies and guardrails.

use harness_core::decide::policy::{Policies, PolicyDecision};
use harness_core::decide::{Points, check, gate};
use harness_core::port::ProposedCall;
use harness_record::{RecordedModel, governance_events};

use super::*;

fn governed() -> Scene {
    let mut scene = Scene::new(
        [
            asks([
                call("c1", "look", "{}"),
                call("c2", "to_expert", r#"{"why":"x"}"#),
                call("c3", "drop", "{}"),
            ]),
            asks([call("c4", "pay", r#"{"amount":12.50}"#)]),
            says("Done."),
        ],
        [ToolOutcome::text("seen")],
    );
    let tools = Policies::new()
        .with("look", |_: &ProposedCall| PolicyDecision::allow("harmless").with_policy_version("p7"))
        .with("pay", |_: &ProposedCall| PolicyDecision::require_approval("money").with_public_reason("Ask."))
        .with("drop", |_: &ProposedCall| PolicyDecision::deny("dangerous").answering_model());
    let handoffs = Policies::new().with("expert", |_: &ProposedCall| PolicyDecision::allow("always"));
    scene.gates = vec![gate::policy(tools), gate::handoff_policy(handoffs)];
    scene
}

#[test]
fn the_facts_of_a_policy_gate_are_its_decisions_in_the_record() {
    let record = governed().run().record;
    let told = record.policy_decisions.iter().map(|entry| {
        let (kind, name) = (&entry.resource.kind, &entry.resource.name);
        let mode = entry.result_mode.as_deref().unwrap_or("-");
        format!("{} {} {kind} {name}: {} {} {mode}", entry.turn, entry.call_id, entry.decision, entry.reason)
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r#"
    1 c1 tool look: allow harmless -
    1 c2 handoff expert: allow always -
    1 c3 tool drop: deny dangerous tool_result
    2 c4 tool pay: require_approval money throw
    "#);
    assert!(record.gate_decisions.is_empty(), "{:?}", record.gate_decisions);
    assert_eq!(record.candidate.policy_version.as_deref(), Some("p7"));
    let [proposal] = record.suspended_proposals.as_slice() else {
        panic!("{:?}", record.suspended_proposals)
    };
    let proposed: serde_json::Value = serde_json::from_str(proposal.text()).unwrap();
    assert_eq!((proposed["toolName"].as_str(), proposed["callId"].as_str()), (Some("pay"), Some("c4")));
    let hash = record.policy_decisions.last().unwrap().proposal_hash.as_deref();
    assert_eq!(proposed["proposalHash"].as_str(), hash);
    assert_eq!(record.outcome.as_str(), "awaiting_approval");
    let events = governance_events(&record, false);
    assert_eq!(events.last().unwrap().r#type, "aioc.approval.required");
}

fn guarded(text: &str) -> RunRecord {
    let mut scene = Scene::new([says(text)], []);
    let quiet =
        check::guardrail("quiet", Points::ANSWER, |text| text.contains('!').then(|| "too loud".to_owned()));
    scene.checks = vec![quiet];
    scene.run().record
}

#[test]
fn guardrails_are_recorded_and_what_they_refuse_is_not() {
    let passed = guarded("Quiet.");
    let decided = &passed.guardrail_decisions[0];
    assert_eq!(
        (decided.guardrail_name.as_str(), decided.decision.as_str(), decided.turn),
        ("quiet", "pass", 1)
    );
    let refused = guarded("LOUD!");
    let decided = &refused.guardrail_decisions[0];
    assert_eq!((decided.decision.as_str(), decided.reason.as_deref()), ("triggered", Some("too loud")));
    assert_eq!(refused.stop_reason.as_str(), "guardrail_triggered");
    assert_eq!(refused.error_message.as_deref(), Some("guardrail quiet refused the output: too loud"));
    assert!(!refused.to_json().unwrap().text().contains("LOUD"), "{refused:?}");
}

#[test]
fn an_answer_that_is_not_in_the_record_is_a_fault_and_not_the_next_one() {
    let refused = guarded("LOUD!");
    let mut scene = Scene::new([], []);
    scene.model = Arc::new(RecordedModel::new(&refused));
    let again = scene.run().record;
    assert_eq!(again.error_name.as_deref(), Some("recording"));
}
