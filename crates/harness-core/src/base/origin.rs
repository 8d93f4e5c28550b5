//! Whose work it is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, CallId, RunId, SessionId, ThreadId, ToolName, TurnId};
use crate::json::Json;

/// Whose work it is: the ids that events, tools and sessions carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Origin {
    /// The caller's name for the assistant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Arc<str>>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The stored session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The caller's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// The caller's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The caller's own data, copied into events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The tools that this work may use at most; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Arc<[ToolName]>>,
    /// The descriptor that the agents come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_hash: Option<Arc<str>>,
    /// The call that has begun this work; `None` for work that a user asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<ParentCall>>,
}

/// The call on whose behalf a sub-agent works.
///
/// ```
/// use harness_core::{Origin, ParentCall};
///
/// let main = Origin::default();
/// let child = main.child(ParentCall::new("call-1", "main", &main));
/// assert_eq!((main.depth(), child.depth()), (0, 1));
/// assert_eq!((main.actor(), child.actor()), ("agent", "sub_agent"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParentCall {
    /// The call.
    #[serde(rename = "callId")]
    pub call: CallId,
    /// The agent that made it.
    pub agent: AgentId,
    /// The run that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The turn that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// How many calls lie between this work and work that a user asked for; 1 for a sub-agent of an agent
    /// that no call has begun.
    pub depth: u32,
}

impl ParentCall {
    /// A call that an agent made in the work of `origin`.
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
    /// How many calls lie between this work and work that a user asked for: 0 unless a sub-agent does it.
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// Who works: `agent`, or `sub_agent` when a call of other work has begun it.
    pub fn actor(&self) -> &'static str {
        if self.parent.is_some() { "sub_agent" } else { "agent" }
    }

    /// The origin of work that a call has begun: of the same conversation, without a session, and with a run
    /// and turn that are still to be named.
    #[must_use]
    pub fn child(&self, parent: ParentCall) -> Self {
        Self { run: None, turn: None, session: None, parent: Some(Arc::new(parent)), ..self.clone() }
    }
}
