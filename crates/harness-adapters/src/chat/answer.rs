//! From a reply to an assistant message.

use harness_core::Json;
use harness_core::message::{Block, FinishReason, ThinkingBlock};
use serde::Serialize;

use super::completion::{Completion, InvalidKind, Verdict};
use crate::http::ReportedUsage;
use crate::http::draft::{Asked, Draft, Head, WrittenCall};
use crate::http::exchange::End;

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

/// How an answer ended, unless the endpoint reported an error.
pub(super) fn end(answer: &Completion) -> End {
    let finish = answer.finish_reason.as_deref();
    End::Stopped(match answer.verdict() {
        Verdict::Invalid(InvalidKind::Transient | InvalidKind::ProviderError) => {
            return if finish.is_some() { End::Failed } else { End::Cut };
        }
        Verdict::Invalid(InvalidKind::ModelRefused) if answer.refusal.is_some() => FinishReason::Refusal,
        Verdict::Invalid(InvalidKind::ModelRefused) => FinishReason::ContentFilter,
        Verdict::FinalAnswer { .. } | Verdict::ToolRequest | Verdict::Invalid(_) => match finish {
            Some("length") => FinishReason::Length,
            None | Some("stop" | "tool_calls" | "function_call") => FinishReason::Stop,
            Some(other) => FinishReason::Other(other.to_owned()),
        },
    })
}

/// The message of an answer so far.
pub(super) fn draft<'a>(answer: &Completion, asked: Asked<'a>) -> Draft<'a> {
    let head = Head { id: answer.id.clone(), model: answer.model.clone(), ..Head::default() };
    let mut draft = Draft::new(asked, &head);
    if let Some(reasoning) = &answer.reasoning {
        let mut thinking = ThinkingBlock::new(reasoning.clone());
        thinking.field = answer.reasoning_field.map(str::to_owned);
        draft.push(thinking.into());
    }
    if let Some(text) = &answer.content {
        draft.push(Block::text(text.clone()));
    }
    for call in &answer.tool_calls {
        let (id, name, arguments) = (&*call.id, &*call.name, &*call.arguments);
        draft.call(&WrittenCall { id, name, arguments, ..WrittenCall::default() });
    }
    let end = end(answer);
    if let (End::Stopped(FinishReason::Refusal), Some(refusal)) = (&end, &answer.refusal) {
        draft.push(Block::refusal(refusal.clone()));
    }
    draft.usage(answer.usage.as_ref().map(ReportedUsage::usage));
    draft.metadata(&Metadata {
        provider: answer.provider.as_deref(),
        native_finish_reason: answer.native_finish_reason.as_deref(),
        finish_reason: answer.finish_reason.as_deref().filter(|reason| *reason != said(&end, answer)),
        reasoning_details: &answer.reasoning_details,
    });
    draft
}

/// The finish reason that the message shows by itself.
fn said<'a>(end: &'a End, answer: &Completion) -> &'a str {
    let is_marked = matches!(
        answer.verdict(),
        Verdict::Invalid(InvalidKind::SchemaMismatch | InvalidKind::EmptyResponse)
    );
    match end {
        _ if is_marked => "",
        End::Stopped(FinishReason::Stop) if !answer.tool_calls.is_empty() => "tool_calls",
        End::Stopped(FinishReason::Stop) => "stop",
        End::Stopped(FinishReason::Length) => "length",
        End::Stopped(FinishReason::ContentFilter) => "content_filter",
        End::Stopped(FinishReason::Other(word)) => word,
        End::Stopped(_) | End::Failed | End::Cut => "",
    }
}
