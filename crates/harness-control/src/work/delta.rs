//! What a change of a ledger was, so that the ledger can be rebuilt from the results of tools.

use harness_core::Json;
use harness_core::message::ToolResultMessage;
use serde::{Deserialize, Serialize};

use super::{ItemId, ItemStatus, WorkItem, WorkLedger};

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

/// How a change affected one item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemChange {
    /// The item.
    pub id: ItemId,
    /// The status before the change; `None` for a new item.
    pub before: Option<ItemStatus>,
    /// Whether the notes differ from those before. True for a new item.
    pub has_new_notes: bool,
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

    /// Applies a change. Returns the items that it changed.
    pub(crate) fn apply(&mut self, delta: LedgerDelta) -> Vec<ItemChange> {
        if delta.before == 0 {
            self.items.clear();
        }
        (self.added, self.changes) = (delta.added, delta.changes);
        let mut changes = Vec::with_capacity(delta.items.len());
        for item in delta.items {
            let known = self.items.iter_mut().find(|known| known.id == item.id);
            changes.push(ItemChange {
                id: item.id.clone(),
                before: known.as_ref().map(|known| known.status),
                has_new_notes: known.as_ref().is_none_or(|known| known.notes != item.notes),
            });
            match known {
                Some(known) => *known = item,
                None => self.items.push(item),
            }
        }
        changes
    }

    /// Applies the change in the result of a work tool. Returns the items that it changed; the results of other
    /// tools change none.
    pub fn fold(&mut self, result: &ToolResultMessage) -> Vec<ItemChange> {
        #[derive(Deserialize)]
        struct Changed {
            ledger: LedgerDelta,
        }
        if result.is_error || !CHANGING.contains(&result.tool_name.as_str()) {
            return Vec::new();
        }
        let told = result.structured.as_ref().map(Json::to::<Changed>);
        told.and_then(Result::ok).map_or_else(Vec::new, |told| self.apply(told.ledger))
    }
}
