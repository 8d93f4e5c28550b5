//! Vectors of memory layers: every file holds many vectors of one kind.

pub(super) mod anchoring;
pub(super) mod budget;
mod items;
pub(super) mod projection;
pub(super) mod recall;
pub(super) mod schema;
mod scripted;
pub(super) mod stack;
pub(super) mod steering;
pub(super) mod view;

use harness_memory::MemoryError;
use serde_json::{Value, json};

use super::turn::convert::{Done, at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Judges what `check` makes of a vector's input against what is expected.
pub(super) fn each(vector: &Vector, check: fn(&Value) -> Done<Value>) -> Verdict {
    each_with(vector, check, |expected, got| matches("expected", expected, got))
}

/// The same with another comparison.
pub(super) fn each_with(
    vector: &Vector,
    check: fn(&Value) -> Done<Value>,
    compare: fn(&Value, &Value) -> Done<()>,
) -> Verdict {
    let got = check(at(&vector.value, "input"));
    got.and_then(|got| compare(at(&vector.value, "expected"), &got)).into()
}

/// Figures are compared with this tolerance.
const NOISE: f64 = 1e-6;

/// Every key of `expected` must be in `got` and match; lists match in length and order. An absent value is
/// null. Of the message of an error only whether it says something counts, of a diagnostic what is before the colon.
pub(super) fn matches(path: &str, expected: &Value, got: &Value) -> Done<()> {
    match (expected, got) {
        (Value::Object(want), Value::Object(have)) => want.iter().try_for_each(|(key, want)| {
            matches(&format!("{path}.{key}"), want, have.get(key).unwrap_or(&Value::Null))
        }),
        (Value::Array(want), Value::Array(have)) if want.len() == have.len() => (0..)
            .zip(want.iter().zip(have))
            .try_for_each(|(at, (want, have)): (usize, _)| matches(&format!("{path}[{at}]"), want, have)),
        (Value::String(_), Value::String(have)) if path.ends_with(".error.message") && !have.is_empty() => {
            Ok(())
        }
        (Value::String(want), Value::String(have)) if path.contains(".diagnostics[") => {
            let who = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
            if who(want) == who(have) { Ok(()) } else { Err(format!("{path}: expected {want}, got {have}")) }
        }
        (Value::Number(want), Value::Number(have)) if near(want, have) => Ok(()),
        (want, have) if want == have => Ok(()),
        (want, have) => Err(format!("{path}: expected {want}, got {have}")),
    }
}

fn near(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() < NOISE)
}

/// An error in the suite's form.
fn error(fault: &MemoryError) -> Value {
    let message = fault.to_string();
    if let MemoryError::ItemMismatch { category, item_type } = fault {
        let (category, item_type) = (category.as_str(), item_type.as_deref());
        return json!({
            "kind": "item_schema_mismatch", "category": category, "itemType": item_type, "message": message,
        });
    }
    match fault.kind() {
        "memory.invalid_budget_input" => json!({"code": "INVALID_BUDGET_INPUT", "message": message}),
        code if fault.is_config() => json!({"code": code, "message": message}),
        _ => json!({"message": message}),
    }
}
