//! From a reply to an assistant message.

use harness_core::Json;
use harness_core::message::{Block, TextBlock, ThinkingBlock};
use serde::Serialize;

use super::reply::{Item, ResponsesReply};
use crate::http::ReportedUsage;
use crate::http::draft::{Asked, Draft, WrittenCall};

/// Provider data without a field in a message.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "nativeFinishReason", skip_serializing_if = "Option::is_none")]
    native_finish_reason: Option<&'a str>,
}

/// The message of a response so far.
pub(super) fn draft<'a>(reply: &ResponsesReply, asked: Asked<'a>) -> Draft<'a> {
    let mut draft = Draft::new(asked, &reply.head);
    for item in reply.items() {
        push(&mut draft, item);
    }
    draft.usage((reply.usage != ReportedUsage::default()).then(|| reply.usage.usage()));
    let native = reply.incomplete.as_deref().or(reply.status.as_deref());
    draft.metadata(&Metadata { native_finish_reason: native });
    draft
}

fn push(draft: &mut Draft<'_>, item: &Item) {
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

fn said(draft: &mut Draft<'_>, item: &Item) {
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
fn thinking(item: &Item) -> Block {
    let mut block = ThinkingBlock::new(item.thought.clone());
    block.id.clone_from(&item.id);
    block.thinking_signature = item.raw.as_ref().map(|raw| raw.text().to_owned());
    block.summary = (!item.summary.is_empty()).then(|| item.summary.clone());
    block.into()
}
