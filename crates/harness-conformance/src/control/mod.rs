//! Vectors of the control plane: work items, artifacts and contracts.

mod contract;
mod decision;
mod hooks;
mod repair;
mod steering;
mod stop;
mod whole;
mod work;

use harness_core::work::{AuditReport, clean_artifact};
use serde_json::{Value, json};

use super::turn::compare::same;
use super::turn::convert::{Done, at, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Texts for people and models: only whether there is one is compared.
const FREE: [&str; 8] = [
    "message",
    "reason_message",
    "value",
    "suggestions",
    "error",
    "outputs",
    "reminder",
    "control_invariant",
];

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Done<()> {
    let input = at(vector, "input");
    let mut got = match text(vector, "kind") {
        "artifact-cleaning" => cleaning(text(input, "artifact")),
        "control-artifact" => audit(text(input, "artifact")),
        "contract" => contract::run(input)?,
        "hooks" => hooks::run(input)?,
        "jit" => steering::jit(input),
        "repair" => repair::run(input)?,
        "run" => whole::run(input)?,
        "stall" => steering::stall(input),
        "stop-decision" => stop::run(input)?,
        "work-items" => work::run(input)?,
        other => return Err(format!("`{other}` is no kind of the control plane")),
    };
    let mut wanted = at(vector, "wanted").clone();
    if let Some(keys) = at(vector, "compare").as_array() {
        for value in [&mut wanted, &mut got] {
            if let Some(map) = value.as_object_mut() {
                map.retain(|key, _| keys.iter().any(|wanted| wanted == key));
            }
        }
    }
    match text(vector, "kind") {
        "repair" => repair::without_owner_mode(&mut wanted),
        "stall" => steering::without_values(&mut wanted),
        "stop-decision" => stop::without_early_deliverables(&mut wanted),
        "run" => whole::only_wanted(&wanted, &mut got),
        _ => {}
    }
    unword(&mut wanted);
    unword(&mut got);
    same("wanted", &wanted, &got)
}

/// Replaces free texts by whether there is one.
fn unword(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let is_free = FREE.contains(&key.as_str());
                if let (true, Some(text)) = (is_free, value.as_str()) {
                    *value = json!(!text.is_empty());
                } else if let (true, Some(texts)) = (is_free, value.as_array()) {
                    *value = json!(texts.len());
                } else {
                    unword(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(unword),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn cleaning(artifact: &str) -> Value {
    let cleaned = clean_artifact(artifact);
    let is_clean = cleaned.removed.is_empty();
    json!({
        "level": if is_clean { "clean" } else { "light_contamination" },
        "cleaned_content": cleaned.text,
        "removed_lines": cleaned.removed,
        "message": if is_clean { "" } else { "lines were removed" },
    })
}

fn audit(artifact: &str) -> Value {
    let fault = AuditReport::parse(artifact).err();
    json!({ "valid": fault.is_none(), "error": fault.map(|fault| fault.to_string()).unwrap_or_default() })
}
