//! The body of a request.

use harness_core::Json;
use serde::Serialize;

use super::conversation::{self, Conversation};
use super::settings::{Translated, translated};
use crate::http::client::Outgoing;
use crate::http::settings::object_text;
use crate::http::{CacheControl, PromptCache};

/// Keys of the body that the adapter writes itself.
pub(super) const RESERVED: [&str; 5] = ["model", "messages", "system", "tools", "stream"];

#[derive(Serialize)]
struct SentTool<'a> {
    name: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// Writes the body: model, limit, instructions, conversation, tools, settings in their order, streaming
/// last.
pub(super) fn body(outgoing: &Outgoing<'_>, cache: PromptCache) -> Result<String, serde_json::Error> {
    let names = outgoing.names;
    let own_marks = outgoing.settings.has("cache_control");
    let mark = CacheControl::of(cache).filter(|_| !own_marks);
    let to_wire = |name: &str| names.to_wire(name).into_owned();
    let Translated { fields: settings, max_tokens, tool_choice } =
        translated(outgoing.settings.clone(), to_wire);
    let Conversation { system, messages, has_calls } =
        conversation::write(&outgoing.request.prepared.instructions, outgoing.turns, names, mark);
    let mut fields = vec![("model", Json::string(outgoing.model)), ("max_tokens", max_tokens)];
    if !system.is_empty() {
        fields.push(("system", Json::of(&system)?));
    }
    fields.push(("messages", Json::of(&messages)?));
    let (offered, explains_calls) = outgoing.tools(has_calls);
    if !offered.is_empty() {
        let last = offered.len().saturating_sub(1);
        let tools = offered.iter().enumerate().map(|(position, tool)| SentTool {
            name: names.to_wire(tool.name.as_str()),
            description: &tool.description,
            input_schema: tool.input_schema.clone().unwrap_or_else(open_object),
            cache_control: mark.filter(|_| position == last),
        });
        fields.push(("tools", Json::of(&tools.collect::<Vec<_>>())?));
        let none = || Json::parse(r#"{"type":"none"}"#).ok();
        let choice = if explains_calls { none() } else { tool_choice };
        fields.extend(choice.map(|choice| ("tool_choice", choice)));
    }
    fields.extend(settings.entries().iter().map(|(key, value)| (key.as_str(), value.clone())));
    fields.push(("stream", Json::of(&true)?));
    Ok(object_text(&fields))
}

/// The schema of a tool that has none.
fn open_object() -> Json {
    Json::parse(r#"{"type":"object"}"#).unwrap_or_default()
}
