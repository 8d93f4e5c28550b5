//! Changes of a ledger, from which it can be rebuilt.

use harness_core::Json;
use harness_core::message::ToolResultMessage;
use serde::{Deserialize, Serialize};

use super::{ItemId, ItemStatus, WorkItem, WorkLedger};

/// The tools whose results hold a [`LedgerDelta`].
const CHANGING: [&str; 4] =
    ["work_item_add", "work_item_update", "work_item_set_artifact", "work_item_flag_revision"];

/// Change of a ledger: the changed items as a whole. Work tools return it under `ledger` in their structured results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct LedgerDelta {
    /// Changed items, with their artifacts.
    pub items: Vec<WorkItem>,
    /// Number of items before the change; 0 starts a new ledger.
    pub before: usize,
    /// Number of the last added item.
    pub added: u32,
    /// Number of added items and stored artifacts.
    pub changes: u32,
}

/// Effect of a change on one item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemChange {
    /// Id of the item.
    pub id: ItemId,
    /// Status before the change; `None` for a new item.
    pub before: Option<ItemStatus>,
    /// Whether the notes differ from those before. True for a new item.
    pub has_new_notes: bool,
}

impl WorkLedger {
    /// Computes the change since `before`, an earlier state of this ledger.
    pub fn delta_since(&self, before: &Self) -> LedgerDelta {
        let is_new = |item: &&WorkItem| before.get(&item.id).ok() != Some(*item);
        LedgerDelta {
            items: self.items.iter().filter(is_new).cloned().collect(),
            before: before.items.len(),
            added: self.added,
            changes: self.changes,
        }
    }

    /// Applies a change and returns its effects.
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

    /// Applies the change in the result of a work tool and returns its effects. Other results have none.
    pub fn fold(&mut self, result: &ToolResultMessage) -> Vec<ItemChange> {
        #[derive(Deserialize)]
        struct Changed {
            ledger: LedgerDelta,
        }
        if result.is_error || !CHANGING.contains(&result.tool_name.as_str()) {
            return Vec::new();
        }
        let changed = result.structured.as_ref().map(Json::to::<Changed>);
        changed.and_then(Result::ok).map_or_else(Vec::new, |changed| self.apply(changed.ledger))
    }
}
