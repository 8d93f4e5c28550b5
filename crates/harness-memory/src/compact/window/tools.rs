//! Old tool calls: left out, or one line in their place.

use std::borrow::Borrow;
use std::collections::HashMap;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::TokenCounter;

use super::state::{ExcludeReason, Replacement, Window, WindowGroup};
use super::strategy::WindowStrategy;
use crate::compact::durability::text_of;
use crate::compact::group::GroupKind;

/// Leaves out all but the newest groups of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectiveToolCall {
    /// How many groups of tool calls stay; 0 keeps none but the newest group of all. Default 1.
    pub keep_last_tool_call_groups: usize,
}

impl Default for SelectiveToolCall {
    fn default() -> Self {
        Self { keep_last_tool_call_groups: 1 }
    }
}

impl WindowStrategy for SelectiveToolCall {
    fn apply(&self, window: &mut Window, _: &dyn TokenCounter) -> bool {
        let mut changed = false;
        for index in old_calls(window, self.keep_last_tool_call_groups) {
            changed |= window.exclude(index, ExcludeReason::ToolCallCompaction);
        }
        changed
    }
}

/// Puts one line with the results in the place of each but the newest groups of tool calls.
///
/// All lines are put in with one pass, however many groups there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolResults {
    /// How many groups of tool calls stay; 0 keeps none but the newest group of all. Default 1.
    pub keep_last_tool_call_groups: usize,
    /// A line has at most so many characters. Default 4,096.
    pub max_characters: usize,
}

impl Default for ToolResults {
    fn default() -> Self {
        Self { keep_last_tool_call_groups: 1, max_characters: 4_096 }
    }
}

impl WindowStrategy for ToolResults {
    fn apply(&self, window: &mut Window, counter: &dyn TokenCounter) -> bool {
        let mut made = Vec::new();
        for index in old_calls(window, self.keep_last_tool_call_groups) {
            let Some(group) = window.groups().get(index) else { continue };
            let replacement = Replacement {
                groups: vec![index],
                id: format!("tool_summary_{}", group.id).into(),
                text: line(&group_messages(group), self.max_characters),
                reason: ExcludeReason::ToolResultCompaction,
            };
            made.extend(window.replace(&replacement, counter));
        }
        let changed = !made.is_empty();
        window.insert(made);
        changed
    }
}

/// The groups of tool calls but the newest `keep`.
fn old_calls(window: &Window, keep: usize) -> Vec<usize> {
    let mut calls = window.shown(|group| group.kind == GroupKind::ToolCall);
    calls.truncate(calls.len().saturating_sub(keep));
    calls
}

fn group_messages(group: &WindowGroup) -> Vec<&Message> {
    group.messages.iter().flat_map(|message| &message.parts).map(|part| &**part).collect()
}

/// The one line that stands for a group of calls: `[Tool results: name: text; name: text]`.
///
/// It is cut to `max_characters`, and says so with `…` then.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
/// use harness_memory::compact::window::collapsed;
///
/// let call = ToolCall::new("c1", "read", Json::empty_object());
/// let messages: [Message; 2] = [
///     AssistantMessage::calls([call.clone()]).into(),
///     ToolResultMessage::new(&call, vec![Block::text("data")], false).into(),
/// ];
/// assert_eq!(collapsed(&messages, 4_096), "[Tool results: read: data]");
/// ```
pub fn collapsed<M: Borrow<Message>>(messages: &[M], max_characters: usize) -> String {
    line(&messages.iter().map(Borrow::borrow).collect::<Vec<_>>(), max_characters)
}

fn line(messages: &[&Message], max_characters: usize) -> String {
    let answers = messages.iter().filter_map(|message| message.as_assistant());
    let calls = answers.flat_map(AssistantMessage::tool_calls);
    let names: HashMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    let results = messages.iter().filter_map(|message| message.as_tool_result()).map(|result| {
        let text = text_of(result);
        let name = names.get(result.tool_call_id.as_str()).copied().unwrap_or_default();
        if name.is_empty() { text.trim().to_owned() } else { format!("{name}: {text}").trim().to_owned() }
    });
    let results = results.collect::<Vec<_>>().join("; ");
    let results = if results.is_empty() { "no results".to_owned() } else { results };
    let room = max_characters.saturating_sub("[Tool results: ]".len());
    format!("[Tool results: {}]", cut(results, room))
}

/// The first `max` characters of a text; the last of them is `…` when something is missing.
fn cut(text: String, max: usize) -> String {
    if text.len() <= max || text.chars().count() <= max {
        return text;
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}
