//! Common parts of the vectors of adapters, and their loose comparisons.

use std::collections::BTreeMap;
use std::path::Path;

use harness_core::Time;
use serde_json::Value;

use crate::Done;

/// Keys of a failure's own words in a result.
const MESSAGES: [&str; 3] = ["message", "reason", "error"];

/// Writes files into a directory.
pub(super) fn write(folder: &Path, files: Option<&BTreeMap<String, String>>) -> Done<()> {
    let write = |(name, content): (&String, &String)| std::fs::write(folder.join(name), content);
    files.into_iter().flatten().try_for_each(write).map_err(|e| e.to_string())
}

/// Creates an object of the present values.
pub(super) fn present<const N: usize>(values: [(&str, Option<Value>); N]) -> Value {
    values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Puts what is expected in place of what need not be equal to it: a time where the vector only wants one, and the
/// words of a failure, and the notes of a backend on what it can do, where there are some.
pub(super) fn settle_free_texts(expected: &Value, got: &mut Value) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (key, value) in expected {
                let Some(got) = got.get_mut(key) else { continue };
                let said = got.as_str().unwrap_or_default();
                let is_time = value == "<iso-8601>" && Time::parse_iso(said).is_some();
                let is_free = MESSAGES.contains(&key.as_str()) && value.is_string();
                let are_notes = key == "notes" && are_texts(value) && are_texts(got);
                if is_time || (is_free && !said.is_empty()) || are_notes {
                    got.clone_from(value);
                } else {
                    settle_free_texts(value, got);
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) => {
            for (expected, got) in expected.iter().zip(got) {
                settle_free_texts(expected, got);
            }
        }
        _ => {}
    }
}

/// Whether a value is a list of texts, of which there are some.
fn are_texts(value: &Value) -> bool {
    let texts = value.as_array().filter(|texts| !texts.is_empty());
    texts.is_some_and(|texts| texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: Value, mut got: Value, are_equal: bool) {
        settle_free_texts(&expected, &mut got);
        assert_eq!(expected == got, are_equal, "{expected} {got}");
    }

    #[test]
    fn only_times_and_texts_for_people_are_free() {
        let time = json!([{ "retriedAt": "<iso-8601>" }]);
        check(time.clone(), json!([{ "retriedAt": "2026-01-01T00:00:00.000Z" }]), true);
        check(time.clone(), json!([{ "retriedAt": "soon" }]), false);
        check(time, json!([{}]), false);
        check(json!({ "reason": "a" }), json!({ "reason": "b" }), true);
        check(json!({ "reason": "a" }), json!({ "reason": "" }), false);
        check(json!({ "code": "a" }), json!({ "code": "b" }), false);
        check(json!({ "notes": ["a", "b"] }), json!({ "notes": ["c"] }), true);
        check(json!({ "notes": ["a"] }), json!({ "notes": [] }), false);
    }
}
