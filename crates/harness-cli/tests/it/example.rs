//! The example that ships, without a key.

use std::path::Path;

use crate::support::{Output, Running, copy, harness, normal, root};

const FOLDER: &str = "fixtures/examples/customer-support";
const EXAMPLE: &str = "fixtures/examples/customer-support/harness.yaml";
const STILL_ON_THEIR_WAY: &str = "Which of my orders 1040, 1041 and 1042 are still on their way?";

#[track_caller]
fn check(question: &str, expected: &str) {
    let output = Running::start(harness(&root(), &["run", EXAMPLE, question])).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains(expected), "{}", output.stdout);
    assert!(
        output.stderr.starts_with("no API key set: using the rule-based demo model"),
        "{}",
        output.stderr
    );
}

#[test]
fn an_order_is_found_and_its_parcel_tracked() {
    check("Where is my order 1042?", "NP-77342");
}

#[test]
fn a_refund_is_paid() {
    check("My socks from order 1040 have holes. I want my money back.", "RF-1040");
}

#[test]
fn a_refund_is_refused() {
    check("Please refund order 1041.", "refunded already");
}

/// Replays a recording of the folder `in_folder` and writes what is asked and answered to `again`.
fn replayed(in_folder: &Path, recording: &str, question: &str, again: &Path) -> Output {
    let recording = format!("{FOLDER}/recordings/{recording}.jsonl");
    let arguments = ["run", EXAMPLE, question, "--replay", &recording, "--record", again.to_str().unwrap()];
    Running::start(harness(in_folder, &arguments)).end()
}

#[test]
fn every_recording_is_replayed_byte_by_byte_without_a_key_and_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again.jsonl");
    for (recording, question) in [
        ("refund", "My socks from order 1040 have holes. I want my money back."),
        ("refund-refused", "Please refund order 1041."),
        ("still-on-their-way", STILL_ON_THEIR_WAY),
        ("where-is-my-order", "Where is my order 1042?"),
    ] {
        let output = replayed(&root(), recording, question, &again);
        assert_eq!(output.code, Some(0), "{recording}: {}", output.stderr);
        let recorded = std::fs::read(root().join(format!("{FOLDER}/recordings/{recording}.jsonl"))).unwrap();
        assert!(std::fs::read(&again).unwrap() == recorded, "{recording}: not the same bytes");
    }
}

#[test]
fn the_report_is_written_from_its_recording_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let example = root().join("fixtures/examples/folder-report");
    copy(&example, folder.path());
    let arguments = ["run", "harness.yaml", "Write the report.", "--replay", "recordings/report.jsonl"];
    let again = ["--record", "again.jsonl", "--json"];
    let output = Running::start(harness(folder.path(), &[&arguments[..], &again].concat())).end();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let recorded = std::fs::read(example.join("recordings/report.jsonl")).unwrap();
    assert!(std::fs::read(folder.path().join("again.jsonl")).unwrap() == recorded, "not the same bytes");
    let decisions: Vec<&str> =
        output.stdout.lines().filter(|line| line.contains(r#""kind":"stop_decided""#)).collect();
    assert_eq!(decisions.len(), 2, "one decision for each turn");
    assert!(decisions[0].contains("contract_not_satisfied") && decisions[1].contains("agent_done"));
}

#[test]
fn a_changed_prompt_fails_a_replay_and_its_difference_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join(FOLDER), &folder.path().join(FOLDER));
    let prompt = folder.path().join(FOLDER).join("prompts/orders.md");
    let text = std::fs::read_to_string(&prompt).unwrap().replace("the expected day", "the exact day");
    std::fs::write(&prompt, text).unwrap();
    let again = folder.path().join("again.jsonl");
    let output = replayed(folder.path(), "still-on-their-way", STILL_ON_THEIR_WAY, &again);
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(normal(&output.stderr), @r#"
    • router
    → handoff_to_orders {}
    ↪ router → orders
    ! model: step 2 of recording `fixtures/examples/customer-support/recordings/still-on-their-way.jsonl` does not match the request: systemPrompt, line 5: "the expected day. If the customer wants money back, hand over to Refunds." → "the exact day. If the customer wants money back, hand over to Refunds."; record it again if the change is intended
    failed (runtime_error) · 2 iterations · 1 tool call · 100 + 7 tokens · cost 0.0001 · [TIME]
    "#);
}

#[test]
fn a_question_that_no_tool_fits_is_answered_by_what_can_be_asked() {
    check("Do you sell skis?", "- orders, another agent");
}

#[test]
fn the_example_is_sound_and_its_hash_is_stable() {
    let output = Running::start(harness(&root(), &["check", EXAMPLE])).end();
    insta::assert_snapshot!(output.stdout, @r"
    fixtures/examples/customer-support/harness.yaml is valid: 3 agents, entry `router`, 3 tools
    sha256:0cf778fc8dbd05cd866c79f48a538410f108e6164217f5f51b1961b483cc80ac
    ");
    let output = Running::start(harness(&root(), &["hash", EXAMPLE])).end();
    insta::assert_snapshot!(output.stdout, @r#"sha256:0cf778fc8dbd05cd866c79f48a538410f108e6164217f5f51b1961b483cc80ac"#);
}
