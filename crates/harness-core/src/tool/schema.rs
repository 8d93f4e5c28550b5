//! JSON Schema validation: the port, and a validator of the common keywords.

use std::sync::Arc;

use serde_json::Value;

/// Validates data against JSON Schemas. The validator of harness-tools (feature `schema-validation`) supports all of JSON
/// Schema.
pub trait SchemaValidator: Send + Sync {
    /// Validates `data`.
    ///
    /// # Errors
    /// The first problem of the data or of the schema.
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String>;

    /// Whether `schema` is a JSON Schema at all. Default: whether it is an object.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        if schema.is_object() { Ok(()) } else { Err("expected an object".to_owned()) }
    }
}

impl<S: SchemaValidator + ?Sized> SchemaValidator for Arc<S> {
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String> {
        (**self).check(schema, data)
    }

    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        (**self).check_schema(schema)
    }
}

/// Validates `type` and `required` of the top level only.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShallowSchemas;

impl SchemaValidator for ShallowSchemas {
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String> {
        if !has_type(schema, data) {
            return Err(format!("expected {}", types_of(schema).collect::<Vec<_>>().join(" or ")));
        }
        let missing: Vec<&str> = required(schema).filter(|key| data.get(key).is_none()).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("missing required fields: {}", missing.join(", ")))
        }
    }
}

/// Validator of parts of one schema, bounded by the number of values that it visits. It distinguishes variants of a schema.
///
/// Supported: `type`, `const`, `enum`, `required`, `properties`, `additionalProperties`, `items`, `prefixItems`, bounds of
/// numbers, texts and lists, `allOf`, `anyOf`, `oneOf`, `not`, and `$ref` inside of the schema. Other keywords are left to
/// the tool.
pub(super) struct Fits<'s> {
    root: &'s Value,
    left: u32,
}

impl<'s> Fits<'s> {
    pub(super) fn new(root: &'s Value, most: u32) -> Self {
        Self { root, left: most }
    }

    /// Counts one visited value. Returns the levels that are left below it; `None` beyond the bounds.
    pub(super) fn enter(&mut self, deep: u32) -> Option<u32> {
        self.left = self.left.saturating_sub(1);
        let below = deep.checked_sub(1).filter(|_| self.left > 0);
        if below.is_none() {
            self.left = 0;
        }
        below
    }

    /// Whether a bound was reached.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Resolves a `$ref` inside of the schema.
    pub(super) fn referred(&self, schema: &Value) -> Option<&'s Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// Whether `data` fits; false beyond the bounds.
    pub(super) fn check(&mut self, schema: &Value, data: &Value, deep: u32) -> bool {
        let Some(deep) = self.enter(deep) else { return false };
        if let Some(anything) = schema.as_bool() {
            return anything;
        }
        has_type(schema, data)
            && is_listed(schema, data)
            && is_bounded(schema, data)
            && self.referred(schema).is_none_or(|target| self.check(target, data, deep))
            && self.is_combined(schema, data, deep)
            && self.has_fields(schema, data, deep)
            && self.has_items(schema, data, deep)
    }

    fn is_combined(&mut self, schema: &Value, data: &Value, deep: u32) -> bool {
        let parts = |key| schema.get(key).and_then(Value::as_array);
        let one_of = match parts("oneOf") {
            Some(variants) => variants.iter().filter(|variant| self.check(variant, data, deep)).count() == 1,
            None => true,
        };
        one_of
            && parts("allOf").is_none_or(|all| all.iter().all(|part| self.check(part, data, deep)))
            && parts("anyOf").is_none_or(|any| any.iter().any(|part| self.check(part, data, deep)))
            && schema.get("not").is_none_or(|not| !self.check(not, data, deep))
    }

    fn has_fields(&mut self, schema: &Value, data: &Value, deep: u32) -> bool {
        let Some(fields) = data.as_object() else { return true };
        if required(schema).any(|key| !fields.contains_key(key)) {
            return false;
        }
        let (declared, others) = (schema.get("properties"), schema.get("additionalProperties"));
        fields.iter().all(|(key, value)| {
            let schema = declared.and_then(|declared| declared.get(key)).or(others);
            schema.is_none_or(|schema| self.check(schema, value, deep))
        })
    }

    fn has_items(&mut self, schema: &Value, data: &Value, deep: u32) -> bool {
        let Some(values) = data.as_array() else { return true };
        let items = schema.get("items");
        let first = schema.get("prefixItems").or(items).and_then(Value::as_array);
        let rest = items.filter(|items| !items.is_array());
        values.iter().enumerate().all(|(at, value)| {
            let declared = first.and_then(|first| first.get(at)).or(rest);
            declared.is_none_or(|schema| self.check(schema, value, deep))
        })
    }
}

/// Iterates over the declared types.
pub(super) fn types_of(schema: &Value) -> impl Iterator<Item = &str> {
    let declared = schema.get("type");
    let many = declared.and_then(Value::as_array).into_iter().flatten();
    declared.into_iter().chain(many).filter_map(Value::as_str)
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn has_type(schema: &Value, data: &Value) -> bool {
    let is_of = |name: &str| match name {
        "object" => data.is_object(),
        "array" => data.is_array(),
        "string" => data.is_string(),
        "number" => data.is_number(),
        "integer" => data.is_i64() || data.is_u64() || data.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => data.is_boolean(),
        "null" => data.is_null(),
        _ => true,
    };
    let mut types = types_of(schema).peekable();
    types.peek().is_none() || types.any(is_of)
}

fn is_listed(schema: &Value, data: &Value) -> bool {
    let listed = schema.get("enum").and_then(Value::as_array);
    schema.get("const").is_none_or(|only| is_equal(only, data))
        && listed.is_none_or(|listed| listed.iter().any(|one| is_equal(one, data)))
}

/// Whether values are equal; 1 and 1.0 are.
fn is_equal(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|number| Some(number) == b.as_f64())
}

fn is_bounded(schema: &Value, data: &Value) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let between = |size: f64, least: &str, most: &str| {
        bound(least).is_none_or(|least| size >= least) && bound(most).is_none_or(|most| size <= most)
    };
    #[expect(clippy::cast_precision_loss, reason = "lengths beyond 2^53 do not exist")]
    let size = |length: usize| length as f64;
    match data {
        Value::Number(number) => number.as_f64().is_none_or(|number| {
            between(number, "minimum", "maximum")
                && bound("exclusiveMinimum").is_none_or(|least| number > least)
                && bound("exclusiveMaximum").is_none_or(|most| number < most)
        }),
        Value::String(text) => between(size(text.chars().count()), "minLength", "maxLength"),
        Value::Array(values) => between(size(values.len()), "minItems", "maxItems"),
        Value::Object(fields) => between(size(fields.len()), "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => true,
    }
}
