//! Clearing without a plan: the last resort when nothing else can be done at once.

use harness_core::Json;
use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};

use super::durability::{DurabilityPolicies, ToolDurability, ToolNames, text_of};
use super::group::{Group, Groups};
use super::item::{Item, units};

/// What stands for a result that was cleared without a plan.
pub const DIRECTLY_CLEARED: &str = "[Tool result cleared to save context]";

/// Clears long tool results, the oldest first, until enough is gone.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::{Block, Message, ToolCall, ToolResultMessage};
/// use harness_memory::compact::clear::DirectClear;
/// use harness_memory::compact::item::Item;
///
/// let call = ToolCall::new("c1", "list_directory", Json::empty_object());
/// let result = ToolResultMessage::new(&call, vec![Block::text("a".repeat(300))], false);
/// let mut items = vec![
///     Item::new("t", Message::from(result)),
///     Item::new("u", Message::user("and now?")),
///     Item::new("u2", Message::user("hello?")),
/// ];
/// let cleared = DirectClear::default().apply(&mut items);
/// assert_eq!((cleared.results, cleared.freed_estimate), (1, 65));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectClear {
    /// Results of so many characters stay. Default 100.
    pub max_kept_characters: usize,
    /// The newest messages are left alone. Default 2.
    pub keep_last_messages: usize,
    /// Stop when so many tokens are gone, as estimated. Default never.
    pub target: Option<u64>,
    /// What may be done with results: `non_replayable` ones stay. Default
    /// [`DurabilityPolicies::built_in`].
    pub policies: DurabilityPolicies,
}

impl Default for DirectClear {
    fn default() -> Self {
        Self {
            max_kept_characters: 100,
            keep_last_messages: 2,
            target: None,
            policies: DurabilityPolicies::built_in(),
        }
    }
}

/// What was cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectlyCleared {
    /// Results.
    pub results: usize,
    /// Tokens, as a quarter of the characters that are gone.
    pub freed_estimate: u64,
}

impl DirectClear {
    /// Clears results among `items`. Pinned ones and those of a call that waits for more stay.
    pub fn apply(&self, items: &mut [Item]) -> DirectlyCleared {
        let mut cleared = DirectlyCleared::default();
        let new_length = DIRECTLY_CLEARED.chars().count();
        for at in self.candidates(items) {
            if self.target.is_some_and(|target| cleared.freed_estimate >= target) {
                break;
            }
            let Some(item) = items.get_mut(at) else { continue };
            let Some(result) = item.message.as_tool_result() else { continue };
            let length = text_of(result).chars().count();
            let call =
                ToolCall::new(result.tool_call_id.clone(), result.tool_name.clone(), Json::empty_object());
            let placeholder =
                ToolResultMessage::new(&call, vec![Block::text(DIRECTLY_CLEARED)], result.is_error);
            item.message = Message::from(placeholder).into();
            cleared.results += 1;
            cleared.freed_estimate += (length.saturating_sub(new_length) / 4) as u64;
        }
        cleared
    }

    fn candidates(&self, items: &[Item]) -> Vec<usize> {
        let groups = Groups::of(items);
        let names = ToolNames::of(items);
        let units = units(items);
        let old = units.iter().take(units.len().saturating_sub(self.keep_last_messages));
        let may_go = |at: &usize| {
            let result = items.get(*at).and_then(|item| item.message.as_tool_result());
            let is_protected =
                groups.index_of(*at).and_then(|group| groups.get(group)).is_some_and(Group::is_protected);
            result.is_some_and(|result| {
                let length = text_of(result).chars().count();
                let durability = names.envelope(result, &self.policies).durability_now(&self.policies);
                !is_protected
                    && length > self.max_kept_characters
                    && durability != ToolDurability::NonReplayable
            })
        };
        old.flat_map(Clone::clone).filter(may_go).collect()
    }
}
