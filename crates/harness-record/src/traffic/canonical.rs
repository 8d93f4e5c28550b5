//! What a model can see of a request, in one fixed form.

use harness_core::message::{Block, Message};
use harness_core::port::{ModelRequest, ThinkingLevel};
use harness_core::{Json, ModelName};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

#[derive(Serialize)]
struct Canonical<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a ModelName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'static str>,
    instructions: &'a str,
    messages: Vec<CanonicalMessage<'a>>,
    tools: Vec<CanonicalTool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CanonicalMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    content: Vec<&'a Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<&'a Json>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CanonicalTool<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a Json>,
}

/// The canonical form of a request.
pub(super) fn canonical(request: &ModelRequest) -> Result<Json, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.view.len());
    request.view.for_each(|message| messages.extend(visible(message)));
    let tools = request.tools().iter().map(|tool| CanonicalTool {
        name: tool.name.as_str(),
        description: &tool.description,
        input_schema: tool.input_schema.as_ref(),
    });
    Json::of(&Canonical {
        model: request.prepared.model.as_ref(),
        settings: request.prepared.settings.as_ref(),
        thinking: request.thinking.map(ThinkingLevel::as_str),
        instructions: &request.prepared.instructions,
        messages,
        tools: tools.collect(),
    })
}

/// `sha256:` and the digest of a canonical request in hexadecimal.
pub(super) fn digest(canonical: &Json) -> String {
    let bytes = Sha256::digest(canonical.text().as_bytes());
    bytes.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn visible(message: &Message) -> Option<CanonicalMessage<'_>> {
    let blocks = message.content().iter().filter(|block| is_visible(block)).collect();
    let mut out = CanonicalMessage {
        role: message.role(),
        name: None,
        tool_call_id: None,
        is_error: None,
        stop_reason: None,
        content: blocks,
        structured: None,
    };
    match message {
        Message::User(user) => out.name = user.name.as_deref(),
        Message::Assistant(assistant) => out.stop_reason = Some(assistant.stop_reason.as_str()),
        Message::ToolResult(result) => {
            out.tool_call_id = Some(result.tool_call_id.as_str());
            out.is_error = Some(result.is_error);
            out.structured = result.structured.as_ref().filter(|_| out.content.is_empty());
        }
        Message::Custom(custom) if !custom.to_model => return None,
        Message::System(_) | Message::Custom(_) | _ => {}
    }
    Some(out)
}

/// Blocks that some model may be sent; the others are for people and programs.
fn is_visible(block: &Block) -> bool {
    !matches!(block, Block::Error(_) | Block::Approval(_) | Block::Extension(_) | Block::Unknown(_))
}
