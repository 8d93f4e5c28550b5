use std::collections::BTreeMap;

use harness_core::Json;
use serde_json::json;

use super::*;

/// A contract with one output `R` of this predicate.
fn contract(predicate: serde_json::Value) -> TaskContract {
    let contract = json!({"id": "c", "goal": "g", "required_outputs": [
        {"id": "R", "description": "need R", "predicate": predicate}]});
    serde_json::from_value(contract).expect("a contract")
}

/// Whether the predicate holds on the index, and on what.
#[track_caller]
fn check(predicate: serde_json::Value, index: &EvidenceIndex, expected: &str) {
    let contract = contract(predicate);
    let mut coverage = Coverage::of(&contract);
    let verification = contract.verify(&mut coverage, &Facts::new(index));
    let (_, result) = &verification.results[0];
    let event = result.evidence.as_ref().map(|evidence| format!(" @{}", evidence.event_ref));
    assert_eq!(format!("{}: {}{}", result.success, result.message, event.unwrap_or_default()), expected);
    assert_eq!(coverage.status("R").is_satisfied(), result.success);
    assert_eq!(contract.gaps(&coverage).unmet_requirements.is_empty(), verification.satisfied);
}

fn index(results: &[(&str, &str, Option<&str>)], answers: &[&str]) -> EvidenceIndex {
    let mut index = EvidenceIndex::new();
    for (at, (tool, arguments, error)) in results.iter().enumerate() {
        let arguments = Json::parse(arguments).expect("JSON");
        let error = error.map(ToOwned::to_owned);
        let value = error.is_none().then_some(r#"{"total": 3}"#);
        index.note_result(format!("e{at}"), tool, arguments, error, value);
    }
    for (at, answer) in answers.iter().enumerate() {
        index.note_answer(format!("a{at}"), answer);
    }
    index
}

#[test]
fn the_latest_result_of_a_tool_decides() {
    let predicate = json!({"type": "tool_result_success", "args": {"tool_name": "deploy"}});
    check(predicate.clone(), &index(&[], &[]), "false: no result of `deploy` yet");
    check(predicate.clone(), &index(&[("deploy", "{}", None)], &[]), "true: `deploy` succeeded @e0");
    let failed_last = index(&[("deploy", "{}", None), ("deploy", "{}", Some("exit 1"))], &[]);
    check(predicate, &failed_last, "false: the latest result of `deploy` is an error: exit 1");
}

#[test]
fn only_calls_with_the_wanted_arguments_count() {
    let predicate = |count: u32| {
        json!({"type": "tool_result_success",
               "args": {"tool_name": "t", "args_match": {"to": "x"}, "min_count": count}})
    };
    let results = index(&[("t", r#"{"to":"x","n":1}"#, None), ("t", r#"{"to":"y"}"#, Some("no"))], &[]);
    check(predicate(1), &results, "true: `t` succeeded @e0");
    check(predicate(2), &results, "false: `t` succeeded 1 time(s); 2 are required");
}

#[test]
fn a_text_is_looked_for_in_the_newest_answer() {
    let predicate = |pattern: &str, field: &str| json!({"type": "contains_text", "args": {"pattern": pattern, "field": field}});
    let answers = index(&[], &["first draft", "Now approved.", ""]);
    check(predicate("APPROVED", "response"), &answers, "true: `APPROVED` found @a1");
    check(predicate("draft", "response"), &answers, "false: `draft` not found in `response`");
    check(predicate("draft", "any_response"), &answers, "true: `draft` found @a0");
    check(predicate(".*", "response"), &index(&[], &[]), "false: no text in `response` yet");
    check(predicate("x", "other"), &answers, "false: no text in `other` yet");
}

#[test]
fn a_text_of_which_only_the_end_was_kept_is_said_so() {
    let mut index = EvidenceIndex::new();
    index.note_answer("a", &format!("needle{}", "x".repeat(9_000)));
    let predicate = json!({"type": "contains_text", "args": {"pattern": "needle"}});
    check(predicate, &index, "false: `needle` not found in `response`; only the end of the text was kept");
}

#[test]
fn data_is_held_against_a_schema() {
    let predicate = |source: &str, required: &str| {
        json!({"type": "json_schema_valid",
               "args": {"schema": {"type": "object", "required": [required]}, "source": source}})
    };
    let facts = index(&[("sum", "{}", None)], &[r#"{"total": 3}"#]);
    check(predicate("tool:sum", "total"), &facts, "true: `tool:sum` is valid @e0");
    check(predicate("response_json", "total"), &facts, "true: `response_json` is valid @a0");
    check(
        predicate("response_json", "id"),
        &facts,
        "false: `response_json` violates the schema: missing required fields: id",
    );
    check(predicate("data", "id"), &facts, "false: no data in `data`");
}

#[test]
fn what_can_not_be_judged_fails() {
    let custom = |args: serde_json::Value| json!({"type": "custom", "args": args});
    check(custom(json!({})), &index(&[], &[]), "false: the custom predicate has no check");
    check(custom(json!({"check": "x"})), &index(&[], &[]), "false: unknown check `x`");
    let file = json!({"type": "file_exists", "args": {"path": "a.md"}});
    check(file, &index(&[], &[]), "false: cannot inspect `a.md`: the run has no workspace");
}

#[test]
fn a_file_is_judged_anew_and_what_was_found_before_is_kept() {
    let contract = contract(json!({"type": "file_exists", "args": {"path": "a.md"}}));
    let mut coverage = Coverage::of(&contract);
    let index = EvidenceIndex::new();
    let mut judged = |fact: FileFact| {
        let files = BTreeMap::from([("a.md".to_owned(), fact)]);
        let facts = Facts { files: &files, ..Facts::new(&index) };
        let satisfied = contract.verify(&mut coverage, &facts).satisfied;
        (satisfied, coverage.coverage["R"].evidence.len())
    };
    assert_eq!(judged(FileFact::File { bytes: 3, digest: None }), (true, 1));
    assert_eq!(judged(FileFact::File { bytes: 3, digest: None }), (true, 1), "the same proof is one proof");
    assert_eq!(judged(FileFact::Missing), (false, 1));
    assert_eq!(judged(FileFact::NotAFile), (false, 1));
}

#[test]
fn what_was_met_stays_met_without_newer_evidence() {
    let contract = contract(json!({"type": "tool_result_success", "args": {"tool_name": "t"}}));
    let mut coverage = Coverage::of(&contract);
    let known = index(&[("t", "{}", None)], &[]);
    assert!(contract.verify(&mut coverage, &Facts::new(&known)).satisfied);
    assert!(contract.verify(&mut coverage, &Facts::new(&EvidenceIndex::new())).satisfied);
}

#[test]
fn a_requirement_that_was_let_go_counts_and_says_why() {
    let contract = contract(json!({"type": "custom", "args": {"check": "x"}}));
    let mut coverage = Coverage::of(&contract);
    assert!(coverage.waive("R", "the customer does not need it"));
    assert!(!coverage.waive("nothing", "?"));
    assert!(contract.verify(&mut coverage, &Facts::new(&EvidenceIndex::new())).satisfied);
    assert_eq!(coverage.coverage["R"].notes, "the customer does not need it");
}

/// Every problem of a contract is told.
#[track_caller]
fn check_faults(contract: serde_json::Value, expected: &[&str]) {
    let told = match serde_json::from_value::<TaskContract>(contract) {
        Ok(contract) => contract.check().iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(told, expected);
}

#[test]
fn a_contract_that_can_not_be_meant_is_refused() {
    let output = |id: &str, predicate: serde_json::Value| json!({"id": id, "description": "d", "predicate": predicate});
    check_faults(
        json!({"goal": "g", "required_outputs": [
                   output("R", json!({"type": "custom"})),
                   output("R", json!({"type": "contains_text", "args": {"pattern": "a{99999}{99999}"}}))],
               "questions": [{"id": "q", "question": "Why?", "required_for": ["S"]}],
               "acceptability": {"min_confidence": 2.0}}),
        &[
            "duplicate id `R` in the contract",
            "required output `R`: missing `args.check` of the `custom` predicate: name a check of the application",
            "required output `R`: invalid regular expression `a{99999}{99999}`: Compiled regex exceeds size limit of 1048576 bytes.",
            "question `q` is required for unknown output `S`",
            "invalid `acceptability.min_confidence` 2: expected a number between 0 and 1",
        ],
    );
    check_faults(
        json!({"goal": "g", "required_outputs": [output("R", json!({"type": "file_exists"}))]}),
        &["predicate `file_exists`: missing field `path`"],
    );
    check_faults(
        json!({"goal": "g", "required_outputs": [output("R", json!({"type": "magic"}))]}),
        &["predicate `magic`: unknown variant `magic`, expected one of `always_true`, `file_exists`, \
           `contains_text`, `tool_result_success`, `json_schema_valid`, `custom`"],
    );
}

#[test]
fn a_contract_reads_back_as_it_was() {
    let written = json!({"id": "c", "goal": "g", "required_outputs": [
        {"id": "A", "description": "a", "type": "artifact", "optional": true,
         "predicate": {"type": "file_exists", "args": {"path": "x"}, "description": "d"}},
        {"id": "B", "description": "b", "type": "action", "optional": false, "predicate": {"type":
         "tool_result_success", "args": {"tool_name": "t", "args_match": {"a": 1}, "min_count": 2}, "description": ""}},
        {"id": "C", "description": "c", "type": "response", "optional": false, "predicate": {"type":
         "json_schema_valid", "args": {"schema": {"type": "object"}, "source": "tool:t"}, "description": ""}},
        {"id": "D", "description": "d", "type": "response", "optional": false, "predicate": {"type":
         "contains_text", "args": {"pattern": "p", "field": "artifact:00000001"}, "description": ""}}],
        "questions": [], "acceptability": {"max_known_unknowns": 0, "min_confidence": 0.6, "allow_partial": false}});
    let contract: TaskContract = serde_json::from_value(written.clone()).expect("a contract");
    assert_eq!(serde_json::to_value(&contract).expect("JSON"), written);
}
