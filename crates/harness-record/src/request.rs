//! The canonical form of a model request, and hashes over it.
//!
//! One form serves run records and recordings of model traffic:
//! `{messages, model, modelSettings, systemPrompt, thinking?, tools}`, without anything that differs between two equal
//! runs (times, durations, ids of the harness, usage). [`RequestFingerprint`](crate::RequestFingerprint) describes its
//! parts.

use std::fmt::Write as _;
use std::sync::Arc;

use harness_core::message::{Block, Message};
use harness_core::port::{ModelRequest, PreparedAgent, ThinkingLevel};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Plan, Span};
use harness_core::{Json, canonical};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Version of the form.
pub(super) const SCHEMA: &str = "request-fingerprint.v2";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestForm<'a> {
    messages: Vec<Json>,
    model: &'a str,
    model_settings: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Json>,
    system_prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'static str>,
    tools: Vec<ToolForm<'a>>,
}

/// A tool as a model sees it.
#[derive(Serialize)]
pub(super) struct ToolForm<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: Json,
}

impl<'a> ToolForm<'a> {
    pub(super) fn of(def: &'a ToolDef) -> Self {
        Self {
            name: def.name.as_str(),
            description: &def.description,
            parameters: def.input_schema.clone().unwrap_or_default(),
        }
    }
}

fn model_of(prepared: &PreparedAgent) -> &str {
    prepared.model.as_ref().map_or("[undefined]", |model| model.as_str())
}

/// Converts a request to its form. Numbers stay exact; [`canonical::hash`] of the form is the request hash.
pub(super) fn form(request: &ModelRequest) -> Result<Json, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.view.len());
    request.view.for_each(|message| messages.extend(items_of(message)));
    let prepared = &request.prepared;
    Json::of(&RequestForm {
        messages,
        model: model_of(prepared),
        model_settings: prepared.settings.clone().unwrap_or_default(),
        output: prepared.output.as_ref(),
        system_prompt: &prepared.instructions,
        thinking: request.thinking.map(ThinkingLevel::as_str),
        tools: request.tools().iter().map(ToolForm::of).collect(),
    })
}

/// Hashes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hashes {
    pub(super) request: String,
    pub(super) system_prompt: String,
    pub(super) messages: String,
    pub(super) tools: String,
    pub(super) settings: String,
    pub(super) message_count: u64,
    pub(super) tool_count: u64,
}

/// Parts of the hashes that depend on the agent alone.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentPart {
    system_prompt: String,
    tools: String,
    settings: String,
    tool_count: u64,
    /// Canonical text of the form after its messages.
    tail: String,
}

impl AgentPart {
    pub(super) fn of(prepared: &PreparedAgent) -> Self {
        let prompt = canonical::text(&Json::string(&prepared.instructions));
        let tools = canonical::text_of(&prepared.tools.iter().map(ToolForm::of).collect::<Vec<_>>());
        let tools = tools.unwrap_or_default();
        let settings = prepared.settings.as_ref().map_or_else(|| "{}".to_owned(), canonical::text);
        let model = canonical::text(&Json::string(model_of(prepared)));
        let output =
            prepared.output.as_ref().map(|schema| format!(r#""output":{},"#, canonical::text(schema)));
        let output = output.unwrap_or_default();
        // Canonical order of the keys: messages, model, modelSettings, output, systemPrompt, tools.
        let tail = format!(
            r#"],"model":{model},"modelSettings":{settings},{output}"systemPrompt":{prompt},"tools":{tools}}}"#
        );
        Self {
            system_prompt: canonical::sha256_hex(&prompt),
            tools: canonical::sha256_hex(&tools),
            settings: canonical::sha256_hex(&settings),
            tool_count: prepared.tools.len() as u64,
            tail,
        }
    }
}

/// Running hashes over the messages of a view. Each message is hashed once, when it is appended, unless a plan of
/// layers or compactor selects messages.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    list: Sha256,
    request: Sha256,
    count: u64,
    is_empty: bool,
}

impl Default for Messages {
    fn default() -> Self {
        let (mut list, mut request) = (Sha256::new(), Sha256::new());
        list.update(b"[");
        request.update(br#"{"messages":["#);
        Self { list, request, count: 0, is_empty: true }
    }
}

impl Messages {
    pub(super) fn push(&mut self, message: &Message) {
        self.count += 1;
        let mut text = String::new();
        for item in items_of(message) {
            if !std::mem::take(&mut self.is_empty) {
                text.push(',');
            }
            text.push_str(&canonical::text(&item));
        }
        self.list.update(text.as_bytes());
        self.request.update(text.as_bytes());
    }

    /// Hashes the messages that a plan selects from a transcript, of which the first `unknown` ones are missing.
    pub(super) fn planned(plan: &Plan, log: &[Arc<Message>], unknown: u64) -> Self {
        let unknown = usize::try_from(unknown).unwrap_or(usize::MAX);
        let mut shown = Self::default();
        for span in plan.spans.iter() {
            match span {
                Span::Kept(range) => {
                    let end = range.end.saturating_sub(unknown).min(log.len());
                    let from = range.start.saturating_sub(unknown).min(end);
                    let kept = log.get(from..end).unwrap_or_default();
                    for message in kept {
                        shown.push(message);
                    }
                }
                Span::Made(messages) => {
                    for message in messages.iter() {
                        shown.push(message);
                    }
                }
            }
        }
        shown
    }

    /// Hashes of a request with these messages.
    pub(super) fn hashes(&self, agent: &AgentPart) -> Hashes {
        let (mut list, mut request) = (self.list.clone(), self.request.clone());
        list.update(b"]");
        request.update(agent.tail.as_bytes());
        Hashes {
            request: hex(request),
            system_prompt: agent.system_prompt.clone(),
            messages: hex(list),
            tools: agent.tools.clone(),
            settings: agent.settings.clone(),
            message_count: self.count,
            tool_count: agent.tool_count,
        }
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[derive(Serialize)]
struct MessageForm<'a> {
    r#type: &'static str,
    role: &'static str,
    content: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallForm<'a> {
    r#type: &'static str,
    call_id: &'a str,
    name: &'a str,
    arguments: &'a Json,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputForm<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: Json,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// Converts a message to history items: what a model can see of it.
fn items_of(message: &Message) -> Vec<Json> {
    let mut items = Vec::new();
    let mut push = |item: Result<Json, serde_json::Error>| items.extend(item.ok());
    match message {
        Message::ToolResult(result) => {
            // Structured data is for programs, unless it is all there is.
            let structured = result.structured.clone().filter(|_| !result.content.iter().any(is_seen));
            let output = structured.unwrap_or_else(|| content(&result.content));
            let (call_id, is_error) = (result.tool_call_id.as_str(), result.is_error);
            push(Json::of(&OutputForm { r#type: "tool_call_output_item", call_id, output, is_error }));
        }
        Message::Custom(custom) if !custom.to_model => {}
        Message::System(_) | Message::User(_) | Message::Assistant(_) | Message::Custom(_) | _ => {
            let role = if matches!(message, Message::Custom(_)) { "user" } else { message.role() };
            let name = if let Message::User(user) = message { user.name.as_deref() } else { None };
            if message.content().iter().any(|block| is_seen(block) && block.as_tool_call().is_none()) {
                let content = content(message.content());
                push(Json::of(&MessageForm { r#type: "message", role, content, name }));
            }
            for call in message.content().iter().filter_map(Block::as_tool_call) {
                push(Json::of(&CallForm {
                    r#type: "tool_call_item",
                    call_id: call.id.as_str(),
                    name: call.name.as_str(),
                    arguments: &call.arguments,
                }));
            }
        }
    }
    items
}

/// Whether a model can see something of a message.
pub(super) fn is_shown(message: &Message) -> bool {
    !items_of(message).is_empty()
}

/// Joined text if all blocks are text, otherwise the blocks.
fn content(blocks: &[Block]) -> Json {
    let seen = || blocks.iter().filter(|block| is_seen(block) && block.as_tool_call().is_none());
    if seen().all(|block| block.as_text().is_some()) {
        let text: String = seen().filter_map(Block::as_text).collect();
        return Json::string(&text);
    }
    Json::of(&seen().collect::<Vec<_>>()).unwrap_or_default()
}

/// Whether a model may receive the block.
fn is_seen(block: &Block) -> bool {
    !matches!(block, Block::Error(_) | Block::Approval(_) | Block::Extension(_) | Block::Unknown(_))
}
