//! Expectations are compared: a sample of each kind with one expected value changed must fail.
//!
//! `unnoticed.txt` lists what may change unnoticed, each with its reason: human-readable texts, and forms of other systems.
//! A word that no runner knows must fail its vector at any place except the maps of `free_maps.txt`, whose keys
//! are data.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::runner::{Suite, run};
use crate::vector::Vector;
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

/// Keys under which a vector says what others did, which no runner reads.
const ELSEWHERE: [&str; 5] =
    ["upstream", "upstream_observed", "observed_elsewhere", "alsoObserved", "divergence"];

/// A word that no runner knows.
const UNKNOWN: &str = "frobnicate";

/// Keys whose texts are words of the format, never data.
const WORDS: [&str; 13] = [
    "op",
    "do",
    "mode",
    "behaviour",
    "hook",
    "scope",
    "timing",
    "on_error",
    "on_init_error",
    "rerender_timing",
    "tool_execution",
    "steering_mode",
    "where",
];

/// Pointers to the objects of a vector, and to its words.
fn places(value: &Value, pointer: &str, objects: &mut Vec<String>, words: &mut Vec<String>) {
    if let Some(map) = value.as_object() {
        objects.push(pointer.to_owned());
        for (key, value) in map.iter().filter(|(key, _)| !ELSEWHERE.contains(&key.as_str())) {
            let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            if value.is_string() && WORDS.contains(&key.as_str()) {
                words.push(below.clone());
            }
            places(value, &below, objects, words);
        }
    } else if let Some(elements) = value.as_array() {
        for (at, value) in elements.iter().enumerate() {
            places(value, &format!("{pointer}/{at}"), objects, words);
        }
    }
}

/// The vector with what is ours in it.
fn ours(suite: &Suite, vector: &Vector) -> Vector {
    suite.overlays.of(vector).map_or_else(|| vector.clone(), |overlay| overlay.apply(vector).unwrap())
}

/// Compares what was found with a list of lines `KIND POINTER: REASON`.
#[track_caller]
fn compare(found: &BTreeSet<String>, listed: &str) {
    let listed: BTreeSet<String> = listed
        .lines()
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("`{line}` has no reason")).0.to_owned())
        .collect();
    let new: Vec<&String> = found.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "not in the list: {new:#?}\nto be taken from the list: {gone:#?}"
    );
}

#[test]
fn an_unknown_word_fails() {
    let suite = Suite::own().unwrap();
    let mut tried = BTreeSet::new();
    let mut unnoticed = BTreeSet::new();
    for vector in suite.vectors().iter().map(|vector| ours(&suite, vector)) {
        let (mut objects, mut words) = (Vec::new(), Vec::new());
        places(&vector.value, "", &mut objects, &mut words);
        let objects = objects.into_iter().map(|at| (at, true));
        for (pointer, is_object) in objects.chain(words.into_iter().map(|at| (at, false))) {
            if pointer == "/wanted" && vector.value.get("compare").is_some_and(Value::is_array) {
                continue;
            }
            let place = format!("{} {}", vector.kind(), shape(&pointer));
            if !is_compared(&vector.value, &pointer) || !tried.insert((place.clone(), is_object)) {
                continue;
            }
            let mut value = vector.value.clone();
            let at = value.pointer_mut(&pointer).unwrap();
            match at.as_object_mut() {
                Some(map) => drop(map.insert(UNKNOWN.to_owned(), json!(true))),
                None => *at = json!(UNKNOWN),
            }
            // The reader says where, if not what.
            let is_told = |said: &str| {
                said.contains(UNKNOWN) || said.contains("invalid type") || said.contains(" at line ")
            };
            let is_expectation = ROOTS.iter().any(|root| pointer.contains(&format!("/{root}")));
            match run(&vector.with(value)) {
                Verdict::Failed(said) if is_expectation || is_told(&said) => {}
                Verdict::Failed(_) | Verdict::Passed | Verdict::Skipped(_) => drop(unnoticed.insert(place)),
            }
        }
    }
    compare(&unnoticed, include_str!("free_maps.txt"));
}

#[test]
fn a_changed_expectation_fails() {
    let suite = Suite::own().unwrap();
    let mut sampled: BTreeMap<String, usize> = BTreeMap::new();
    let mut unnoticed = BTreeSet::new();
    for vector in suite.vectors().iter().map(|vector| ours(&suite, vector)) {
        let taken = sampled.entry(vector.kind.clone()).or_default();
        *taken += 1;
        if *taken > SAMPLE {
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
    compare(&unnoticed, include_str!("unnoticed.txt"));
}
