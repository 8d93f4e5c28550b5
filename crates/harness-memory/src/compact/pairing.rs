//! Calls and results that belong together: putting a view right that was cut without regard to them.

use std::collections::{HashMap, HashSet};

use harness_core::CallId;
use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};

use super::item::Item;

/// What stands for a result that is not there.
pub const MISSING_RESULT: &str = "[Tool result cleared during context compaction]";
/// How much of a call's id the name of its placeholder has, in characters.
const NAMED: usize = 12;

/// A view in which every call has one result that follows it, and every result its call.
///
/// A result without a call before it goes; so does a second result of one call. A call without a result
/// gets a placeholder, right behind the message that asks for it. What is complete stays as it is.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, Message, ToolCall};
/// use harness_memory::compact::item::Item;
/// use harness_memory::compact::pairing::repair;
///
/// let call = ToolCall::new("c1", "read_file", Json::empty_object());
/// let view = repair(vec![Item::new("a", Message::from(AssistantMessage::calls([call])))]);
/// assert_eq!(&*view[1].id, "placeholder-c1");
/// ```
pub fn repair(view: Vec<Item>) -> Vec<Item> {
    let orphans = orphans(&view);
    let mut repaired = Vec::with_capacity(view.len());
    let mut open = orphans.unanswered;
    for (at, item) in view.into_iter().enumerate() {
        if orphans.results.contains(&at) {
            continue;
        }
        let missing = open.remove(&at).unwrap_or_default();
        repaired.push(item);
        repaired.extend(missing.iter().map(placeholder));
    }
    repaired
}

/// Whether [`repair`] would change nothing.
pub fn is_paired(view: &[Item]) -> bool {
    let orphans = orphans(view);
    orphans.results.is_empty() && orphans.unanswered.is_empty()
}

struct Orphans {
    /// Positions of results without a call.
    results: HashSet<usize>,
    /// Calls without a result, by the position of the message that asks for them.
    unanswered: HashMap<usize, Vec<ToolCall>>,
}

fn orphans(view: &[Item]) -> Orphans {
    let mut waiting: HashMap<&CallId, Vec<(usize, usize, &ToolCall)>> = HashMap::new();
    let mut results = HashSet::new();
    for (at, item) in view.iter().enumerate() {
        if let Some(answer) = item.message.as_assistant() {
            for (order, call) in answer.tool_calls().enumerate() {
                waiting.entry(&call.id).or_default().push((at, order, call));
            }
        } else if let Some(result) = item.message.as_tool_result() {
            let calls = waiting.get_mut(&result.tool_call_id);
            let Some(calls) = calls else {
                results.insert(at);
                continue;
            };
            calls.pop();
            if calls.is_empty() {
                waiting.remove(&result.tool_call_id);
            }
        }
    }
    let mut calls: Vec<_> = waiting.into_values().flatten().collect();
    calls.sort_by_key(|(at, order, _)| (*at, *order));
    let mut unanswered: HashMap<usize, Vec<ToolCall>> = HashMap::new();
    for (at, _, call) in calls {
        unanswered.entry(at).or_default().push(call.clone());
    }
    Orphans { results, unanswered }
}

fn placeholder(call: &ToolCall) -> Item {
    let id: String = call.id.as_str().chars().take(NAMED).collect();
    let result = ToolResultMessage::new(call, vec![Block::text(MISSING_RESULT)], false);
    Item::new(format!("placeholder-{id}"), Message::from(result))
}
