//! The body of a request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::port::ModelRequest;
use serde::Serialize;

use super::conversation::{self, SentItem};
use super::settings::translated;
use crate::history::{Target, prepare};
use crate::http::names::ToolNames;
use crate::http::settings::{Settings, object_text};

/// Keys of the body that the adapter writes itself.
pub(super) const RESERVED: [&str; 6] = ["model", "instructions", "input", "tools", "stream", "background"];

#[derive(Serialize)]
struct SentTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Option<&'a Json>,
    strict: bool,
}

/// Writes the body: model, instructions, conversation, tools, settings in their order, streaming last.
pub(super) fn body(
    request: &ModelRequest,
    target: Target<'_>,
    names: &ToolNames,
    settings: Settings,
) -> Result<String, serde_json::Error> {
    let settings = translated(settings, |name| names.to_wire(name).into_owned());
    let mut messages = Vec::with_capacity(request.view.len());
    request.view.for_each(|message| messages.push(&**message));
    let turns = prepare(messages.into_iter(), target);
    let input = conversation::write(&turns, names);
    let mut fields = vec![("model", Json::string(target.model))];
    if !request.prepared.instructions.is_empty() {
        fields.push(("instructions", Json::string(&request.prepared.instructions)));
    }
    fields.push(("input", Json::of(&input)?));
    // Some providers refuse a conversation with calls in it when the tools are missing.
    let explains_calls = !request.with_tools && input.iter().any(SentItem::is_call);
    let offered = if explains_calls { &request.prepared.tools } else { request.tools() };
    if !offered.is_empty() {
        let tools = offered.iter().map(|tool| SentTool {
            kind: "function",
            name: names.to_wire(tool.name.as_str()),
            description: &tool.description,
            parameters: tool.input_schema.as_ref(),
            strict: false,
        });
        fields.push(("tools", Json::of(&tools.collect::<Vec<_>>())?));
        if explains_calls {
            fields.push(("tool_choice", Json::string("none")));
        }
    }
    for (key, value) in settings.entries() {
        // Endpoints refuse these two when no tool comes with them.
        if !request.tools().is_empty() || !matches!(key.as_str(), "tool_choice" | "parallel_tool_calls") {
            fields.push((key, value.clone()));
        }
    }
    fields.push(("stream", Json::of(&true)?));
    Ok(object_text(&fields))
}
