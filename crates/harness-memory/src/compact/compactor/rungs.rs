//! The rungs without a model or a store: clear, collapse, drop, truncate, select.

use std::fmt::Write as _;

use harness_core::message::{AssistantMessage, Block, Message, ToolResultMessage};

use super::draft::{Draft, Slot};
use super::mark::{Form, Mark};
use crate::compact::durability::{DurabilityPolicies, ToolDurability, ToolNames, ToolResultEnvelope};
use crate::compact::group::GroupKind;
use crate::compact::policy::CompactionPolicy;
use crate::compact::summarize::cut;
use crate::compact::tokens::{TokenCounter, content_tokens};

/// Characters of a line that stands for calls and results.
const COLLAPSED: usize = 4_096;
/// Characters of one result in it.
const COLLAPSED_RESULT: usize = 200;

/// Maximum of a view.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim {
    /// Tokens of its messages, as counted.
    Tokens(u64),
    Messages(usize),
}

impl Aim {
    fn is_met(self, draft: &Draft) -> bool {
        match self {
            Self::Tokens(tokens) => draft.tokens <= tokens,
            Self::Messages(messages) => draft.messages <= messages,
        }
    }
}

/// Input of the rungs.
pub(super) struct Means<'a> {
    pub(super) policy: &'a CompactionPolicy,
    pub(super) durability: &'a DurabilityPolicies,
    pub(super) counter: &'a dyn TokenCounter,
    pub(super) aim: Aim,
}

impl Means<'_> {
    /// Whether no further change is to be made.
    pub(super) fn are_done(&self, draft: &Draft) -> bool {
        draft.is_closed() || self.aim.is_met(draft)
    }

    /// Whether a result could not be got again once it is gone.
    fn is_irreplaceable(&self, envelope: &ToolResultEnvelope) -> bool {
        envelope.durability_now(self.durability) == ToolDurability::NonReplayable
    }
}

/// Clears results, oldest group first, until the target is met; how many groups.
pub(super) fn clear(draft: &mut Draft, means: &Means<'_>) -> u32 {
    each(draft, means, |slot| {
        let may = slot.kind == GroupKind::ToolCall && slot.form == Form::Whole;
        may.then(|| cleared(slot, means)).flatten().map(|messages| (Form::Cleared, messages))
    })
}

fn cleared(slot: &Slot, means: &Means<'_>) -> Option<Vec<Message>> {
    let names = ToolNames::of(&slot.messages);
    let mut any = false;
    let messages = slot.messages.iter().map(|message| {
        let large = content_tokens(means.counter, message) >= means.policy.clear_from;
        let result = message.as_tool_result().filter(|_| large);
        let envelope = result.map(|result| (result, names.envelope(result, means.durability)));
        let Some((result, envelope)) = envelope.filter(|(_, envelope)| !means.is_irreplaceable(envelope))
        else {
            return Message::clone(message);
        };
        any = true;
        left_of(result, Block::text(envelope.placeholder()), Form::Cleared).into()
    });
    let messages = messages.collect();
    any.then_some(messages)
}

/// Remainder of a result: the same call, with a different content.
pub(super) fn left_of(result: &ToolResultMessage, content: Block, form: Form) -> ToolResultMessage {
    let mut left = result.clone();
    left.content = vec![content, Mark::new(form).block()];
    left.structured = None;
    left.details = None;
    left
}

/// Makes one line of text of each group of calls, oldest first, until the target is met; how many groups.
/// Groups with a result that could not be got again stay.
pub(super) fn collapse(draft: &mut Draft, means: &Means<'_>) -> u32 {
    each(draft, means, |slot| {
        let may = slot.kind == GroupKind::ToolCall && matches!(slot.form, Form::Whole | Form::Cleared);
        let names = ToolNames::of(&slot.messages);
        let mut results = slot.messages.iter().filter_map(|message| message.as_tool_result());
        let may_go = |result: &ToolResultMessage| {
            Mark::is_on(result) || !means.is_irreplaceable(&names.envelope(result, means.durability))
        };
        let may = may && results.all(may_go);
        may.then(|| (Form::Collapsed, vec![collapsed(slot)]))
    })
}

fn collapsed(slot: &Slot) -> Message {
    let names = ToolNames::of(&slot.messages);
    let mut line = String::new();
    let mut said = String::new();
    for message in &slot.messages {
        match &**message {
            Message::ToolResult(result) => {
                let text = cut(message.joined_text().trim(), COLLAPSED_RESULT);
                let outcome = if result.is_error { " failed" } else { "" };
                let separator = if line.is_empty() { "" } else { "; " };
                let _ = write!(line, "{separator}{}{outcome}: {text}", names.name_of(result));
            }
            Message::System(_) | Message::User(_) | Message::Assistant(_) | Message::Custom(_) | _ => {
                said.push_str(&message.joined_text());
            }
        }
    }
    let separator = if said.is_empty() { "" } else { "\n" };
    let text = cut(&format!("{said}{separator}[Tool results: {line}]"), COLLAPSED);
    let mut answer = AssistantMessage::text(text);
    answer.content.push(Mark::new(Form::Collapsed).block());
    answer.into()
}

/// Drops groups that were cleared or collapsed, oldest first, until the target is met; how many.
pub(super) fn drop_old(draft: &mut Draft, means: &Means<'_>) -> u32 {
    remove(draft, means, |slot| matches!(slot.form, Form::Cleared | Form::Collapsed))
}

/// Drops groups, oldest first, until the target is met; how many.
pub(super) fn truncate(draft: &mut Draft, means: &Means<'_>) -> u32 {
    remove(draft, means, |slot| slot.kind != GroupKind::Unsent)
}

/// Drops calls with their results, oldest first, until the target is met; how many groups.
pub(super) fn select(draft: &mut Draft, means: &Means<'_>) -> u32 {
    remove(draft, means, |slot| slot.kind == GroupKind::ToolCall)
}

fn remove(draft: &mut Draft, means: &Means<'_>, may_go: impl Fn(&Slot) -> bool) -> u32 {
    let mut removed = 0;
    for at in draft.candidates() {
        if means.are_done(draft) {
            break;
        }
        let slot = draft.slots.get(at).filter(|slot| !slot.messages.is_empty());
        if slot.is_some_and(&may_go) {
            draft.drop_slot(at);
            removed += 1;
        }
    }
    removed
}

fn each(
    draft: &mut Draft,
    means: &Means<'_>,
    shorter: impl Fn(&Slot) -> Option<(Form, Vec<Message>)>,
) -> u32 {
    let mut done = 0;
    for at in draft.candidates() {
        if means.are_done(draft) {
            break;
        }
        if let Some((form, messages)) = draft.slots.get(at).and_then(&shorter) {
            done += u32::from(draft.try_replace(at, form, messages, means.counter));
        }
    }
    done
}
