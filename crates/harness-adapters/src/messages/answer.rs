//! From a reply to an assistant message.

use harness_core::Json;
use harness_core::message::{Block, TextBlock, ThinkingBlock, Usage};
use serde::Serialize;

use super::reply::{MessagesReply, Part};
use super::wire::Counts;
use crate::http::draft::{Asked, Draft, WrittenCall};

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

/// The message of an answer so far.
pub(super) fn draft<'a>(reply: &MessagesReply, asked: Asked<'a>) -> Draft<'a> {
    let mut draft = Draft::new(asked, &reply.head);
    for block in reply.blocks() {
        push(&mut draft, block);
    }
    if reply.stop_reason.as_deref() == Some("refusal") {
        let reason = reply.explanation.as_deref();
        draft.push(Block::refusal(reason.unwrap_or("the model declined to answer")));
    }
    draft.usage(Some(usage(&reply.counts)).filter(|usage| *usage != Usage::default()));
    draft.metadata(&Metadata {
        native_finish_reason: reply.stop_reason.as_deref(),
        stop_sequence: reply.stop_sequence.as_deref(),
        cache_write_short: reply.counts.cache_write_short.filter(|count| *count > 0),
        cache_write_long: reply.counts.cache_write_long.filter(|count| *count > 0),
    });
    draft
}

fn push(draft: &mut Draft<'_>, block: &Part) {
    match block {
        Part::Text { text, seam, .. } if text.is_empty() && seam.end().is_empty() => {}
        Part::Text { text, seam, citations } => {
            let mut block = TextBlock::new(format!("{text}{}", seam.end()));
            block.annotations = (!citations.is_empty()).then(|| citations.clone());
            draft.push(block.into());
        }
        Part::Thinking { text, seam, signature } => {
            draft.push(thinking(&format!("{text}{}", seam.end()), signature.clone(), None));
        }
        Part::Redacted { data } => draft.push(thinking(REDACTED, Some(data.clone()), Some(true))),
        Part::Call { id, name, given, arguments, .. } => {
            let given = given.as_ref().map_or("", Json::text);
            let arguments = if arguments.is_empty() { given } else { arguments };
            draft.call(&WrittenCall { id, name, arguments, ..WrittenCall::default() });
        }
        Part::Other { id, name, raw, input, .. } => {
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
    Json::object(entries)
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
