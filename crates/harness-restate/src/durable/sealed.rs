//! Agents in a journal: their names, in the place of their instructions and tools.
//!
//! What an agent is prepared with is large, and private to its author. It is kept with the thread under its hash;
//! what is journaled has a sealed agent, which is its id alone, and the hash beside it.

use std::sync::Arc;

use harness::core::decide::Subject;
use harness::core::event::{Event, EventKind};
use harness::core::machine::{Input, Op, Reply};
use harness::core::port::PreparedAgent;

/// Data that may have an agent.
pub(super) trait HasAgent {
    /// The agent, if there is one.
    fn agent_mut(&mut self) -> Option<&mut Arc<PreparedAgent>>;

    /// Removes the agent, and leaves its id.
    fn seal(&mut self) -> Option<Arc<PreparedAgent>> {
        let agent = self.agent_mut()?;
        let sealed = PreparedAgent::new(agent.agent.clone(), "", []);
        Some(std::mem::replace(agent, Arc::new(sealed)))
    }

    /// Puts the agent back.
    fn open(&mut self, opened: Arc<PreparedAgent>) {
        if let Some(agent) = self.agent_mut() {
            *agent = opened;
        }
    }
}

impl HasAgent for Input {
    fn agent_mut(&mut self) -> Option<&mut Arc<PreparedAgent>> {
        if let Self::Reply(_, Reply::Prepared(Ok(agent))) = self { Some(agent) } else { None }
    }
}

impl HasAgent for Event {
    fn agent_mut(&mut self) -> Option<&mut Arc<PreparedAgent>> {
        if let EventKind::AgentPrepared { prepared } = &mut self.kind { Some(prepared) } else { None }
    }
}

impl HasAgent for Op {
    fn agent_mut(&mut self) -> Option<&mut Arc<PreparedAgent>> {
        match self {
            Self::Model { prepared, .. } => Some(prepared),
            Self::Begin { standing }
            | Self::Append { standing, .. }
            | Self::Recall { standing }
            | Self::Compact { standing, .. }
            | Self::AfterModel { standing, .. }
            | Self::LayerStore { standing, .. }
            | Self::Complete { standing, .. } => standing.prepared.as_mut(),
            Self::Check { subject, .. } => {
                let Subject::End { progress, .. } = &mut **subject else { return None };
                Arc::make_mut(progress).prepared.as_mut()
            }
            Self::Prepare { .. }
            | Self::Arguments { .. }
            | Self::Gate { .. }
            | Self::Approve { .. }
            | Self::NoteApproval { .. }
            | Self::Tool { .. }
            | Self::Drain { .. }
            | Self::Facts { .. }
            | Self::Store { .. }
            | Self::Save { .. } => None,
        }
    }
}
