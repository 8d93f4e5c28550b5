//! Effects of a machine: events, operations, records to store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decide::{Point, Subject};
use crate::event::Event;
use crate::ids::{AgentId, OpId};
use crate::json::Json;
use crate::limits::Grant;
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::{End, Outcome};
use crate::port::{
    AppendSource, CompactReason, CompactionNote, DrainPoint, Durability, Measured, PreparedAgent, Progress,
    ProposedCall,
};
use crate::tool::RetryClass;
use crate::transcript::Plan;

/// An effect for the driver to perform. Exhaustive on purpose: a new effect must break every driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Publish this event, in order, without waiting for a subscriber.
    Event(Event),
    /// Start this operation and reply once.
    Perform(OpId, Op),
    /// Cancel all operations in flight. After the grace period, reply [`crate::machine::Reply::Interrupted`] for those
    /// that have not replied.
    AbortAll,
    /// The end. Later inputs are ignored.
    Done(Arc<End>),
}

impl Effect {
    /// The event, if this publishes one.
    pub(crate) fn as_event(&self) -> Option<&Event> {
        if let Self::Event(event) = self { Some(event) } else { None }
    }
}

/// A record for the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    /// Messages of the transcript.
    Messages {
        /// The position of the first in the transcript.
        from: usize,
        /// The messages, in order.
        messages: Vec<Arc<Message>>,
    },
    /// A call starts. Not stored for `pure` tools.
    CallStarted {
        /// The call as it runs.
        call: Arc<ToolCall>,
        /// The attempt, from 1.
        attempt: u32,
        /// Whether a restart may repeat it.
        class: RetryClass,
    },
    /// A call finished before an earlier one of its batch.
    CallFinished {
        /// The call as it runs.
        call: Arc<ToolCall>,
        /// The attempt, from 1; 0 if a person denied the call before it started.
        attempt: u32,
        /// Whether a restart may repeat it.
        class: RetryClass,
        /// The message that follows in call order.
        result: Arc<Message>,
    },
    /// A compaction of the view, or of the transcript itself.
    Compaction {
        /// The compactor's note.
        note: Arc<CompactionNote>,
        /// The plan over the transcript before the compaction.
        plan: Plan,
        /// Whether the transcript becomes what the plan shows: positions start anew.
        permanent: bool,
        /// Messages of the transcript after the compaction.
        messages: usize,
    },
    /// A turn ended: all records before this one are on stable storage. Adds no entry to a session.
    TurnEnd,
    /// The run ended.
    RunEnd(Arc<End>),
}

impl Record {
    /// The durability that it needs: synced before an `unsafe` call runs and at the end of a turn.
    pub fn durability(&self) -> Durability {
        let is_unsafe = matches!(self, Self::CallStarted { class: RetryClass::Unsafe, .. });
        if is_unsafe || matches!(self, Self::TurnEnd | Self::RunEnd(_)) {
            Durability::Sync
        } else {
            Durability::Flush
        }
    }

    /// Whether it is stored again after a failed store.
    pub(crate) fn is_owed(&self) -> bool {
        !matches!(self, Self::CallStarted { .. } | Self::CallFinished { .. })
    }
}

/// The agent and the progress, for layers and the compactor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentProgress {
    /// The agent; `None` before the first one is prepared.
    #[serde(rename = "offer")]
    pub prepared: Option<Arc<PreparedAgent>>,
    /// The iteration, the time, and what is left of the budgets.
    pub progress: Progress,
}

/// An asynchronous operation. Exhaustive on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Op {
    /// Prepare an agent with the [`crate::port::AgentSource`] and the [`crate::tool::ToolRegistry`].
    Prepare {
        /// The agent; `None` is the entry agent.
        agent: Option<AgentId>,
        /// The iteration that needs it.
        iteration: u32,
    },
    /// Notify the layers that an execution starts.
    Begin {
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Show the layers messages before they are appended.
    Append {
        /// The origin of the messages.
        source: AppendSource,
        /// The messages, in order.
        messages: Vec<Arc<Message>>,
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Get the view from the layers.
    Recall {
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Get a shorter view from the compactor.
    Compact {
        /// The reason for the compaction.
        reason: CompactReason,
        /// The view so far.
        plan: Option<Plan>,
        /// The last request that a provider counted.
        measured: Option<Box<Measured>>,
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Call the model.
    Model {
        /// The progress of the turn.
        progress: Progress,
        /// The view; `None` is the whole transcript.
        plan: Option<Plan>,
        /// The agent and its tools.
        #[serde(rename = "offer")]
        prepared: Arc<PreparedAgent>,
        /// Whether tools may be called.
        with_tools: bool,
        /// The budget reserved for the call.
        grant: Grant,
    },
    /// Show the layers an answer.
    AfterModel {
        /// The model's answer.
        answer: Arc<Message>,
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Have the layers learn from an accepted answer.
    LayerStore {
        /// The model's answer.
        answer: Arc<Message>,
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Notify the layers that the execution ended.
    Complete {
        /// The outcome of the execution.
        outcome: Outcome,
        /// The agent and the progress.
        standing: Box<AgentProgress>,
    },
    /// Validate the arguments of a call.
    Arguments {
        /// The call to validate.
        call: Arc<ToolCall>,
    },
    /// Decide on a call with a gate.
    Gate {
        /// The index in [`PortSet::gates`](super::PortSet::gates).
        gate: u32,
        /// The proposed call.
        proposed: Box<ProposedCall>,
    },
    /// Ask a check.
    Check {
        /// The index in [`PortSet::checks`](super::PortSet::checks).
        check: u32,
        /// The subject of the check.
        subject: Box<Subject>,
    },
    /// Ask the approver about a held call.
    Approve {
        /// The held call, with the reason.
        proposed: Box<ProposedCall>,
    },
    /// Pass the model's own request to the approver.
    NoteApproval {
        /// The model's request.
        request: Box<ApprovalRequest>,
    },
    /// Run one attempt of a call.
    Tool {
        /// The call, with the arguments to use.
        call: Arc<ToolCall>,
        /// The agent that called.
        agent: AgentId,
        /// The iteration of the turn, from 1.
        iteration: u32,
        /// The position of its message in the transcript.
        message: u64,
        /// Its place in the batch, from 0.
        index: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// Whether a driver that lost it may repeat it.
        class: RetryClass,
        /// The budget reserved for it, beyond the call itself.
        grant: Grant,
    },
    /// Take queued steering messages.
    Drain {
        /// The point of the turn.
        #[serde(default)]
        point: DrainPoint,
    },
    /// Gather facts from outside the run for a stop decision.
    Facts {
        /// The request of the control.
        ask: Arc<Json>,
    },
    /// Store records in the session, in order: all of them or none.
    Store {
        /// The records, in order.
        records: Vec<Record>,
    },
    /// Save the state of the run. A failure stops nothing.
    Save {
        /// Messages of the transcript that belong to the state.
        messages: u64,
        /// The state; see [`crate::run::RunResume`].
        state: Arc<Json>,
    },
}

/// The purpose of an operation in flight: what its reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Prepare,
    Begin,
    AppendPrompt,
    AppendResults,
    AppendSteering,
    Recall,
    /// A compaction of the view.
    Compact,
    /// A compaction of the transcript.
    Shorten,
    Model,
    AfterModel,
    LayerStore,
    Complete,
    /// The arguments of a call of the batch.
    Arguments(u32),
    /// The call of the batch, the gate, and the point.
    Gate(u32, u32, Point),
    /// The point, and the check. The run asks about the end of a turn, the turn about anything else.
    Check(Point, u32),
    /// The call of the batch.
    Approve(u32),
    /// The call of the batch.
    Tool(u32),
    NoteApproval,
    Drain,
    Facts,
}
