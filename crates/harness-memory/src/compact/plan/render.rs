//! A transcript as a plan shows it.

use std::collections::HashSet;

use harness_core::ArtifactId;
use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage, UserMessage};

use super::record::{ClearRecord, CompactionPlan, ExternalizationRecord, Record, SummarizationRecord};
use super::scene::{CLEARED, EXTERNALIZED};
use crate::compact::durability::with_key_data;
use crate::compact::group::{Group, Groups};
use crate::compact::item::Item;
use crate::compact::pairing;
use crate::compact::summary::{SpanReference, StructuredSummary};

impl CompactionPlan {
    /// The transcript as the plan shows it. The transcript stays as it is; the same transcript and plan
    /// always give the same view.
    ///
    /// Messages of the system, pinned ones and calls that wait for something are shown whatever the plan
    /// says (law 6), and no call is shown without its result.
    pub fn render(&self, items: &[Item]) -> Vec<Item> {
        let index = self.index();
        let groups = Groups::of(items);
        let mut view = Vec::with_capacity(items.len());
        let mut told: HashSet<&str> = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let owner = groups.index_of(at).and_then(|group| groups.get(group));
            let record = index.records.get(&*item.id).copied();
            match record.filter(|_| !owner.is_some_and(Group::is_protected)) {
                None => view.push(item.clone()),
                Some(Record::Drop(_)) => {}
                Some(Record::Clear(record)) => view.push(cleared(item, record)),
                Some(Record::Summarize(record)) => {
                    if told.insert(record.span.first_id()) {
                        view.push(summarized(record));
                    }
                }
                Some(Record::Externalize(record)) => {
                    let is_first = told.insert(record.span.first_id());
                    view.extend(externalized(item, record, is_first));
                }
            }
        }
        pairing::repair(view)
    }
}

/// What stands for a summarized span.
pub(super) fn summary_text(span: &SpanReference, summary: &StructuredSummary) -> String {
    format!("[Context Summary - Turns {}-{}]\n{}", span.first_turn, span.last_turn, summary.render())
}

/// What stands for a content that is stored elsewhere.
pub(super) fn pointer_text(id: &ArtifactId, summary: &StructuredSummary) -> String {
    let summary = summary.render();
    format!(
        "{EXTERNALIZED}{id}]\nSummary: {summary}\nTo retrieve full content, call: read_artifact(\"{id}\")"
    )
}

fn summarized(record: &SummarizationRecord) -> Item {
    let text = summary_text(&record.span, &record.summary);
    Item::new(format!("summary-{}", record.span.first_id()), Message::from(AssistantMessage::text(text)))
}

/// A placeholder for a message; its calls stay, and each result stays that of its call.
fn cleared(item: &Item, record: &ClearRecord) -> Item {
    let is_result = item.message.as_tool_result().is_some();
    let role = if is_result { "tool" } else { item.message.role() };
    let text = with_key_data(format!("{CLEARED} {role} message]"), &record.preserved_fields);
    Item::new(item.id.clone(), in_place(&item.message, text))
}

/// A pointer to a stored content, in the role of what it stands for: a result stays the result of its call.
fn externalized(item: &Item, record: &ExternalizationRecord, is_first: bool) -> Option<Item> {
    let is_result = item.message.as_tool_result().is_some();
    if !is_first && !is_result {
        return None;
    }
    let text = pointer_text(&record.artifact_id, &record.summary);
    let id = if is_result { item.id.clone() } else { format!("external-{}", record.span.first_id()).into() };
    Some(Item::new(id, in_place(&item.message, text)))
}

/// A text in the place of what a message says.
fn in_place(message: &Message, text: String) -> Message {
    match message {
        Message::ToolResult(result) => {
            let call =
                ToolCall::new(result.tool_call_id.clone(), result.tool_name.clone(), Json::empty_object());
            ToolResultMessage::new(&call, vec![Block::text(text)], result.is_error).into()
        }
        Message::Assistant(answer) => {
            let mut placeholder = AssistantMessage::text(text);
            placeholder.agent.clone_from(&answer.agent);
            placeholder.stop_reason = answer.stop_reason.clone();
            placeholder.content.extend(answer.tool_calls().cloned().map(Block::ToolCall));
            placeholder.into()
        }
        Message::System(_) | Message::User(_) | Message::Custom(_) | _ => UserMessage::text(text).into(),
    }
}
