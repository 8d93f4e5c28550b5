//! `docs/reference/events.md`, written from the schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const INTRODUCTION: &str = "\
# JSON events

`harness run --json` prints one object per line: events, deltas and the result. This page is generated from the types;
[events.schema.json](events.schema.json) is the same as a JSON Schema, which `harness schema --events` prints.

Ignore unknown keys and unknown types: new ones may be added in any version. A key without a value is omitted. Events are
numbered without gaps and are emitted after their record is stored; deltas are not stored. The last line is a `result`, an
`error` or `nothing_to_resume`. `harness serve` sends the same events as the field `event` of its server-sent `event`: see
[serve](../cookbook/serve-threads.md#follow-a-thread).
";

/// Fields that every event has.
const COMMON: [&str; 5] = ["seq", "at", "turn", "iteration", "origin"];

/// The page.
pub(crate) fn page(schema: &Value) -> String {
    let mut page = INTRODUCTION.to_owned();
    let definitions = schema["$defs"].as_object().unwrap();
    let events = definitions["Event"]["oneOf"].as_array().unwrap();
    page.push_str("\n## Fields of every event\n\n");
    table(&mut page, &events[0], |key| COMMON.contains(&key));
    page.push_str("| `type` | string | Kind of the event, listed below. |\n");
    page.push_str("\n## Events\n");
    for event in events {
        line(&mut page, event, |key| key != "type" && !COMMON.contains(&key));
    }
    page.push_str("\n## Other lines\n");
    for other in schema["anyOf"].as_array().unwrap().iter().skip(1) {
        line(&mut page, other, |key| key != "type");
    }
    types(&mut page, definitions);
    page
}

fn line(page: &mut String, schema: &Value, is_shown: impl Fn(&str) -> bool) {
    let name = schema["properties"]["type"]["const"].as_str().unwrap();
    writeln!(page, "\n### `{name}`\n\n{}", description(schema)).unwrap();
    if schema["properties"].as_object().unwrap().keys().any(|key| is_shown(key)) {
        page.push('\n');
        table(page, schema, is_shown);
    }
}

/// Types that are objects or have variants, by name, and then those that are plain values.
fn types(page: &mut String, definitions: &Map<String, Value>) {
    page.push_str("\n## Types\n");
    let mut plain = String::new();
    let mut names: Vec<&String> = definitions.keys().filter(|name| *name != "Event").collect();
    names.sort_unstable();
    for name in names {
        let schema = &definitions[name];
        if is_plain(schema) {
            let kind = kind(schema);
            writeln!(plain, "| `{name}` | {kind} | {} |", description(schema)).unwrap();
            continue;
        }
        writeln!(page, "\n### {name}\n\n{}\n", description(schema)).unwrap();
        match schema["oneOf"].as_array() {
            Some(variants) => variants_of(page, variants),
            None => table(page, schema, |_| true),
        }
    }
    write!(page, "\n### Plain values\n\n| type | JSON | meaning |\n|---|---|---|\n{plain}").unwrap();
}

fn is_plain(schema: &Value) -> bool {
    schema["oneOf"].is_null() && schema["properties"].is_null()
}

fn table(page: &mut String, schema: &Value, is_shown: impl Fn(&str) -> bool) {
    page.push_str("| key | type | meaning |\n|---|---|---|\n");
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (key, property) in schema["properties"].as_object().unwrap().iter().filter(|(key, _)| is_shown(key)) {
        let optional = if required.iter().any(|name| name == key) { "" } else { "?" };
        writeln!(page, "| `{key}`{optional} | {} | {} |", kind(property), description(property)).unwrap();
    }
}

fn variants_of(page: &mut String, variants: &[Value]) {
    page.push_str("| value | type | meaning |\n|---|---|---|\n");
    for variant in variants {
        let description = description(variant);
        if let Some(constant) = variant["const"].as_str() {
            writeln!(page, "| `\"{constant}\"` | | {description} |").unwrap();
            continue;
        }
        if let Some(values) = variant["enum"].as_array() {
            for value in values {
                writeln!(page, "| `{value}` | | {description} |").unwrap();
            }
            continue;
        }
        let (key, property) = variant["properties"].as_object().unwrap().iter().next().unwrap();
        let (value, kind) = match property["const"].as_str() {
            Some(tag) => (format!("`\"{key}\": \"{tag}\"`"), kind(variant)),
            None => (format!("`{{\"{key}\": …}}`"), kind(property)),
        };
        writeln!(page, "| {value} | {kind} | {description} |").unwrap();
    }
}

/// The type of a value, linked to its table.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", anchor(name));
    }
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(constant) = schema["const"].as_str() {
        return format!("`\"{constant}\"`");
    }
    if let Some(names) = schema["type"].as_array() {
        return names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => list(schema),
        Some("object") if schema["properties"].is_object() => {
            let fields = schema["properties"].as_object().unwrap();
            let fields = fields.iter().map(|(key, property)| format!("`{key}`: {}", kind(property)));
            format!("object: {}", fields.collect::<Vec<_>>().join(", "))
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

fn list(schema: &Value) -> String {
    if let Some(items) = schema["prefixItems"].as_array() {
        return format!("[{}]", items.iter().map(kind).collect::<Vec<_>>().join(", "));
    }
    format!("list of {}", kind(&schema["items"]))
}

/// The heading with the table of a type.
fn anchor(name: &str) -> String {
    let plain =
        name.ends_with("Id") || ["Cost", "Millis", "Time", "CallDigest", "FinishReason"].contains(&name);
    if plain || name.ends_with("Name") { "plain-values".to_owned() } else { name.to_lowercase() }
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}
