//! The body of a request.

use std::borrow::Cow;

use harness_core::Json;
use serde::Serialize;

use super::conversation::{self, SentItem};
use super::settings::translated;
use crate::http::client::Outgoing;
use crate::http::settings::object_text;

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
pub(super) fn body(outgoing: &Outgoing<'_>) -> Result<String, serde_json::Error> {
    let (request, names) = (outgoing.request, outgoing.names);
    let settings = translated(outgoing.settings.clone(), |name| names.to_wire(name).into_owned());
    let input = conversation::write(outgoing.turns, names);
    let mut fields = vec![("model", Json::string(outgoing.model))];
    if !request.prepared.instructions.is_empty() {
        fields.push(("instructions", Json::string(&request.prepared.instructions)));
    }
    fields.push(("input", Json::of(&input)?));
    let (offered, explains_calls) = outgoing.tools(input.iter().any(SentItem::is_call));
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
    fields.extend(Outgoing { settings: &settings, ..*outgoing }.settings());
    fields.push(("stream", Json::of(&true)?));
    Ok(object_text(&fields))
}
