//! An assistant message under construction.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, FinishReason, Invalid, ToolCall, Usage};
use harness_core::{Json, ModelName};
use serde::Serialize;

use super::Undecoded;
use super::names::ToolNames;

/// Context for interpreting an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Value of `protocol` in messages.
    pub(crate) protocol: &'static str,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) names: &'a ToolNames,
    /// Messages of the request; makes a missing call id unique.
    pub(crate) messages: usize,
}

/// A call as the endpoint wrote it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// The argument text, which may be no JSON at all; none means an empty object.
    pub(crate) arguments: &'a str,
    pub(crate) item_id: Option<&'a str>,
    pub(crate) status: Option<&'a str>,
}

/// The head of a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    /// Events that cannot be read.
    pub(crate) undecoded: Undecoded,
}

/// The message of an answer, block by block.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    asked: Asked<'a>,
    message: AssistantMessage,
    calls: usize,
    /// The first call that cannot be used, which makes the whole answer useless.
    bad: Option<Invalid>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(asked: Asked<'a>, head: &Head) -> Self {
        let mut message = AssistantMessage::default();
        message.protocol = Some(asked.protocol.to_owned());
        message.provider = Some(asked.provider.to_owned());
        message.model = Some(ModelName::from(asked.model));
        message.response_model.clone_from(&head.model);
        message.response_id.clone_from(&head.id);
        Self { asked, message, calls: 0, bad: None }
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.message.content.push(block);
    }

    pub(crate) fn usage(&mut self, usage: Option<Usage>) {
        self.message.usage = usage.map(Arc::new);
    }

    /// Sets provider data without a field in a message.
    pub(crate) fn metadata<T: Serialize>(&mut self, metadata: &T) {
        self.message.provider_metadata = Json::of(metadata).ok().filter(|json| json.text() != "{}");
    }

    pub(crate) fn call(&mut self, written: &WrittenCall<'_>) {
        let position = self.calls;
        self.calls = self.calls.saturating_add(1);
        if written.name.trim().is_empty() {
            let reason = "a tool call came without the name of a tool";
            self.bad.get_or_insert_with(|| unusable(reason.to_owned(), written));
            return;
        }
        let text = if written.arguments.trim().is_empty() { "{}" } else { written.arguments };
        let Some(arguments) = Json::parse(text).ok().filter(Json::is_object) else {
            let reason = format!("the arguments of the call of `{}` are not a JSON object", written.name);
            self.bad.get_or_insert_with(|| unusable(reason, written));
            return;
        };
        let id = if written.id.is_empty() {
            let response = self.message.response_id.as_deref().unwrap_or("call");
            format!("{response}_{}_{position}", self.asked.messages)
        } else {
            written.id.to_owned()
        };
        let differs = text != arguments.text();
        let mut call = ToolCall::new(id, self.asked.names.own(written.name), arguments);
        if differs {
            call.raw_arguments = Some(text.to_owned());
        }
        if let Some(item_id) = written.item_id {
            call.item_id = Some(item_id.to_owned());
        }
        if let Some(status) = written.status {
            call.status = Some(status.to_owned());
        }
        self.push(call.into());
    }

    /// Adds a call of a provider's tool; `raw` is returned unchanged to the same model.
    pub(crate) fn hosted(&mut self, id: &str, name: &str, arguments: Json, raw: Json) {
        let mut call = ToolCall::new(id, name, arguments);
        call.kind = Some("hosted".to_owned());
        call.hosted = Some(raw);
        self.push(call.into());
    }

    /// Partial message of a failed answer, without its calls. `None` if nothing had arrived.
    pub(crate) fn partial(mut self) -> Option<AssistantMessage> {
        self.drop_calls();
        (!self.message.content.is_empty() || self.message.usage.is_some()).then_some(self.message)
    }

    /// Finishes the message of a complete answer with its finish reason. An unusable answer is
    /// marked invalid, with the reply if that is one `document`; calls are kept only if they are to
    /// run.
    pub(crate) fn finish(mut self, stop: FinishReason, document: Option<Json>) -> AssistantMessage {
        if matches!(stop, FinishReason::Refusal | FinishReason::ContentFilter) {
            self.drop_calls();
            self.message.stop_reason = stop;
            return self.message;
        }
        if let Some(mut invalid) = self.bad.take().or_else(|| self.useless(&stop)) {
            invalid.raw = document.or(invalid.raw);
            self.drop_calls();
            return self.message.marked_invalid(&invalid);
        }
        let asks = self.message.tool_calls().next().is_some();
        self.message.stop_reason = if asks { FinishReason::ToolUse } else { stop };
        self.message
    }

    fn drop_calls(&mut self) {
        self.message.content.retain(|block| !is_own_call(block));
    }

    fn useless(&self, stop: &FinishReason) -> Option<Invalid> {
        let content = &self.message.content;
        let asks = content.iter().any(is_own_call);
        let speaks = content.iter().any(is_said);
        // The arguments may have been cut where they still read as an object.
        let cut_inside_call = *stop == FinishReason::Length && content.last().is_some_and(is_own_call);
        let (reason, kind) = if cut_inside_call {
            ("the token limit cut the answer inside a tool call", "schema_mismatch")
        } else if *stop == FinishReason::ToolUse && !asks {
            ("the answer asks for tools and names none", "schema_mismatch")
        } else if asks || speaks || *stop == FinishReason::Paused {
            return None;
        } else if *stop == FinishReason::Length {
            ("the token limit cut the answer before its text; raise `max_tokens`", "empty_response")
        } else {
            ("the answer holds neither text nor tool calls", "empty_response")
        };
        Some(invalid(reason.to_owned(), kind))
    }
}

fn is_own_call(block: &Block) -> bool {
    block.as_tool_call().is_some_and(|call| call.hosted.is_none())
}

fn is_said(block: &Block) -> bool {
    match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::Refusal(_) => true,
        Block::Image(_)
        | Block::File(_)
        | Block::Audio(_)
        | Block::Thinking(_)
        | Block::ToolCall(_)
        | Block::Error(_)
        | Block::Approval(_)
        | Block::Extension(_)
        | Block::Unknown(_)
        | _ => false,
    }
}

fn invalid(reason: String, kind: &str) -> Invalid {
    let code = if kind == "schema_mismatch" { "invalid_request" } else { "unknown" };
    let mut invalid = Invalid::new(reason);
    invalid.kind = Some(kind.to_owned());
    invalid.code = Some(code.to_owned());
    invalid
}

fn unusable(reason: String, written: &WrittenCall<'_>) -> Invalid {
    let mut invalid = invalid(reason, "schema_mismatch");
    invalid.raw = Some(Json::string(written.arguments));
    invalid
}
