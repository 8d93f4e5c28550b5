//! From a JSON Schema to the part of the language that strict modes understand.

use harness_core::Json;

use crate::AdapterError;

/// Notes that providers refuse or that say nothing to a model.
const NOTES: [&str; 3] = ["$schema", "title", "default"];

/// The schema in strict form.
pub(super) fn transform(schema: &Json) -> Result<Json, AdapterError> {
    if !schema.is_object() {
        return Err(fault("", "is not an object"));
    }
    of_schema(schema, "")
}

fn fault(path: &str, what: &str) -> AdapterError {
    let place = if path.is_empty() { "the schema".to_owned() } else { format!("`{path}`") };
    AdapterError::OutputSchema { reason: format!("{place} {what}") }
}

/// Converts the schema at a JSON pointer; `true`, `false` and non-schemas are unchanged.
fn of_schema(schema: &Json, path: &str) -> Result<Json, AdapterError> {
    let Ok(entries) = schema.entries() else { return Ok(schema.clone()) };
    let is_object = entries
        .iter()
        .any(|(key, value)| key == "properties" || (key == "type" && (value.text().contains(r#""object""#))));
    let mut out = Vec::with_capacity(entries.len().saturating_add(2));
    for (key, value) in entries {
        let below = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
        let is_note = NOTES.contains(&key.as_str()) || (key == "format" && value.text().contains("int"));
        let value = match key.as_str() {
            _ if is_note => continue,
            "required" if is_object => continue,
            "additionalProperties" if is_object => {
                let is_closed = matches!(value.text(), "false" | "true" | "{}");
                if !is_closed {
                    return Err(fault(&below, "describes free keys, which strict mode cannot express"));
                }
                continue;
            }
            "patternProperties" => {
                return Err(fault(&below, "describes free keys, which strict mode cannot express"));
            }
            "properties" | "$defs" | "definitions" => of_map(&value, &below)?,
            "items" | "anyOf" | "oneOf" | "allOf" | "prefixItems" | "not" | "contains" => {
                of_any(&value, &below)?
            }
            _ => value,
        };
        let key = if key == "oneOf" { "anyOf".to_owned() } else { key };
        out.push((key, value));
    }
    if is_object {
        let required = keys_of(&out);
        if !out.iter().any(|(key, _)| key == "properties") {
            out.push(("properties".to_owned(), Json::empty_object()));
        }
        out.push(("required".to_owned(), required));
        out.push(("additionalProperties".to_owned(), literal("false")));
    }
    Ok(Json::object(out))
}

/// A schema, or a list of them.
fn of_any(value: &Json, path: &str) -> Result<Json, AdapterError> {
    let Ok(list) = value.to::<Vec<Json>>() else { return of_schema(value, path) };
    let list = list.iter().zip(0_usize..).map(|(schema, at)| of_schema(schema, &format!("{path}/{at}")));
    let list: Vec<Json> = list.collect::<Result<_, _>>()?;
    Ok(Json::of(&list).unwrap_or_default())
}

/// Schemas by name; the names are not looked at.
fn of_map(value: &Json, path: &str) -> Result<Json, AdapterError> {
    let Ok(entries) = value.entries() else { return Ok(value.clone()) };
    let schemas = entries.into_iter().map(|(name, schema)| {
        let below = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        Ok((name, of_schema(&schema, &below)?))
    });
    Ok(Json::object(schemas.collect::<Result<Vec<_>, AdapterError>>()?))
}

fn keys_of(entries: &[(String, Json)]) -> Json {
    let properties = entries.iter().find(|(key, _)| key == "properties");
    let properties = properties.and_then(|(_, value)| value.entries().ok()).unwrap_or_default();
    let names: Vec<String> = properties.into_iter().map(|(name, _)| name).collect();
    Json::of(&names).unwrap_or_default()
}

fn literal(text: &str) -> Json {
    Json::parse(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, expected: &str) {
        let strict = transform(&Json::parse(schema).unwrap());
        let told = strict.map_or_else(|fault| fault.to_string(), |schema| schema.text().to_owned());
        assert_eq!(told, expected);
    }

    #[test]
    fn every_key_is_required_and_no_other_allowed_at_every_level() {
        check(
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}},"c":{"type":"array","items":{"properties":{"d":{}},"required":[]}}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false},"c":{"type":"array","items":{"properties":{"d":{}},"required":["d"],"additionalProperties":false}}},"required":["a","c"],"additionalProperties":false}"#,
        );
        check(
            r#"{"type":["object","null"]}"#,
            r#"{"type":["object","null"],"properties":{},"required":[],"additionalProperties":false}"#,
        );
    }

    #[test]
    fn notes_go_but_keys_of_their_names_stay() {
        check(
            r#"{"$schema":"x","title":"T","properties":{"title":{"type":"string","default":""},"default":{"type":"integer","format":"uint32"}}}"#,
            r#"{"properties":{"title":{"type":"string"},"default":{"type":"integer"}},"required":["title","default"],"additionalProperties":false}"#,
        );
        check(r#"{"type":"string","format":"date"}"#, r#"{"type":"string","format":"date"}"#);
    }

    #[test]
    fn alternatives_and_definitions_are_followed() {
        check(
            r##"{"oneOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},{"type":"null"}],"$defs":{"n":{"properties":{}}}}"##,
            r##"{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"additionalProperties":false},{"type":"null"}],"$defs":{"n":{"properties":{},"required":[],"additionalProperties":false}}}"##,
        );
    }

    #[test]
    fn values_are_not_taken_for_schemas() {
        check(
            r#"{"enum":[{"title":"kept","properties":{}}],"const":{"title":1}}"#,
            r#"{"enum":[{"title":"kept","properties":{}}],"const":{"title":1}}"#,
        );
    }

    #[test]
    fn free_keys_are_refused_with_their_place() {
        check(
            r#"{"properties":{"a/b":{"type":"object","additionalProperties":{"type":"string"}}}}"#,
            "the output schema cannot be used: `/properties/a~1b/additionalProperties` describes free keys, which strict mode cannot express",
        );
        check("[]", "the output schema cannot be used: the schema is not an object");
    }
}
