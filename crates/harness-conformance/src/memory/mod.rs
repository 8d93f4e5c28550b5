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

use crate::Done;
use crate::case::{each, exact, on_paused_time};

/// An error in the suite's form.
fn error(fault: &MemoryError) -> Value {
    let message = fault.to_string();
    if let MemoryError::ItemMismatch { category, item_type } = fault {
        let (category, item_type) = (category.to_string(), item_type.as_deref());
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
