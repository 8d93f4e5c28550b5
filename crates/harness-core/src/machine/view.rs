//! What of the view outlives a request.

use serde::{Deserialize, Serialize};

use crate::port::Measured;
use crate::transcript::Plan;

/// What of the view outlives a request, a turn and a run: what a compaction left in force, and what a
/// provider counted last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ViewState {
    /// What is shown of the transcript until another compaction replaces it; `None` shows all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The last request that a provider counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<Measured>>,
}

impl ViewState {
    /// The state with a plan in force, for example that of a session that was loaded.
    pub fn of(plan: Option<Plan>) -> Self {
        Self { plan, measured: None }
    }
}
