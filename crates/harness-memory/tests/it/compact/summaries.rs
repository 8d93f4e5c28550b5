//! Structured summaries.

use harness_memory::compact::summary::{Replaced, SpanReference, StructuredSummary};
use insta::assert_snapshot;

fn span() -> SpanReference {
    SpanReference::new(["m1".into()], 0, 0).unwrap()
}

fn summary(json: &str) -> StructuredSummary {
    StructuredSummary::parse(json, span(), &[]).unwrap()
}

#[test]
fn a_reply_may_be_fenced_and_entries_of_the_wrong_form_are_left_out() {
    let reply = "  ```json\n{\"facts\": [\"a\", 3, null], \"decisions\": \"none\", \"open_items\": [{\"description\": \"x\", \"priority\": 7}], \"tool_outcomes\": [{\"tool_name\": \"t\", \"outcome\": \"failure\", \"key_fields\": {\"n\": 1}, \"error_message\": \"no\"}, []], \"current_plan\": [\"one\", {}]}\n```\n";
    let summary = StructuredSummary::parse(reply, span(), &["a".to_owned(), "b".to_owned()]).unwrap();
    assert_snapshot!(summary.render(), @r"
    **Key Facts:**
    - a
    - b

    **Open Items:**
    -  x

    **Tool Results:**
    - ✗ t (n=1) Error: no

    **Current Plan:**
    1. one
    ");
}

#[track_caller]
fn check_refused(reply: &str, expected: &str) {
    let error = StructuredSummary::parse(reply, span(), &["must stay".to_owned()]).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), ("compact.invalid_summary", expected));
}

#[test]
fn a_reply_that_is_no_object_is_an_error_and_never_an_empty_summary() {
    check_refused(
        "Sorry.",
        r#"the summary is not a JSON object (expected value at line 1 column 1); it begins with "Sorry.""#,
    );
    check_refused(
        "[]",
        r#"the summary is not a JSON object (invalid type: sequence, expected a map at line 1 column 0); it begins with "[]""#,
    );
    check_refused(
        "",
        r#"the summary is not a JSON object (EOF while parsing a value at line 1 column 0); it begins with """#,
    );
}

#[test]
fn an_earlier_summary_goes_into_the_newer_one_section_by_section() {
    let earlier = summary(
        r#"{"facts": ["a", "b"], "open_items": [{"description": "call", "priority": "low"}],
            "artifacts": [{"artifact_id": "art-1"}], "current_task": "old", "current_plan": ["x"]}"#,
    );
    let newer = summary(
        r#"{"facts": ["b", "c"], "open_items": [{"description": "call", "priority": "high"}],
            "current_task": "new"}"#,
    );
    let mut merged = newer.merged_onto(&earlier);
    assert_snapshot!(merged.render(), @r"
    **Key Facts:**
    - a
    - b
    - c

    **Open Items:**
    - (!) call

    **Externalized Content:**
    - [art-1] 
      Hint: 

    **Current Task:** new

    **Current Plan:**
    1. x
    ");
    assert_eq!(merged.span.message_ids.len(), 2);
    assert!(merged.resolve("call"));
    assert!(!merged.resolve("call"));
    assert!(merged.open_items.is_empty());
}

#[test]
fn facts_and_open_items_survive_ten_cycles() {
    let mut kept = summary(r#"{"facts": ["budget 900"], "open_items": [{"description": "sign"}]}"#);
    for n in 0..10 {
        let newer = summary(&format!(r#"{{"facts": ["step {n}"]}}"#));
        let merged = newer.merged_onto(&kept);
        let preserve = ["budget 900".to_owned()];
        let replaced = Replaced { messages: 3, tokens: 1_000, preserve: &preserve, earlier: Some(&kept) };
        merged.check(100, &replaced).unwrap();
        kept = merged;
    }
    assert_eq!((kept.facts.len(), kept.open_items.len()), (11, 1));
}

#[track_caller]
fn check_kind(summary: &StructuredSummary, tokens: u64, preserve: &[String], kind: Option<&str>) {
    let earlier =
        self::summary(r#"{"open_items": [{"description": "sign"}], "artifacts": [{"artifact_id": "x"}]}"#);
    let earlier = (!summary.is_empty()).then_some(&earlier);
    let replaced = Replaced { messages: 3, tokens: 50, preserve, earlier };
    assert_eq!(summary.check(tokens, &replaced).err().map(|error| error.kind()), kind);
}

#[test]
fn a_summary_that_says_nothing_or_loses_something_or_is_too_large_may_stand_for_nothing() {
    let whole = summary(
        r#"{"facts": ["f"], "open_items": [{"description": "sign"}], "artifacts": [{"artifact_id": "x"}]}"#,
    );
    let fact = ["f".to_owned()];
    check_kind(&whole, 49, &fact, None);
    check_kind(&whole, 50, &fact, Some("compact.summary_too_large"));
    check_kind(&whole, 49, &["g".to_owned()], Some("compact.summary_lost"));
    check_kind(&summary("{}"), 0, &[], Some("compact.empty_summary"));
    check_kind(&summary(r#"{"facts": ["f"]}"#), 1, &[], Some("compact.summary_lost"));
    let item = r#"{"open_items": [{"description": "sign"}]}"#;
    check_kind(&summary(item), 1, &[], Some("compact.summary_lost"));
}

#[test]
fn a_span_names_at_least_one_message() {
    assert_eq!(SpanReference::new([], 0, 0).unwrap_err().kind(), "compact.empty_span");
}

#[test]
fn a_summary_has_a_wire_form_that_reads_back() {
    let whole = summary(
        r#"{"facts": ["f"], "decisions": [{"decision": "d", "turn_number": 3}],
            "tool_outcomes": [{"tool_name": "t", "key_fields": {"n": 1.10}}]}"#,
    );
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<StructuredSummary>(&text).unwrap(), whole);
}
