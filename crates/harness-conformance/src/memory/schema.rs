//! Vectors of kind `item-schema`.

use std::collections::BTreeMap;

use harness_core::Json;
use harness_memory::layer::{ItemCategory, ItemSchema, ItemSchemas};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Done, each, error};
use crate::case::plain;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Types of which every object is welcome.
    #[serde(default)]
    registered: Vec<String>,
    /// Types of which objects with these fields are welcome.
    #[serde(default)]
    registered_fields: BTreeMap<String, Shape>,
    registered_tool_results: Option<Shape>,
    strict: Option<bool>,
    category: Option<ItemCategory>,
    values: Vec<Json>,
}

/// Fields that an object has to have.
type Shape = BTreeMap<String, Kind>;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    String,
    Number,
    Boolean,
}

fn check(input: Input) -> Done<Value> {
    let mut schemas = ItemSchemas::default();
    for name in input.registered {
        schemas = schemas.with(ItemCategory::Items, ItemSchema::of_type(name));
    }
    for (name, shape) in input.registered_fields {
        let of_type = ItemSchema::of_type(&*name);
        let accepts = move |item: &Json| of_type.accepts(item) && fits(&shape, item);
        schemas = schemas.with(ItemCategory::Items, ItemSchema::new(name, accepts));
    }
    if let Some(shape) = input.registered_tool_results {
        let schema = ItemSchema::new("tool results", move |item| fits(&shape, item));
        schemas = schemas.with(ItemCategory::ToolResults, schema);
    }
    schemas.strict = input.strict.unwrap_or(schemas.strict);
    let result = |item: &Json| {
        let judged = match input.category {
            Some(category) => schemas.check_as(category, item),
            None => schemas.check(item),
        };
        Ok(match judged {
            Ok(()) => json!({"ok": plain(item)?}),
            Err(fault) => json!({"error": error(&fault)}),
        })
    };
    Ok(json!({"results": input.values.iter().map(result).collect::<Done<Vec<_>>>()?}))
}

/// Whether an item has these fields with values of these kinds.
fn fits(shape: &Shape, item: &Json) -> bool {
    let Ok(item) = item.to::<Map<String, Value>>() else { return false };
    shape.iter().all(|(field, kind)| {
        item.get(field).is_some_and(|value| match kind {
            Kind::String => value.is_string(),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
        })
    })
}
