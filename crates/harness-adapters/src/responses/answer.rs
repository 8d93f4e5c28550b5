//! From an assembled response to an assistant message.

use harness_core::Json;
use harness_core::message::{
    AssistantMessage, Block, CostParts, FinishReason, TextBlock, ThinkingBlock, Usage,
};
use harness_core::port::ModelFault;
use serde::Serialize;

use super::stream::{Gathered, Gathering};
use super::wire::Counts;
use crate::http::draft::{Asked, Draft, WrittenCall};
use crate::http::fault::Faults;

/// Value of `protocol` in messages of this adapter.
pub(super) const PROTOCOL: &str = "openai-responses";

/// Provider data without a field in a message.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "nativeFinishReason", skip_serializing_if = "Option::is_none")]
    native_finish_reason: Option<&'a str>,
}

/// Interprets a complete reply.
pub(super) fn judge(
    answer: &Gathered,
    asked: Asked<'_>,
    faults: &Faults,
) -> Result<AssistantMessage, ModelFault> {
    let undecoded = &answer.head.undecoded;
    let fault = match (&answer.error, undecoded.first(), answer.status.as_deref()) {
        (Some(error), _, _) => faults.reported(error),
        (None, Some(event), _) => faults.undecoded(event, undecoded.count),
        (None, None, Some("completed")) => return Ok(message(answer, FinishReason::Stop, asked)),
        (None, None, Some("incomplete")) => return Ok(message(answer, cut_short(answer), asked)),
        (None, None, Some(_)) => faults.unexplained(),
        (None, None, None) => faults.cut(),
    };
    Err(with_partial(fault, answer, asked))
}

pub(super) fn with_partial(fault: ModelFault, answer: &Gathered, asked: Asked<'_>) -> ModelFault {
    match draft(answer, asked).partial() {
        Some(partial) => fault.with_partial(partial),
        None => fault,
    }
}

fn cut_short(answer: &Gathered) -> FinishReason {
    match answer.incomplete.as_deref() {
        Some("max_output_tokens" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        other => FinishReason::Other(other.unwrap_or("incomplete").to_owned()),
    }
}

fn message(answer: &Gathered, stop: FinishReason, asked: Asked<'_>) -> AssistantMessage {
    let refuses = |item: &Gathering| item.parts.values().any(|part| !part.refusal.is_empty());
    let stop = if answer.items().any(refuses) { FinishReason::Refusal } else { stop };
    draft(answer, asked).finish(stop)
}

fn draft<'a>(answer: &Gathered, asked: Asked<'a>) -> Draft<'a> {
    let mut draft = Draft::new(asked, &answer.head);
    for item in answer.items() {
        push(&mut draft, item);
    }
    draft.usage(usage(&answer.counts));
    let native = answer.incomplete.as_deref().or(answer.status.as_deref());
    draft.metadata(&Metadata { native_finish_reason: native });
    draft
}

fn push(draft: &mut Draft<'_>, item: &Gathering) {
    match item.kind.as_str() {
        "message" => said(draft, item),
        "reasoning" => draft.push(thinking(item)),
        "function_call" => draft.call(&WrittenCall {
            id: &item.call_id,
            name: &item.name,
            arguments: &item.arguments,
            item_id: item.id.as_deref(),
            status: item.status.as_deref(),
        }),
        kind => {
            if let Some(raw) = &item.raw {
                let id = item.id.as_deref().unwrap_or_default();
                draft.hosted(id, kind, Json::empty_object(), raw.clone());
            }
        }
    }
}

fn said(draft: &mut Draft<'_>, item: &Gathering) {
    for part in item.parts.values() {
        if !part.text.is_empty() {
            let mut block = TextBlock::new(part.text.clone());
            block.item_id.clone_from(&item.id);
            block.status.clone_from(&item.status);
            block.phase.clone_from(&item.phase);
            let annotations = &part.annotations;
            block.annotations = (!annotations.is_empty()).then(|| annotations.clone());
            draft.push(block.into());
        }
        if !part.refusal.is_empty() {
            draft.push(Block::refusal(part.refusal.clone()));
        }
    }
}

/// Reasoning keeps its whole item, which goes back as it came.
fn thinking(item: &Gathering) -> Block {
    let mut block = ThinkingBlock::new(item.thought.clone());
    block.id.clone_from(&item.id);
    block.thinking_signature = item.raw.as_ref().map(|raw| raw.text().to_owned());
    block.summary = (!item.summary.is_empty()).then(|| item.summary.clone());
    block.into()
}

/// Counts are split so that the parts add up: what a cache served or took is not input again.
fn usage(counts: &Counts) -> Usage {
    let cached = counts.cached.unwrap_or(0).saturating_add(counts.cache_write.unwrap_or(0));
    let mut usage = Usage::default();
    usage.input = counts.input.map(|input| input.saturating_sub(cached));
    usage.output = counts.output;
    usage.cache_read = counts.cached;
    usage.cache_write = counts.cache_write;
    usage.reasoning = counts.reasoning;
    usage.total_tokens = counts.total.or_else(|| Some(counts.input?.saturating_add(counts.output?)));
    usage.cost = counts.cost.map(|total| {
        let mut parts = CostParts::default();
        parts.total = Some(total);
        Box::new(parts)
    });
    usage
}
