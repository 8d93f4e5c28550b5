//! Backend data stored in a message.

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block};
use serde::{Deserialize, Serialize};

use crate::execution::{ExecutionContinuation, ExecutionResult, NegotiationReason};

const NAMESPACE: &str = "harness";
const BACKEND: &str = "backend";
const BACKEND_TOOL: &str = "backend_tool";

/// Backend data stored in a message: an extension block `backend` of the namespace `harness`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BackendNote {
    /// Id of the backend.
    pub backend_id: String,
    /// How it ended: `completed`, `deferred` and so on.
    pub status: String,
    /// Continuation; passed to the backend at the next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ExecutionContinuation>,
    /// Requested features that were not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradation: Vec<NegotiationReason>,
    /// Additional data from the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Number of the backend's own tool calls that were dropped from the message.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tools_left_out: u64,
}

/// A call of a backend's own tool: an extension block `backend_tool` of the namespace `harness`, in the order
/// of the calls. No turn decided about it, and none counts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BackendTool {
    /// The backend's id of the call.
    pub id: String,
    /// The tool, as the backend names it.
    pub name: String,
    /// Its arguments; `null` when they were too large to be kept.
    pub input: Json,
    /// Output of the call, truncated; `None` if the backend did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the backend says that it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl BackendNote {
    pub(super) fn of(result: &ExecutionResult, tools_left_out: u64) -> Self {
        Self {
            backend_id: result.backend_id.clone(),
            status: result.status.as_str().to_owned(),
            continuation: result.continuation.clone(),
            degradation: result.degradation.clone().unwrap_or_default(),
            metadata: result.metadata.clone(),
            tools_left_out,
        }
    }

    /// The note of a message; `None` when no backend made it.
    pub fn read(message: &AssistantMessage) -> Option<Self> {
        message.content.iter().rev().find_map(|block| own(block, BACKEND)?.to().ok())
    }

    pub(super) fn block(&self) -> Block {
        Block::extension(NAMESPACE, BACKEND, Json::of(self).unwrap_or_default())
    }
}

impl BackendTool {
    /// The calls of the backend that made a message, in their order.
    pub fn read(message: &AssistantMessage) -> Vec<Self> {
        message.content.iter().filter_map(|block| own(block, BACKEND_TOOL)?.to().ok()).collect()
    }

    pub(super) fn block(&self) -> Block {
        Block::extension(NAMESPACE, BACKEND_TOOL, Json::of(self).unwrap_or_default())
    }
}

fn own<'b>(block: &'b Block, word: &str) -> Option<&'b Json> {
    if let Block::Extension(own) = block
        && own.namespace == NAMESPACE
        && own.name == word
    {
        return Some(&own.data);
    }
    None
}
