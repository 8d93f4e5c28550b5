//! Comparing JSON where only what is expected counts.

use serde_json::Value;

/// How far figures may be apart and still count as equal.
const NOISE: f64 = 1e-6;

/// Every key of `expected` must be in `got` and match; lists match in length and order. Texts may be
/// `$nonempty`, `$prefix:X` or `$contains:X`. Of the message of an error only whether it says something counts, of a
/// diagnostic what is before the colon. What failed matches nothing that is expected to succeed.
pub(super) fn matches(path: &str, expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(want), Value::Object(have)) => {
            if let (None, Some(error)) = (want.get("error"), have.get("error").filter(|e| !e.is_null())) {
                return Err(format!("{path}: unexpected error {error}"));
            }
            want.iter().try_for_each(|(key, want)| match have.get(key) {
                Some(have) => matches(&format!("{path}.{key}"), want, have),
                None => Err(format!("{path}.{key}: expected {want}, got nothing")),
            })
        }
        (Value::Array(want), Value::Array(have)) if want.len() == have.len() => want
            .iter()
            .zip(have)
            .enumerate()
            .try_for_each(|(at, (want, have))| matches(&format!("{path}[{at}]"), want, have)),
        (Value::String(want), Value::String(have)) if text_matches(path, want, have) => Ok(()),
        (Value::Number(want), Value::Number(have)) if near(want, have) => Ok(()),
        (want, have) if want == have => Ok(()),
        (want, have) => Err(format!("{path}: expected {want}, got {have}")),
    }
}

fn text_matches(path: &str, want: &str, have: &str) -> bool {
    if path.ends_with(".error.message") {
        !have.is_empty()
    } else if path.contains(".diagnostics[") {
        want.split(':').next() == have.split(':').next()
    } else if want == "$nonempty" {
        !have.is_empty()
    } else if let Some(prefix) = want.strip_prefix("$prefix:") {
        have.starts_with(prefix)
    } else if let Some(part) = want.strip_prefix("$contains:") {
        have.contains(part)
    } else {
        want == have
    }
}

fn near(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() < NOISE)
}

/// Sets a key of an object.
pub(super) fn put(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(entries) = object {
        entries.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: Value, got: Value, difference: Option<&str>) {
        assert_eq!(matches("x", &expected, &got).err().as_deref(), difference);
    }

    #[test]
    fn only_what_is_expected_counts() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), None);
        check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), Some("x.a.b: expected 1, got 2"));
        check(json!({"a": 1}), json!({}), Some("x.a: expected 1, got nothing"));
        check(json!([1]), json!([1, 2]), Some("x: expected [1], got [1,2]"));
        check(json!("$prefix:ab"), json!("abc"), None);
        check(json!("$contains:b"), json!("abc"), None);
        check(json!("$nonempty"), json!(""), Some(r#"x: expected "$nonempty", got """#));
    }

    #[test]
    fn a_failure_is_no_success_without_a_value() {
        check(json!({"ok": null}), json!({"ok": null}), None);
        check(json!({"ok": null}), json!({"error": "no"}), Some(r#"x: unexpected error "no""#));
        check(json!({"ok": null}), json!({}), Some("x.ok: expected null, got nothing"));
    }
}
