//! From an assembled answer to an assistant message.

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, FinishReason, TextBlock, ThinkingBlock, Usage};
use harness_core::port::ModelFault;
use serde::Serialize;

use super::stream::{Gathered, Gathering};
use super::wire::Counts;
use crate::http::draft::{Asked, Draft, WrittenCall};
use crate::http::fault::Faults;
use crate::http::settings::object;

/// Value of `protocol` in messages of this adapter.
pub(super) const PROTOCOL: &str = "anthropic-messages";

/// In place of reasoning that the provider withholds.
const REDACTED: &str = "[reasoning withheld by the provider]";

/// Provider data without a field in a message.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "nativeFinishReason", skip_serializing_if = "Option::is_none")]
    native_finish_reason: Option<&'a str>,
    #[serde(rename = "stopSequence", skip_serializing_if = "Option::is_none")]
    stop_sequence: Option<&'a str>,
    #[serde(rename = "cacheWrite5m", skip_serializing_if = "Option::is_none")]
    cache_write_short: Option<u64>,
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    cache_write_long: Option<u64>,
}

/// Interprets a complete reply.
pub(super) fn judge(
    answer: &Gathered,
    asked: Asked<'_>,
    faults: &Faults,
) -> Result<AssistantMessage, ModelFault> {
    let undecoded = &answer.head.undecoded;
    let fault = match (&answer.error, undecoded.first(), &answer.stop_reason) {
        (Some(error), _, _) => faults.reported(error),
        (None, Some(event), _) => faults.undecoded(event, undecoded.count),
        (None, None, Some(reason)) => return Ok(message(answer, reason, asked)),
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

fn message(answer: &Gathered, reason: &str, asked: Asked<'_>) -> AssistantMessage {
    let mut draft = draft(answer, asked);
    let stop = match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "pause_turn" => FinishReason::Paused,
        "refusal" => {
            let reason = answer.explanation.as_deref();
            draft.push(Block::refusal(reason.unwrap_or("the model declined to answer")));
            FinishReason::Refusal
        }
        other => FinishReason::Other(other.to_owned()),
    };
    draft.finish(stop)
}

fn draft<'a>(answer: &Gathered, asked: Asked<'a>) -> Draft<'a> {
    let mut draft = Draft::new(asked, &answer.head);
    for block in answer.blocks() {
        push(&mut draft, block);
    }
    draft.usage(usage(&answer.counts));
    draft.metadata(&Metadata {
        native_finish_reason: answer.stop_reason.as_deref(),
        stop_sequence: answer.stop_sequence.as_deref(),
        cache_write_short: answer.counts.cache_write_short.filter(|count| *count > 0),
        cache_write_long: answer.counts.cache_write_long.filter(|count| *count > 0),
    });
    draft
}

fn push(draft: &mut Draft<'_>, block: &Gathering) {
    match block {
        Gathering::Text { text, seam, .. } if text.is_empty() && seam.end().is_empty() => {}
        Gathering::Text { text, seam, citations } => {
            let mut block = TextBlock::new(format!("{text}{}", seam.end()));
            block.annotations = (!citations.is_empty()).then(|| citations.clone());
            draft.push(block.into());
        }
        Gathering::Thinking { text, seam, signature } => {
            draft.push(thinking(&format!("{text}{}", seam.end()), signature.clone(), None));
        }
        Gathering::Redacted { data } => draft.push(thinking(REDACTED, Some(data.clone()), Some(true))),
        Gathering::Call { id, name, given, arguments, .. } => {
            let given = given.as_ref().map_or("", Json::text);
            let arguments = if arguments.is_empty() { given } else { arguments };
            draft.call(&WrittenCall { id, name, arguments, ..WrittenCall::default() });
        }
        Gathering::Other { id, name, raw, input, .. } => {
            let arguments = Json::parse(input).ok().filter(Json::is_object);
            let raw = match &arguments {
                Some(arguments) => with_input(raw, arguments),
                None => raw.clone(),
            };
            draft.hosted(id, name, arguments.unwrap_or_else(Json::empty_object), raw);
        }
    }
}

fn thinking(text: &str, signature: Option<String>, redacted: Option<bool>) -> Block {
    let mut block = ThinkingBlock::new(text);
    block.thinking_signature = signature;
    block.redacted = redacted;
    block.into()
}

/// Block with the input that followed it in fragments.
fn with_input(raw: &Json, input: &Json) -> Json {
    let entries = raw.entries().unwrap_or_default();
    let entries = entries.into_iter().map(|(key, value)| {
        let value = if key == "input" { input.clone() } else { value };
        (key, value)
    });
    object(&entries.collect::<Vec<_>>())
}

/// The endpoint's own counts are disjoint already: what a cache served or took is not in `input`.
fn usage(counts: &Counts) -> Usage {
    let mut usage = Usage::default();
    usage.input = counts.input;
    usage.output = counts.output;
    usage.cache_read = counts.cache_read;
    let by_duration = counts.cache_write_short.zip(counts.cache_write_long);
    usage.cache_write =
        counts.cache_write.or_else(|| by_duration.map(|(short, long)| short.saturating_add(long)));
    usage.reasoning = counts.thinking;
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    usage.total_tokens = (usage.input.is_some() && usage.output.is_some())
        .then(|| parts.into_iter().flatten().fold(0, u64::saturating_add));
    usage
}
