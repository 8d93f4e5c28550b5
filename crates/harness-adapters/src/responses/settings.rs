//! Settings in this protocol's words, whichever of the two vocabularies they were written in.

use harness_core::Json;
use serde::Deserialize;

use crate::http::settings::Settings;

#[derive(Debug, Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    json_schema: Option<Json>,
}

#[derive(Debug, Deserialize)]
struct FunctionChoice {
    function: FunctionName,
}

#[derive(Debug, Deserialize)]
struct FunctionName {
    name: String,
}

/// Translates `settings`; `to_wire` gives the name under which a tool is sent.
pub(super) fn translated(mut settings: Settings, to_wire: impl Fn(&str) -> String) -> Settings {
    let limits = [settings.take("max_completion_tokens"), settings.take("max_tokens")];
    if let Some(limit) = limits.into_iter().flatten().next() {
        settings.set_missing("max_output_tokens", limit);
    }
    if let Some(effort) = settings.take("reasoning_effort") {
        add(&mut settings, "reasoning", "effort", effort);
    }
    if let Some(verbosity) = settings.take("verbosity") {
        add(&mut settings, "text", "verbosity", verbosity);
    }
    if let Some(format) = settings.take("response_format") {
        let format = flattened(&format).unwrap_or(format);
        add(&mut settings, "text", "format", format);
    }
    let choice = settings.get("tool_choice").and_then(|choice| choice.to::<FunctionChoice>().ok());
    if let Some(choice) = choice {
        let name = Json::string(&to_wire(&choice.function.name));
        let choice = Json::object([("type", Json::string("function")), ("name", name)]);
        settings.set("tool_choice".to_owned(), choice);
    }
    settings.set_missing("store", Json::of(&false).unwrap_or_default());
    settings.set_missing("include", Json::of(&["reasoning.encrypted_content"]).unwrap_or_default());
    settings
}

/// Adds an entry to the object `key`, unless it has one of that name.
fn add(settings: &mut Settings, key: &str, entry: &str, value: Json) {
    let mut entries = settings.get(key).and_then(|object| object.entries().ok()).unwrap_or_default();
    if !entries.iter().any(|(known, _)| known == entry) {
        entries.push((entry.to_owned(), value));
    }
    settings.set(key.to_owned(), Json::object(entries));
}

/// A `response_format` without the level that this protocol does not have; `None` when it has none.
fn flattened(given: &Json) -> Option<Json> {
    let format: ResponseFormat = given.to().ok()?;
    let mut entries = vec![("type".to_owned(), Json::string(&format.kind))];
    entries.extend(format.json_schema?.entries().ok()?);
    Some(Json::object(entries))
}
