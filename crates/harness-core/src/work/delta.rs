//! What a change of a ledger was, so that the ledger can be rebuilt from the results of tools.

use serde::{Deserialize, Serialize};

use super::{ItemId, WorkItem, WorkLedger};
use crate::json::Json;
use crate::message::ToolResultMessage;

/// The tools whose results hold a [`LedgerDelta`].
const CHANGING: [&str; 4] =
    ["work_item_add", "work_item_update", "work_item_set_artifact", "work_item_flag_revision"];

/// What a change of a ledger was: the items as they are after it, whole. Tools give it in the structured part
/// of their results, under `ledger`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LedgerDelta {
    /// The items that changed, with their artifacts.
    pub items: Vec<WorkItem>,
    /// How many items there were before; 0 begins a ledger anew.
    pub before: usize,
    /// The number of the item added last.
    pub added: u32,
    /// How many times an item was added or an artifact stored.
    pub changes: u32,
}

impl WorkLedger {
    /// What changed since `before`, an earlier state of the same ledger.
    pub fn delta_since(&self, before: &Self) -> LedgerDelta {
        let is_new = |item: &&WorkItem| before.get(&item.id).ok() != Some(*item);
        LedgerDelta {
            items: self.items.iter().filter(is_new).cloned().collect(),
            before: before.items.len(),
            added: self.added,
            changes: self.changes,
        }
    }

    /// Takes a change over. Which items it changed.
    pub fn apply(&mut self, delta: LedgerDelta) -> Vec<ItemId> {
        if delta.before == 0 {
            self.items.clear();
        }
        (self.added, self.changes) = (delta.added, delta.changes);
        let changed = delta.items.iter().map(|item| item.id.clone()).collect();
        for item in delta.items {
            match self.items.iter_mut().find(|known| known.id == item.id) {
                Some(known) => *known = item,
                None => self.items.push(item),
            }
        }
        changed
    }

    /// Takes over what the result of a work tool says. Which items it changed; any other result changes none.
    pub fn fold(&mut self, result: &ToolResultMessage) -> Vec<ItemId> {
        #[derive(Deserialize)]
        struct Told {
            ledger: LedgerDelta,
        }
        if result.is_error || !CHANGING.contains(&result.tool_name.as_str()) {
            return Vec::new();
        }
        let told = result.structured.as_ref().map(Json::to::<Told>);
        told.and_then(Result::ok).map_or_else(Vec::new, |told| self.apply(told.ledger))
    }
}
