//! Arguments of the work-item tools.

use schemars::JsonSchema;
use serde::Deserialize;

/// One item to add.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Add {
    /// What is to be done.
    pub(super) title: String,
    /// `deliverable`, `working` (default) or `control`.
    #[serde(default)]
    pub(super) role: Option<String>,
    /// `high`, `medium` (default) or `low`.
    #[serde(default)]
    pub(super) priority: Option<String>,
    /// More about it.
    #[serde(default)]
    pub(super) notes: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddArguments {
    /// What is to be done.
    #[serde(default)]
    title: Option<String>,
    /// `deliverable`, `working` (default) or `control`.
    #[serde(default)]
    role: Option<String>,
    /// `high`, `medium` (default) or `low`.
    #[serde(default)]
    priority: Option<String>,
    /// More about it.
    #[serde(default)]
    notes: String,
    /// Several items at once.
    #[serde(default)]
    items: Vec<Add>,
}

impl AddArguments {
    pub(super) fn items(self) -> Vec<Add> {
        let Self { title, role, priority, notes, items } = self;
        let one = title.map(|title| Add { title, role, priority, notes });
        one.into_iter().chain(items).collect()
    }
}

/// How far one item is.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Update {
    /// The item.
    pub(super) item_id: String,
    /// `pending`, `in_progress`, `done` or `skipped`.
    pub(super) status: String,
    /// More about it; replaces what was there when not empty.
    #[serde(default)]
    pub(super) notes: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UpdateArguments {
    /// The item.
    #[serde(default)]
    item_id: Option<String>,
    /// `pending`, `in_progress`, `done` or `skipped`.
    #[serde(default)]
    status: Option<String>,
    /// More about it; replaces what was there when not empty.
    #[serde(default)]
    notes: String,
    /// Several items at once.
    #[serde(default)]
    items: Vec<Update>,
}

impl UpdateArguments {
    pub(super) fn items(self) -> Vec<Update> {
        let Self { item_id, status, notes, items } = self;
        let one = item_id.map(|item_id| Update { item_id, status: status.unwrap_or_default(), notes });
        one.into_iter().chain(items).collect()
    }
}

fn all() -> String {
    "all".to_owned()
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct List {
    /// Only items of this status; `all` (default) lists every item.
    #[serde(default = "all")]
    pub(super) filter_status: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Get {
    /// The item.
    pub(super) item_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Store {
    /// The item.
    pub(super) item_id: String,
    /// What came of it.
    pub(super) artifact: String,
    /// `deliverable`, `working` or `control`; the item keeps its own without.
    #[serde(default)]
    pub(super) role: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Flag {
    /// The item.
    pub(super) item_id: String,
    /// What is wrong with it.
    pub(super) reason: String,
}
