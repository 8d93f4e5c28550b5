//! The body of a request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::port::ModelRequest;
use serde::Serialize;

use super::history::{self, Sent, Target};
use super::names::ToolNames;
use crate::AdapterError;
use crate::raw::Object;

/// Keys of the body that the adapter writes itself.
const RESERVED: [&str; 6] = ["model", "messages", "tools", "stream", "stream_options", "n"];

/// Settings of a model in their order, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings(Vec<(String, Json)>);

impl Settings {
    pub(crate) fn parse(settings: &Json) -> Result<Self, AdapterError> {
        let object: Object<'_> = serde_json::from_str(settings.text())
            .map_err(|_| AdapterError::Settings { found: kind_of(settings) })?;
        let mut out = Self::default();
        for (key, value) in object.0 {
            if RESERVED.contains(&key.as_str()) {
                return Err(AdapterError::ReservedSetting { key });
            }
            if let Ok(value) = Json::parse(value.get()) {
                out.set(key, value);
            }
        }
        Ok(out)
    }

    /// These settings with those of `stronger` on top, key by key.
    pub(crate) fn overlaid(&self, stronger: Self) -> Self {
        let mut out = self.clone();
        for (key, value) in stronger.0 {
            out.set(key, value);
        }
        out
    }

    fn set(&mut self, key: String, value: Json) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((key, value)),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known == key)
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value.text().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[derive(Serialize)]
struct SentTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: SentFunction<'a>,
}

#[derive(Serialize)]
struct SentFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Json>,
}

/// Writes the body: model, messages, tools, settings in their order, streaming last.
pub(crate) fn body(
    request: &ModelRequest,
    target: Target<'_>,
    names: &ToolNames,
    settings: &Settings,
) -> Result<String, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.view.len());
    request.view.for_each(|message| messages.push(message));
    let messages: Vec<Sent<'_>> = history::convert(&request.offer.instructions, &messages, target, names);
    let mut fields = vec![("model", Json::string(target.model)), ("messages", Json::of(&messages)?)];
    // Some providers refuse a conversation with calls in it when the tools are missing.
    let explains_calls = !request.with_tools && messages.iter().any(Sent::has_calls);
    let offered = if explains_calls { &request.offer.tools } else { request.tools() };
    let tools: Vec<SentTool<'_>> = offered
        .iter()
        .map(|tool| SentTool {
            kind: "function",
            function: SentFunction {
                name: names.to_wire(tool.name.as_str()),
                description: &tool.description,
                parameters: tool.input_schema.as_ref(),
            },
        })
        .collect();
    if !tools.is_empty() {
        fields.push(("tools", Json::of(&tools)?));
        if explains_calls {
            fields.push(("tool_choice", Json::string("none")));
        } else if !settings.has("tool_choice") {
            fields.push(("tool_choice", Json::string("auto")));
        }
    }
    for (key, value) in &settings.0 {
        // Endpoints refuse these two when no tool comes with them.
        if !request.tools().is_empty() || !matches!(key.as_str(), "tool_choice" | "parallel_tool_calls") {
            fields.push((key, value.clone()));
        }
    }
    fields.push(("stream", Json::of(&true)?));
    fields.push(("stream_options", Json::parse(r#"{"include_usage":true}"#)?));
    Ok(object(&fields))
}

fn object(fields: &[(&str, Json)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{value}", Json::string(key))).collect();
    format!("{{{}}}", fields.join(","))
}
