//! Comparing JSON where only what is expected counts.

use serde_json::Value;

/// Every key of `expected` must be in `got` and match; lists match in length and order. Texts may be
/// `$nonempty`, `$prefix:X` or `$contains:X`. Of the message of an error only whether it says something counts.
pub(super) fn matches(path: &str, expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(want), Value::Object(have)) => want.iter().try_for_each(|(key, want)| {
            matches(&format!("{path}.{key}"), want, have.get(key).unwrap_or(&Value::Null))
        }),
        (Value::Array(want), Value::Array(have)) if want.len() == have.len() => want
            .iter()
            .zip(have)
            .enumerate()
            .try_for_each(|(at, (want, have))| matches(&format!("{path}[{at}]"), want, have)),
        (Value::String(_), Value::String(have)) if path.ends_with(".error.message") && !have.is_empty() => {
            Ok(())
        }
        (Value::String(want), Value::String(have)) if text_matches(want, have) => Ok(()),
        (want, have) if want == have => Ok(()),
        (want, have) => Err(format!("{path}: expected {want}, got {have}")),
    }
}

/// Sets a key of an object.
pub(super) fn put(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(entries) = object {
        entries.insert(key.to_owned(), value);
    }
}

fn text_matches(want: &str, have: &str) -> bool {
    if want == "$nonempty" {
        !have.is_empty()
    } else if let Some(prefix) = want.strip_prefix("$prefix:") {
        have.starts_with(prefix)
    } else if let Some(part) = want.strip_prefix("$contains:") {
        have.contains(part)
    } else {
        want == have
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
        check(json!({"a": 1}), json!({}), Some("x.a: expected 1, got null"));
        check(json!([1]), json!([1, 2]), Some("x: expected [1], got [1,2]"));
        check(json!("$prefix:ab"), json!("abc"), None);
        check(json!("$contains:b"), json!("abc"), None);
        check(json!("$nonempty"), json!(""), Some(r#"x: expected "$nonempty", got """#));
    }
}
