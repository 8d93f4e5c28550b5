//! What an expectation says is compared: a sample of each kind with one expected value changed must fail.
//!
//! The snapshot lists what may change unnoticed: texts for people, which no vector compares, and what a runner does not
//! compare yet. It only gets shorter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::runner::{Suite, run};
use crate::verdict::Verdict;

/// How many vectors of each kind are tried.
const SAMPLE: usize = 3;

/// How many values of one vector are changed at most.
const LEAVES: usize = 200;

/// Keys under which a vector says what it expects.
const ROOTS: [&str; 3] = ["expect", "expected", "wanted"];

/// Pointers to the values of an expectation that hold no others.
fn leaves(value: &Value, pointer: &str, is_expected: bool, found: &mut Vec<String>) {
    let mut below = |step: String, value: &Value, is_expected: bool| {
        let step = step.replace('~', "~0").replace('/', "~1");
        leaves(value, &format!("{pointer}/{step}"), is_expected, found);
    };
    if let Some(map) = value.as_object().filter(|map| !map.is_empty()) {
        for (key, value) in map {
            below(key.clone(), value, is_expected || ROOTS.contains(&key.as_str()));
        }
    } else if let Some(elements) = value.as_array().filter(|elements| !elements.is_empty()) {
        for (at, value) in elements.iter().enumerate() {
            below(at.to_string(), value, is_expected);
        }
    } else if is_expected {
        found.push(pointer.to_owned());
    }
}

/// Whether a vector that lists what is compared of `wanted` lists this.
fn is_compared(vector: &Value, pointer: &str) -> bool {
    let Some(compared) = vector.get("compare").and_then(Value::as_array) else { return true };
    let key = pointer.strip_prefix("/wanted/").and_then(|rest| rest.split('/').next());
    key.is_none_or(|key| compared.is_empty() || compared.iter().any(|name| name == key))
}

/// Another value of the same kind.
fn other(value: &Value) -> Value {
    match value {
        Value::Bool(is) => json!(!is),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 7.0),
        Value::String(text) => json!(format!("{text}-changed")),
        Value::Null => json!("changed"),
        Value::Array(_) => json!(["changed"]),
        Value::Object(_) => json!({ "changed": true }),
    }
}

/// A pointer without the numbers of its lists.
fn shape(pointer: &str) -> String {
    let steps = pointer.split('/').map(|step| if step.parse::<usize>().is_ok() { "*" } else { step });
    steps.collect::<Vec<_>>().join("/")
}

#[test]
fn a_changed_expectation_fails() {
    let suite = Suite::own().unwrap();
    let mut sampled: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unnoticed = BTreeSet::new();
    for vector in suite.vectors() {
        let taken = sampled.entry(vector.kind()).or_default();
        *taken += 1;
        if *taken > SAMPLE || suite.rule(vector).is_some() {
            continue;
        }
        let mut found = Vec::new();
        leaves(&vector.value, "", false, &mut found);
        for pointer in found.into_iter().filter(|pointer| is_compared(&vector.value, pointer)).take(LEAVES) {
            let mut value = vector.value.clone();
            let leaf = value.pointer_mut(&pointer).unwrap();
            *leaf = other(leaf);
            if run(&vector.with(value)) == Verdict::Passed {
                unnoticed.insert(format!("{} {}", vector.kind(), shape(&pointer)));
            }
        }
    }
    let lines: Vec<String> = unnoticed.into_iter().collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    artifact-cleaning /wanted/message
    checkpoint /expected/ledger/*/kind
    checkpoint /expected/ledger/*/path
    checkpoint /expected/snapshot/cwd/current
    checkpoint /expected/snapshot/frontier/*
    checkpoint /expected/snapshot/items
    checkpoint /expected/snapshot/keys/*
    checkpoint /expected/snapshot/layers
    checkpoint /expected/snapshot/schemaVersion
    contract /wanted/gap_report/suggestions/*
    contract /wanted/ledger/R1/evidence/*/value
    contract /wanted/ledger/R2/evidence/*/value
    contract /wanted/ledger/T1/evidence/*/value
    contract /wanted/message
    contract /wanted/results/R1/evidence/value
    contract /wanted/results/R1/message
    contract /wanted/results/R2/evidence/value
    contract /wanted/results/R2/message
    contract /wanted/results/T1/evidence/value
    contract /wanted/results/T1/message
    contract /wanted/results/T2/message
    control-artifact /wanted/error
    item-schema /expected/results/*/error/message
    negotiation /expected/capabilities/notes/*
    negotiation /expected/negotiation/effectiveCapabilities/notes/*
    negotiation /expected/negotiation/reasons/*/message
    openrouter-response /expected/result/error/message
    openrouter-response /expected/result/trace/events/*/data/reason
    parallel /expected/result/error/message
    repair /wanted/lifecycle_events/*/data/compaction_owner_mode
    repair /wanted/state/harness.compaction_owner_mode
    repair /wanted/state/harness.transcript/*/data/message
    run /wanted/result/reason/message
    stall /wanted/turns/*/fingerprint
    stop-decision /wanted/steps/*/lifecycle_events/*/data/reason_message
    stop-decision /wanted/steps/*/stop_reason/message
    stop-decision /wanted/steps/*/transcript_events/*/data/gaps/suggestions/*
    stop-decision /wanted/steps/*/transcript_events/*/data/reason/message
    summary-parse /wanted/error
    turn /turns/*/expect/events/*/elapsedMs
    turn /turns/*/expect/result/continuation/createdAt
    turn /turns/*/expect/result/continuation/id
    turn /turns/*/expect/result/continuation/resumeToken
    turn /turns/*/expect/result/continuation/state/transcript/steps/*/kind
    turn /turns/*/expect/result/continuation/state/transcript/steps/*/outputType
    turn /turns/*/expect/result/continuation/state/transcript/steps/*/requestId
    turn /turns/*/expect/result/continuation/state/transcript/steps/*/text
    turn /turns/*/expect/result/continuation/state/transcript/steps/*/type
    turn-ext /turns/*/expect/events/*/elapsedMs
    turn-fn /expect/message
    ");
}
