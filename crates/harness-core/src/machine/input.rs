//! What a driver tells a machine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decide::{Answered, CheckDecision, GateDecision};
use crate::ids::{AgentId, EntryId, OpId};
use crate::json::Json;
use crate::machine::CallDecision;
use crate::message::Message;
use crate::outcome::{Continuation, Fault, TotalUsage};
use crate::port::{Compaction, Decision, ModelFault, OpenCall, Prepared, PreparedAgent};
use crate::tool::{ArgumentFault, ToolOutcome};
use crate::transcript::Plan;

/// What begins a turn or a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Start {
    /// The messages that begin it. Empty: go on where the transcript ends.
    pub prompt: Vec<Arc<Message>>,
    /// The agent to start with; `None` is the entry agent.
    pub agent: Option<AgentId>,
    /// What it resumes.
    pub continuation: Option<Box<Continuation>>,
    /// Calls that an earlier process had started, from the session.
    pub open_calls: Vec<OpenCall>,
    /// What was decided about parked calls. They count only for calls of `continuation`; with any, the
    /// calls that nothing was decided about stay parked. Made by [`Continuation::start`].
    pub decisions: Vec<CallDecision>,
    /// Messages that were pushed in while calls were parked: they come after the results of those.
    pub waiting: Vec<Arc<Message>>,
}

impl Start {
    /// Begins with a prompt.
    pub fn prompt(message: impl Into<Message>) -> Self {
        Self { prompt: vec![Arc::new(message.into())], ..Self::default() }
    }

    /// Goes on where the transcript ends.
    pub fn resume() -> Self {
        Self::default()
    }

    /// The same start with the calls that a session shows as open.
    #[must_use]
    pub fn with_open_calls(mut self, open: Vec<OpenCall>) -> Self {
        self.open_calls = open;
        self
    }

    /// The same start with another agent than the entry agent.
    #[must_use]
    pub fn with_agent(mut self, agent: Option<AgentId>) -> Self {
        self.agent = agent;
        self
    }

    /// The same start with messages that were pushed in while calls were parked.
    #[must_use]
    pub fn with_waiting(mut self, waiting: Vec<Arc<Message>>) -> Self {
        self.waiting = waiting;
        self
    }

    /// The same start, resuming an earlier turn.
    #[must_use]
    pub fn with_continuation(mut self, continuation: Option<Continuation>) -> Self {
        self.continuation = continuation.map(Box::new);
        self
    }
}

/// One input of a machine. Exhaustive on purpose: a durable engine journals them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Input {
    /// Begin. Once.
    Start(Box<Start>),
    /// What came of an operation.
    Reply(OpId, Reply),
    /// The time of [`crate::machine::Machine::wake_at`] has come.
    Wake,
    /// Stop as soon as possible; finished work is kept.
    Cancel {
        /// Who cancels.
        by: Arc<str>,
    },
    /// A part beside the machine failed: it is told, and nothing follows from it.
    PartFailed(Fault),
    /// Parts spent this on models since the last time; it comes before the reply of the operation in which they
    /// did.
    Spent(Box<TotalUsage>),
}

/// What came of an operation. Exhaustive on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// Of [`crate::machine::Op::Prepare`].
    Prepared(Result<Arc<PreparedAgent>, Fault>),
    /// Of [`crate::machine::Op::Begin`], [`crate::machine::Op::LayerStore`] and
    /// [`crate::machine::Op::Complete`]: the layers took note.
    Noted(Result<(), Fault>),
    /// Of [`crate::machine::Op::Append`].
    Appended(Result<Vec<Arc<Message>>, Fault>),
    /// Of [`crate::machine::Op::Recall`].
    Recalled(Result<Option<Plan>, Fault>),
    /// Of [`crate::machine::Op::Compact`].
    Compacted(Result<Box<Compaction>, Fault>),
    /// Of [`crate::machine::Op::Model`]: an assistant message.
    Model(Result<Arc<Message>, Box<ModelFault>>),
    /// Of [`crate::machine::Op::AfterModel`]: what the model reads when its answer does not count.
    AfterModel(Result<Option<String>, Fault>),
    /// Of [`crate::machine::Op::Arguments`].
    Arguments(Result<(), Box<ArgumentFault>>),
    /// Of [`crate::machine::Op::Gate`].
    Gate(Box<Answered<GateDecision>>),
    /// Of [`crate::machine::Op::Check`].
    Check(Box<Answered<CheckDecision>>),
    /// Of [`crate::machine::Op::Approve`].
    Approval(Decision),
    /// Of [`crate::machine::Op::NoteApproval`].
    ApprovalNoted(Result<Box<Prepared>, Fault>),
    /// Of [`crate::machine::Op::Tool`].
    Tool(Result<Box<ToolOutcome>, Fault>),
    /// Of [`crate::machine::Op::Drain`].
    Drained(Vec<(EntryId, Arc<Message>)>),
    /// Of [`crate::machine::Op::Facts`].
    Facts(Result<Json, Fault>),
    /// Of [`crate::machine::Op::Store`]: whether all of it is stored, or nothing, and why.
    Stored(Result<(), String>),
    /// Of [`crate::machine::Op::Save`].
    Saved(Result<(), Fault>),
    /// The driver gave up on the operation.
    Interrupted {
        /// What a model had said so far.
        partial: Option<Arc<Message>>,
    },
}
