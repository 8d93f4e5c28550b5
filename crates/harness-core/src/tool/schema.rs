//! JSON Schema, as far as somebody knows it.

use serde_json::Value;

/// Holds data against JSON Schemas. The one of the feature `schema-validation` of harness-tools knows all
/// of JSON Schema.
///
/// ```
/// use harness_core::tool::{SchemaValidator, ShallowSchemas};
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "required": ["city"] });
/// assert!(ShallowSchemas.check(&schema, &json!({ "city": "Oslo" })).is_ok());
/// ```
pub trait SchemaValidator: Send + Sync {
    /// Whether `data` fits `schema`.
    ///
    /// # Errors
    /// The first thing that does not fit, or why the schema is none.
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String>;
}

/// Checks the top level only: `type` and `required`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShallowSchemas;

impl SchemaValidator for ShallowSchemas {
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String> {
        let fits = match schema.get("type").and_then(Value::as_str) {
            Some("object") => data.is_object(),
            Some("array") => data.is_array(),
            Some("string") => data.is_string(),
            Some("number") => data.is_number(),
            Some("integer") => data.is_i64() || data.is_u64(),
            Some("boolean") => data.is_boolean(),
            Some("null") => data.is_null(),
            _ => true,
        };
        if !fits {
            return Err(format!(
                "the data is no {}",
                schema.get("type").and_then(Value::as_str).unwrap_or("?")
            ));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let missing: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|key| data.get(key).is_none())
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("required fields are missing: {}", missing.join(", ")))
        }
    }
}
