//! What vectors of adapters have in common, and what is compared loosely in them.

use harness_core::{Json, Time};
use serde::Deserialize;
use serde_json::Value;

use crate::turn::convert::{Done, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Plays a vector against the server at a URL and gives the result in the source's form.
pub(super) type Play = fn(&Value, &str) -> Done<Value>;

/// Keys of a failure's own words in a result.
const MESSAGES: [&str; 3] = ["message", "reason", "error"];

/// Under this key a vector has its input as it is written: keys in their order, numbers exact.
pub(super) const WRITTEN_INPUT: &str = "<input as written>";

/// Judges a vector.
pub(super) fn each(vector: &Vector, check: impl Fn(&Value) -> Done<()>) -> Verdict {
    match written(vector) {
        Ok(value) => check(&value).into(),
        Err(fault) => Verdict::Failed(fault),
    }
}

/// The vector, with its input as it is written beside it.
fn written(vector: &Vector) -> Done<Value> {
    #[derive(Deserialize)]
    struct Written {
        input: Option<Json>,
    }
    let mut value = vector.value.clone();
    if let (Some(map), Some(input)) = (value.as_object_mut(), vector.parse::<Written>()?.input) {
        map.insert(WRITTEN_INPUT.to_owned(), Value::from(input.text()));
    }
    Ok(value)
}

/// The code that plays the vector's adapter.
pub(super) fn of_adapter(table: &[(&str, Play)], vector: &Value) -> Done<Play> {
    let name = text(vector, "adapter");
    let found = table.iter().find(|(known, _)| *known == name).map(|(_, play)| *play);
    found.ok_or_else(|| format!("`{name}` is no adapter that can be played"))
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

/// Runs one step on a runtime of its own.
pub(super) fn on_a_runtime<T>(play: impl Future<Output = T>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|e| e.to_string())?.block_on(play))
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
