//! Inputs of a machine: the start, replies, cancellation, time.

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

/// The start of a turn or a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Start {
    /// The first messages. Empty: continue where the transcript ends.
    pub prompt: Vec<Arc<Message>>,
    /// The agent to start with; `None` is the entry agent.
    pub agent: Option<AgentId>,
    /// The continuation that it resumes.
    pub continuation: Option<Box<Continuation>>,
    /// Calls that an earlier process started, from the session.
    pub open_calls: Vec<OpenCall>,
    /// Decisions about pending calls of `continuation`. Calls without a decision stay pending. Made by
    /// [`Continuation::start`].
    pub decisions: Vec<CallDecision>,
    /// Messages that arrived while calls were pending: they follow the results of these.
    pub waiting: Vec<Arc<Message>>,
}

impl Start {
    /// Starts with a prompt.
    pub fn prompt(message: impl Into<Message>) -> Self {
        Self { prompt: vec![Arc::new(message.into())], ..Self::default() }
    }

    /// Continues where the transcript ends.
    pub fn resume() -> Self {
        Self::default()
    }

    /// Sets the open calls of the session.
    #[must_use]
    pub fn with_open_calls(mut self, open: Vec<OpenCall>) -> Self {
        self.open_calls = open;
        self
    }
}

/// An input of a machine. Exhaustive on purpose: a durable engine journals them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Input {
    /// Starts the machine, once.
    Start(Box<Start>),
    /// The reply to an operation.
    Reply(OpId, Reply),
    /// The time of [`crate::machine::Machine::wake_at`] has come.
    Wake,
    /// Stops as soon as possible; finished work is kept.
    Cancel {
        /// The part that cancels, for example `caller`.
        by: Arc<str>,
    },
    /// A part beside the machine failed. It is emitted, and has no other effect.
    PartFailed(Fault),
    /// Usage of models by ports since the last such input. It precedes the reply of the operation.
    Spent(Box<TotalUsage>),
}

/// The reply to an operation. Exhaustive on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// Of [`crate::machine::Op::Prepare`].
    Prepared(Result<Arc<PreparedAgent>, Fault>),
    /// Of [`crate::machine::Op::Begin`], [`crate::machine::Op::LayerStore`] and
    /// [`crate::machine::Op::Complete`].
    Noted(Result<(), Fault>),
    /// Of [`crate::machine::Op::Append`].
    Appended(Result<Vec<Arc<Message>>, Fault>),
    /// Of [`crate::machine::Op::Recall`].
    Recalled(Result<Option<Plan>, Fault>),
    /// Of [`crate::machine::Op::Compact`].
    Compacted(Result<Box<Compaction>, Fault>),
    /// Of [`crate::machine::Op::Model`]: an assistant message.
    Model(Result<Arc<Message>, Box<ModelFault>>),
    /// Of [`crate::machine::Op::AfterModel`]: guidance when the model must answer again.
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
    Tool(Result<Arc<ToolOutcome>, Fault>),
    /// Of [`crate::machine::Op::Drain`].
    Drained(Vec<(EntryId, Arc<Message>)>),
    /// Of [`crate::machine::Op::Facts`].
    Facts(Result<Json, Fault>),
    /// Of [`crate::machine::Op::Store`]: all is stored, or nothing, with the reason.
    Stored(Result<(), String>),
    /// Of [`crate::machine::Op::Save`].
    Saved(Result<(), Fault>),
    /// The driver gave the operation up.
    Interrupted {
        /// The answer of a model so far.
        partial: Option<Arc<Message>>,
    },
}
