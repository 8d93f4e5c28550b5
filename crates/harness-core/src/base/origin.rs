//! Origin of work: the ids that events, tools and sessions carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, CallId, RunId, SessionId, ThreadId, ToolName, TurnId};
use crate::json::Json;

/// Ids and caller data of work, carried by events, tools and sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Origin {
    /// Assistant, as the caller names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Arc<str>>,
    /// Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// Run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Stored session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Workspace, as the caller names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// User, as the caller names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Caller data, copied into events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Tools that this work may use; `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Arc<[ToolName]>>,
    /// Hash of the descriptor that defines the agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_hash: Option<Arc<str>>,
    /// Call that started this work; `None` for work that a user requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<ParentCall>>,
}

/// Call on whose behalf a sub-agent works.
///
/// ```
/// use harness_core::{Origin, ParentCall};
///
/// let main = Origin::default();
/// let child = main.child(ParentCall::new("call-1", "main", &main));
/// assert_eq!((main.depth(), child.depth()), (0, 1));
/// assert_eq!((main.actor(), child.actor()), ("agent", "sub_agent"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParentCall {
    /// Call id.
    #[serde(rename = "callId")]
    pub call: CallId,
    /// Calling agent.
    pub agent: AgentId,
    /// Run of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Turn of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Nesting depth; 1 for a sub-agent of a top-level agent.
    pub depth: u32,
}

impl ParentCall {
    /// Creates the parent of work that `agent` starts with `call`.
    pub fn new(call: impl Into<CallId>, agent: impl Into<AgentId>, origin: &Origin) -> Self {
        Self {
            call: call.into(),
            agent: agent.into(),
            run: origin.run.clone(),
            turn: origin.turn.clone(),
            depth: origin.depth().saturating_add(1),
        }
    }
}

impl Origin {
    /// Nesting depth: 0 for work that a user requested, 1 for its sub-agents.
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// Returns `sub_agent` for work that a call started, else `agent`.
    pub fn actor(&self) -> &'static str {
        if self.parent.is_some() { "sub_agent" } else { "agent" }
    }

    /// Origin of work that a call starts: the same thread, no session, and no run or turn yet.
    #[must_use]
    pub fn child(&self, parent: ParentCall) -> Self {
        Self { run: None, turn: None, session: None, parent: Some(Arc::new(parent)), ..self.clone() }
    }
}
