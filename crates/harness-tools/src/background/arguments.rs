//! What the tools of background agents are called with.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Start {
    /// Which agent.
    pub(super) agent: String,
    /// What it is to do, as if told to a stranger: all the context, and what its answer must hold.
    pub(super) description: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Continue {
    /// The number of the task.
    pub(super) task_id: u64,
    /// What it is to do now.
    pub(super) description: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wait {
    /// The numbers of the tasks; all that run, without.
    #[serde(default)]
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Results {
    /// The numbers of the tasks.
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Clear {
    /// The numbers of the tasks; all that are over, without.
    #[serde(default)]
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}
