//! Vectors of kind `item-schema`.

use harness_core::Json;
use harness_memory::layer::{ItemCategory, ItemJudge, ItemSchema, ItemSchemas};
use serde_json::{Map, Value, json};

use super::{Done, each, error, list};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

const CATEGORIES: [(&str, ItemCategory); 4] = [
    ("items", ItemCategory::Items),
    ("developerMessages", ItemCategory::DeveloperMessages),
    ("toolCalls", ItemCategory::ToolCalls),
    ("toolResults", ItemCategory::ToolResults),
];

fn check(input: &Value) -> Done<Value> {
    let mut schemas = ItemSchemas::default();
    for name in list(input, "registered").iter().filter_map(Value::as_str) {
        schemas = schemas.with(ItemCategory::Items, ItemSchema::of_type(name));
    }
    let shapes = [
        ("registered_tool_results", ItemCategory::ToolResults),
        ("registered_tool_calls", ItemCategory::ToolCalls),
        ("registered_developer_messages", ItemCategory::DeveloperMessages),
    ];
    for (key, category) in shapes {
        if let Some(shape) = input.get(key).and_then(Value::as_object).cloned() {
            let fits = move |item: &Json| fits(&shape, item);
            schemas = schemas.with(category, ItemSchema::new(key, fits));
        }
    }
    let strict = input.get("strict").and_then(Value::as_bool).unwrap_or(true);
    let judge = ItemJudge::new(schemas).with_strict(strict);
    let wanted = input.get("category").and_then(Value::as_str);
    let category = CATEGORIES.iter().find(|(name, _)| Some(*name) == wanted).map(|(_, category)| *category);
    let mut results = Vec::new();
    for value in list(input, "values") {
        let item = Json::of(value).map_err(|e| e.to_string())?;
        let judged = match category {
            Some(category) => judge.check_as(category, &item),
            None => judge.check(&item),
        };
        results.push(match judged {
            Ok(()) => json!({"ok": item.to::<Value>().map_err(|e| e.to_string())?}),
            Err(fault) => json!({"error": error(&fault)}),
        });
    }
    Ok(json!({"results": results}))
}

/// Whether an item has these fields with values of these types.
fn fits(shape: &Map<String, Value>, item: &Json) -> bool {
    let Ok(item) = item.to::<Map<String, Value>>() else { return false };
    shape.iter().all(|(field, wanted)| {
        let kind = match item.get(field) {
            None => "undefined",
            Some(Value::Null) => "null",
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(_)) => "number",
            Some(Value::String(_)) => "string",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
        };
        wanted.as_str() == Some(kind)
    })
}
