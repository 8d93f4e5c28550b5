//! The body of a request.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::port::ModelRequest;
use serde::Serialize;

use super::history::{self, Sent};
use crate::history::{Target, prepare};
use crate::http::names::ToolNames;
use crate::http::settings::{Settings, object_text};
use crate::http::{CacheControl, PromptCache};

/// Keys of the body that the adapter writes itself.
pub(crate) const RESERVED: [&str; 6] = ["model", "messages", "tools", "stream", "stream_options", "n"];

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

/// Writes the body: model, messages, tools, settings in their order, streaming last where it is wanted.
pub(crate) fn body(
    request: &ModelRequest,
    target: Target<'_>,
    names: &ToolNames,
    settings: &Settings,
    cache: PromptCache,
    streams: bool,
) -> Result<String, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.view.len());
    request.view.for_each(|message| messages.push(&**message));
    let mark = CacheControl::of(cache).filter(|_| !settings.has("cache_control"));
    let turns = prepare(messages.into_iter(), target);
    let messages: Vec<Sent<'_>> = history::convert(&request.prepared.instructions, &turns, names, mark);
    let mut fields = vec![("model", Json::string(target.model)), ("messages", Json::of(&messages)?)];
    // Some providers refuse a conversation with calls in it when the tools are missing.
    let explains_calls = !request.with_tools && messages.iter().any(Sent::has_calls);
    let offered = if explains_calls { &request.prepared.tools } else { request.tools() };
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
    for (key, value) in settings.entries() {
        // Endpoints refuse these two when no tool comes with them.
        if !request.tools().is_empty() || !matches!(key.as_str(), "tool_choice" | "parallel_tool_calls") {
            fields.push((key, value.clone()));
        }
    }
    if streams {
        fields.push(("stream", Json::of(&true)?));
        fields.push(("stream_options", Json::parse(r#"{"include_usage":true}"#)?));
    }
    Ok(object_text(&fields))
}
