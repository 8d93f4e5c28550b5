//! The body of a request.

use std::borrow::Cow;

use harness_core::Json;
use serde::Serialize;

use super::history::{self, Sent};
use crate::http::client::Outgoing;
use crate::http::settings::object_text;
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
pub(super) fn body(
    outgoing: &Outgoing<'_>,
    cache: PromptCache,
    streams: bool,
) -> Result<String, serde_json::Error> {
    let Outgoing { request, turns, names, settings, .. } = *outgoing;
    let mark = CacheControl::of(cache).filter(|_| !settings.has("cache_control"));
    let messages: Vec<Sent<'_>> = history::convert(&request.prepared.instructions, turns, names, mark);
    let mut fields = vec![("model", Json::string(outgoing.model)), ("messages", Json::of(&messages)?)];
    let (offered, explains_calls) = outgoing.tools(messages.iter().any(Sent::has_calls));
    if !offered.is_empty() {
        let tools = offered.iter().map(|tool| SentTool {
            kind: "function",
            function: SentFunction {
                name: names.to_wire(tool.name.as_str()),
                description: &tool.description,
                parameters: tool.input_schema.as_ref(),
            },
        });
        fields.push(("tools", Json::of(&tools.collect::<Vec<_>>())?));
        if explains_calls {
            fields.push(("tool_choice", Json::string("none")));
        } else if !settings.has("tool_choice") {
            fields.push(("tool_choice", Json::string("auto")));
        }
    }
    fields.extend(outgoing.settings());
    if streams {
        fields.push(("stream", Json::of(&true)?));
        fields.push(("stream_options", Json::parse(r#"{"include_usage":true}"#)?));
    }
    Ok(object_text(&fields))
}
