//! Comparing JSON: the first difference, with its path.

use serde_json::Value;

/// How far two numbers may be apart and still count as equal: the source adds costs as doubles, the
/// product adds them exactly.
const NOISE: f64 = 1e-9;

/// Compares two values; the order of keys does not matter.
pub(crate) fn same(path: &str, expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(want), Value::Object(have)) => {
            for (key, value) in want {
                let have =
                    have.get(key).ok_or_else(|| format!("{path}.{key}: expected {value}, got nothing"))?;
                same(&format!("{path}.{key}"), value, have)?;
            }
            match have.iter().find(|(key, _)| !want.contains_key(*key)) {
                Some((key, value)) => Err(format!("{path}.{key}: expected nothing, got {value}")),
                None => Ok(()),
            }
        }
        (Value::Array(want), Value::Array(have)) => {
            for (at, (want, have)) in want.iter().zip(have).enumerate() {
                same(&format!("{path}[{at}]"), want, have)?;
            }
            match (want.get(have.len()), have.get(want.len())) {
                (Some(missing), _) => Err(format!("{path}[{}]: expected {missing}, got nothing", have.len())),
                (_, Some(extra)) => Err(format!("{path}[{}]: expected nothing, got {extra}", want.len())),
                (None, None) => Ok(()),
            }
        }
        (Value::Number(want), Value::Number(have)) if near(want, have) => Ok(()),
        (want, have) if want == have => Ok(()),
        (want, have) => Err(format!("{path}: expected {want}, got {have}")),
    }
}

fn near(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() < NOISE)
}

/// The value with only these keys of an object.
pub(super) fn only(value: &Value, keys: &[&str]) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    map.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// The value without these keys of an object.
pub(super) fn without(value: &Value, keys: &[&str]) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    map.iter().filter(|(key, _)| !keys.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: Value, got: Value, difference: Option<&str>) {
        assert_eq!(same("x", &expected, &got).err().as_deref(), difference);
    }

    #[test]
    fn the_first_difference_is_named_with_its_path() {
        check(json!({"a": 1, "b": [1, 0.3]}), json!({"b": [1.0, 0.1 + 0.2], "a": 1}), None);
        check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), Some("x.a.b: expected 1, got 2"));
        check(json!({"a": 1}), json!({}), Some("x.a: expected 1, got nothing"));
        check(json!({}), json!({"a": 1}), Some("x.a: expected nothing, got 1"));
        check(json!([1, 2]), json!([1]), Some("x[1]: expected 2, got nothing"));
        check(json!([1]), json!([1, 2]), Some("x[1]: expected nothing, got 2"));
    }
}
