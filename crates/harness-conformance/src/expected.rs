//! Comparing as the vectors of threads ask it: every expected key must be there and match.

use serde_json::Value;

/// Compares what is expected; keys that the vector does not name are not compared, lists match in length and
/// order, `$nonempty`, `$prefix:X` and `$contains:X` stand for texts.
pub(super) fn matches(path: &str, expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            if let (None, Some(error)) = (expected.get("error"), got.get("error").filter(|e| !e.is_null())) {
                return Err(format!("{path}: unexpected error {error}"));
            }
            expected.iter().try_for_each(|(key, value)| {
                matches(&format!("{path}.{key}"), value, got.get(key).unwrap_or(&Value::Null))
            })
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            (0..).zip(expected.iter().zip(got)).try_for_each(|(at, (expected, got)): (usize, _)| {
                matches(&format!("{path}[{at}]"), expected, got)
            })
        }
        (Value::String(pattern), Value::String(got)) if fits(pattern, got) => Ok(()),
        (expected, got) if expected == got => Ok(()),
        (expected, got) => Err(format!("{path}: expected {expected}, got {got}")),
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    if pattern == "$nonempty" {
        return !text.is_empty();
    }
    if let Some(start) = pattern.strip_prefix("$prefix:") {
        return text.starts_with(start);
    }
    pattern.strip_prefix("$contains:").map_or(pattern == text, |part| text.contains(part))
}
