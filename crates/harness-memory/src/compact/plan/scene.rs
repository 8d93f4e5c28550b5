//! What strategies look at: messages of the wire with their tokens, groups and protection. Made once for
//! all strategies.

use std::ops::Range;
use std::sync::Arc;

use harness_core::message::{Message, ToolResultMessage};
use harness_core::port::TokenCounter;

use super::count::content_tokens;
use crate::compact::clear::DIRECTLY_CLEARED;
use crate::compact::durability::{DurabilityPolicies, ToolNames, ToolResultEnvelope, text_of};
use crate::compact::group::{Group, GroupKind, Groups};
use crate::compact::item::{Item, units};
use crate::compact::pairing::MISSING_RESULT;
use crate::compact::summary::SpanReference;

/// What a placeholder of a cleared message begins with.
pub(super) const CLEARED: &str = "[Cleared:";
/// What a pointer to a stored content begins with.
pub(super) const EXTERNALIZED: &str = "[Externalized Content - artifact:";

/// One message of the wire.
pub(super) struct Unit {
    /// Where its parts lie among the items.
    pub(super) parts: Range<usize>,
    /// Tokens of what it says.
    pub(super) tokens: u64,
    /// Whether no strategy may touch it (law 6).
    pub(super) is_protected: bool,
}

pub(super) struct Scene<'a> {
    pub(super) items: &'a [Item],
    pub(super) units: Vec<Unit>,
    pub(super) groups: Groups,
    unit_of: Vec<usize>,
    names: ToolNames<'a>,
    policies: &'a DurabilityPolicies,
}

impl<'a> Scene<'a> {
    pub(super) fn of(
        items: &'a [Item],
        counter: &dyn TokenCounter,
        policies: &'a DurabilityPolicies,
    ) -> Self {
        let groups = Groups::of(items);
        let mut unit_of = Vec::with_capacity(items.len());
        let unit = |(index, parts): (usize, Range<usize>)| {
            unit_of.extend(parts.clone().map(|_| index));
            let messages = items.get(parts.clone()).unwrap_or_default();
            let owners = parts.clone().filter_map(|at| groups.get(groups.index_of(at)?));
            Unit {
                tokens: messages.iter().map(|item| content_tokens(counter, &item.message)).sum(),
                is_protected: owners.into_iter().any(Group::is_protected),
                parts,
            }
        };
        let units = units(items).into_iter().enumerate().map(unit).collect();
        Self { items, units, groups, unit_of, names: ToolNames::of(items), policies }
    }

    /// The first unit of the newest `preserve`.
    pub(super) fn border(&self, preserve: usize) -> usize {
        self.units.len().saturating_sub(preserve)
    }

    pub(super) fn parts(&self, unit: &Unit) -> &'a [Item] {
        self.items.get(unit.parts.clone()).unwrap_or_default()
    }

    /// The results of a unit that has nothing but results.
    pub(super) fn results(&self, unit: &Unit) -> Vec<&'a ToolResultMessage> {
        self.parts(unit).iter().filter_map(|item| item.message.as_tool_result()).collect()
    }

    pub(super) fn envelope(&self, result: &ToolResultMessage) -> ToolResultEnvelope {
        self.names.envelope(result, self.policies)
    }

    pub(super) fn policies(&self) -> &'a DurabilityPolicies {
        self.policies
    }

    /// What a unit says.
    pub(super) fn text(&self, unit: &Unit) -> String {
        let text = |item: &Item| match item.message.as_tool_result() {
            Some(result) => text_of(result),
            None => item.message.joined_text(),
        };
        self.parts(unit).iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// Whether all messages of a group are older than a border, so that a cut there does not split it.
    pub(super) fn is_before(&self, group: &Group, border: usize) -> bool {
        self.unit_of.get(group.last()).is_some_and(|unit| *unit < border)
    }

    /// The groups that a unit's parts belong to.
    pub(super) fn groups_of(&self, unit: &Unit) -> impl Iterator<Item = &Group> {
        unit.parts.clone().filter_map(|at| self.groups.get(self.groups.index_of(at)?))
    }

    /// What states the task: what the user said first.
    pub(super) fn first_user_unit(&self) -> Option<usize> {
        let first = self.groups.get(self.groups.first_user()?)?.first();
        self.unit_of.get(first).copied()
    }

    /// The units of a group, ascending, each once.
    pub(super) fn units_of(&self, group: &Group) -> Vec<usize> {
        let mut units: Vec<usize> =
            group.members.iter().filter_map(|at| self.unit_of.get(*at).copied()).collect();
        units.dedup();
        units
    }

    /// A span over units.
    pub(super) fn span(&self, units: &[usize], first: usize, last: usize) -> Option<SpanReference> {
        let id = |unit: &usize| Some(self.parts(self.units.get(*unit)?).first()?.id.clone());
        SpanReference::new(units.iter().filter_map(id), first as u64, last as u64).ok()
    }

    /// The messages of units.
    pub(super) fn messages(&self, units: &[usize]) -> Vec<Arc<Message>> {
        let units = units.iter().filter_map(|unit| self.units.get(*unit));
        units.flat_map(|unit| self.parts(unit)).map(|item| item.message.clone()).collect()
    }
}

/// Whether a message is a placeholder of one whose content is gone.
pub(super) fn is_cleared(message: &Message) -> bool {
    begins_with_one_of(message, &[CLEARED, MISSING_RESULT, DIRECTLY_CLEARED])
}

/// Whether a message stands for something already: a placeholder, or a pointer to what is stored elsewhere.
pub(super) fn is_stand_in(message: &Message) -> bool {
    is_cleared(message) || begins_with_one_of(message, &[EXTERNALIZED])
}

fn begins_with_one_of(message: &Message, begins: &[&str]) -> bool {
    let mut blocks = message.content().iter();
    let text = blocks.find_map(|block| block.as_text());
    text.is_some_and(|text| begins.iter().any(|begin| text.starts_with(begin)))
}

/// Whether a group says nothing any more: its results are cleared and its calls stand alone, or its one
/// text is cleared.
pub(super) fn is_spent(group: &Group, items: &[Item]) -> bool {
    let members = || group.members.iter().filter_map(|at| items.get(*at));
    match group.kind {
        GroupKind::ToolCall => {
            let spent = |item: &Item| match item.message.as_tool_result() {
                Some(_) => is_cleared(&item.message),
                None => item.message.joined_text().is_empty(),
            };
            members().any(|item| item.message.as_tool_result().is_some()) && members().all(spent)
        }
        GroupKind::AssistantText | GroupKind::User => members().all(|item| is_cleared(&item.message)),
        GroupKind::System | GroupKind::Unsent => false,
    }
}
