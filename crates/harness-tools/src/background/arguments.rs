//! Arguments of the tools of background agents.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Start {
    /// Name of the agent.
    pub(super) agent: String,
    /// Task for someone without context: all information, and what the answer must contain.
    pub(super) description: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Continue {
    /// Number of the task.
    pub(super) task_id: u64,
    /// What to do next.
    pub(super) description: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wait {
    /// Numbers of the tasks. Default: all running tasks.
    #[serde(default)]
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Results {
    /// Numbers of the tasks.
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Clear {
    /// Numbers of the tasks. Default: all finished tasks.
    #[serde(default)]
    pub(super) task_ids: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}
