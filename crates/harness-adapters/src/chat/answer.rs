//! From an assembled answer to an assistant message.

use std::sync::Arc;

use harness_core::message::{
    AssistantMessage, Block, CostParts, FinishReason, Invalid, ThinkingBlock, ToolCall, Usage,
};
use harness_core::{Json, ModelName};
use serde::Serialize;

use super::completion::{Completion, CompletionCall, InvalidKind, Verdict};
use super::wire::ReportedUsage;
use crate::http::names::ToolNames;

/// Value of `protocol` in messages of this adapter.
pub(crate) const PROTOCOL: &str = "openai-completions";

/// Provider data without a field in a message.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(rename = "nativeFinishReason", skip_serializing_if = "Option::is_none")]
    native_finish_reason: Option<&'a str>,
    /// The finish reason, where that of the message says something else.
    #[serde(rename = "finishReason", skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    reasoning_details: &'a [Json],
}

/// Context for interpreting an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) names: &'a ToolNames,
    /// Messages of the request; makes a missing call id unique.
    pub(crate) messages: usize,
}

/// Builds the message of a complete answer. An unusable answer is marked invalid and includes the
/// raw reply: the whole `document` if there is one. `verdict` must not be an error.
pub(crate) fn message(
    answer: &Completion,
    verdict: Verdict,
    asked: Asked<'_>,
    document: Option<Json>,
) -> AssistantMessage {
    let mut message = text_only(answer, asked);
    match verdict {
        Verdict::FinalAnswer { truncated: true } => message.stop_reason = FinishReason::Length,
        Verdict::FinalAnswer { truncated: false } => {
            message.stop_reason = match answer.finish_reason.as_deref() {
                None | Some("stop" | "tool_calls" | "function_call") => FinishReason::Stop,
                Some(other) => FinishReason::Other(other.to_owned()),
            };
        }
        Verdict::ToolRequest => {
            let calls = answer.tool_calls.iter().enumerate();
            let calls = calls.filter_map(|(position, call)| tool_call(position, call, answer, asked));
            message.content.extend(calls.map(Block::from));
            message.stop_reason = FinishReason::ToolUse;
        }
        Verdict::Invalid(InvalidKind::ModelRefused) => {
            message.stop_reason = match &answer.refusal {
                Some(refusal) => {
                    message.content.push(Block::refusal(refusal.clone()));
                    FinishReason::Refusal
                }
                None => FinishReason::ContentFilter,
            };
        }
        Verdict::Invalid(kind) => message = message.marked_invalid(&invalid(answer, kind, document)),
    }
    message.provider_metadata = metadata(answer, &message.stop_reason);
    message
}

/// Partial message of a failed answer: its text, reasoning and usage. `None` if nothing had
/// arrived.
pub(crate) fn partial(answer: &Completion, asked: Asked<'_>) -> Option<AssistantMessage> {
    let mut message = text_only(answer, asked);
    message.provider_metadata = metadata(answer, &FinishReason::Aborted);
    (!message.content.is_empty() || message.usage.is_some()).then_some(message)
}

fn text_only(answer: &Completion, asked: Asked<'_>) -> AssistantMessage {
    let mut message = AssistantMessage::default();
    if let Some(reasoning) = &answer.reasoning {
        let mut thinking = ThinkingBlock::new(reasoning.clone());
        thinking.field = answer.reasoning_field.map(str::to_owned);
        message.content.push(thinking.into());
    }
    message.content.extend(answer.content.clone().map(Block::text));
    message.protocol = Some(PROTOCOL.to_owned());
    message.provider = Some(asked.provider.to_owned());
    message.model = Some(ModelName::from(asked.model));
    message.response_model.clone_from(&answer.model);
    message.response_id.clone_from(&answer.id);
    message.usage = answer.usage.as_ref().map(|reported| Arc::new(usage(reported)));
    message
}

fn metadata(answer: &Completion, stop: &FinishReason) -> Option<Json> {
    let told = match stop {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolUse => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(word) => word,
        FinishReason::Error | FinishReason::Aborted | FinishReason::Refusal | FinishReason::Paused | _ => "",
    };
    let metadata = Metadata {
        provider: answer.provider.as_deref(),
        native_finish_reason: answer.native_finish_reason.as_deref(),
        finish_reason: answer.finish_reason.as_deref().filter(|reason| *reason != told),
        reasoning_details: &answer.reasoning_details,
    };
    Json::of(&metadata).ok().filter(|json| json.text() != "{}")
}

/// Counts are split so that the parts add up: what a cache served or took is not input again.
pub(crate) fn usage(reported: &ReportedUsage) -> Usage {
    let cached = reported.cached.unwrap_or(0).saturating_add(reported.cache_write.unwrap_or(0));
    let mut usage = Usage::default();
    usage.input = reported.prompt.map(|prompt| prompt.saturating_sub(cached));
    usage.output = reported.completion;
    usage.cache_read = reported.cached;
    usage.cache_write = reported.cache_write;
    usage.reasoning = reported.reasoning;
    usage.total_tokens =
        reported.total.or_else(|| Some(reported.prompt?.saturating_add(reported.completion?)));
    usage.cost = reported.cost.map(|total| {
        let mut parts = CostParts::default();
        parts.total = Some(total);
        Box::new(parts)
    });
    usage
}

fn tool_call(
    position: usize,
    call: &CompletionCall,
    answer: &Completion,
    asked: Asked<'_>,
) -> Option<ToolCall> {
    let arguments = call.input()?;
    let id = if call.id.is_empty() {
        let response = answer.id.as_deref().unwrap_or("call");
        format!("{response}_{}_{position}", asked.messages)
    } else {
        call.id.clone()
    };
    let differs = call.arguments != arguments.text() && !call.arguments.is_empty();
    let mut out = ToolCall::new(id, asked.names.own(&call.name), arguments);
    out.raw_arguments = differs.then(|| call.arguments.clone());
    Some(out)
}

fn invalid(answer: &Completion, kind: InvalidKind, document: Option<Json>) -> Invalid {
    let bad_call = answer.tool_calls.iter().find(|call| !call.is_usable());
    let mut invalid = Invalid::new(match bad_call {
        Some(call) if call.name.trim().is_empty() => "a tool call came without the name of a tool".to_owned(),
        Some(call) => format!("the arguments of the call of `{}` are not a JSON object", call.name),
        None if answer.finish_reason.as_deref() == Some("length") => {
            "the limit of output tokens was reached before the answer began; raise `max_tokens`".to_owned()
        }
        None => "the answer holds neither text nor tool calls".to_owned(),
    });
    invalid.kind = Some(kind.code().to_owned());
    invalid.code = Some(if bad_call.is_some() { "invalid_request" } else { "unknown" }.to_owned());
    invalid.raw = document.or_else(|| bad_call.map(|call| Json::string(&call.arguments)));
    invalid
}
