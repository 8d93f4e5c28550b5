//! Two records side by side.

use harness_core::message::Message;
use harness_record::{CompareOptions, Comparison, Section, compare_records, extract_calls_of};

use super::*;

fn compare(left: Scene, right: Scene) -> Comparison {
    compare_records(&left.run().record, &right.run().record, &CompareOptions::default())
}

#[test]
fn two_runs_that_did_the_same_are_equal_whatever_their_times_and_ids() {
    let (mut left, mut right) = (usual(), usual());
    (left.policy, right.policy) = (true, true);
    right.clock.advance(Millis(5_000));
    let compared = compare(left, right);
    assert!(compared.equal, "{}", compared.text());
    let metrics = compared.metrics;
    assert_eq!((metrics.tool_calls_a, metrics.matched_tool_calls, metrics.extra_tool_calls), (3, 3, 0));
}

#[test]
fn call_ids_of_policy_decisions_do_not_count() {
    let scene = |id: &str| {
        let mut scene = Scene::new([asks([call(id, "look", "{}")]), says("Done.")], [ToolOutcome::text("4")]);
        scene.policy = true;
        scene
    };
    assert!(compare(scene("c1"), scene("other")).equal);
}

#[test]
fn every_difference_has_its_place() {
    let left = Scene::new(
        [asks([call("c1", "look", r#"{"n":1}"#), call("c2", "pay", "{}")]), says("Done.")],
        [ToolOutcome::text("4"), ToolOutcome::text("paid")],
    );
    let mut right =
        Scene::new([asks([call("c1", "look", r#"{"n":2}"#)]), says("Ðone 👍")], [ToolOutcome::text("5")]);
    right.policy = true;
    right.options.metadata = Some(json(r#"{"a":1}"#));
    let compared = compare(left, right);
    let paths: Vec<&str> = compared.differences.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "response",
            "toolCalls.length",
            "toolCalls[0].argsHash",
            "toolCalls[0].output",
            "toolCalls[1]",
            "policyDecisions.length",
            "policyDecisions[0]",
            "metadata"
        ]
    );
    let kinds: Vec<_> = compared.differences.iter().map(|difference| difference.kind).collect();
    assert_eq!(
        Json::of(&kinds[4..]).unwrap().text(),
        r#"["missing_right","mismatch","missing_left","missing_left"]"#
    );
    assert_eq!(
        Json::of(&compared.metrics).unwrap().text(),
        r#"{"responseLengthA":5,"responseLengthB":7,"toolCallsA":2,"toolCallsB":1,"matchedToolCalls":0,"missingToolCalls":2,"extraToolCalls":1}"#
    );
    assert_eq!(
        Json::of(&compared.summary).unwrap().text(),
        r#"{"sameFinalResponse":false,"sameToolCallShape":false,"samePolicyDecisions":false,"sameGuardrailDecisions":true}"#
    );
}

#[test]
fn an_output_that_differs_is_told_but_is_no_other_shape() {
    let scene = |output: &str| {
        Scene::new([asks([call("c1", "look", "{}")]), says("Done.")], [ToolOutcome::text(output)])
    };
    let compared = compare(scene("4"), scene("5"));
    assert!(!compared.equal && compared.summary.same_tool_call_shape);
    assert_eq!(compared.text(), "toolCalls[0].output: \"4\" → \"5\"\n");
}

#[test]
fn sections_can_be_left_out() {
    let (left, right) = (Scene::new([says("a")], []).run().record, Scene::new([says("b")], []).run().record);
    let without = CompareOptions::default().without(Section::Response);
    assert!(compare_records(&left, &right, &without).equal);
    let mut only = CompareOptions::default();
    only.include_sections = Some([Section::ToolCalls].into());
    assert!(compare_records(&left, &right, &only).equal);
}

#[test]
fn outputs_are_matched_to_their_calls() {
    let record = usual().run().record;
    let mut items = record.items.clone();
    let stray = items.remove(2);
    items.insert(0, stray);
    let calls = extract_calls_of(&items);
    let told: Vec<_> = calls
        .iter()
        .map(|call| format!("{} {:?} {} {}", call.turn, call.name.as_str(), call.call_id, call.has_output))
        .collect();
    assert_eq!(
        told,
        ["1 \"\" c1 true", "2 \"look\" c1 false", "3 \"look\" c2 true", "4 \"to_expert\" c3 true"]
    );
    assert!(matches!(*items[0], Message::ToolResult(_)));
}
