//! What a machine asks of its driver.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decide::Subject;
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

/// One thing for the driver to do. Exhaustive on purpose: a new effect must break every driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// This happened: tell it, in order, without waiting for anybody.
    Event(Event),
    /// Start this and answer it once.
    Perform(OpId, Op),
    /// Fire the cancellation of everything outstanding; after the grace period answer
    /// [`crate::machine::Reply::Interrupted`] for what has not answered.
    AbortAll,
    /// Over. Later inputs are ignored.
    Done(Arc<End>),
}

/// Effects in order, and what of them is wanted.
#[derive(Debug)]
pub struct Effects {
    list: Vec<Effect>,
    pub(crate) events: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self::new()
    }
}

impl Effects {
    /// All effects.
    pub fn new() -> Self {
        Self { list: Vec::new(), events: true }
    }

    /// Leaves events out (they are still numbered), for runs that nobody listens to.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        self.events = false;
        self
    }

    /// Takes the effects.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.list.drain(..)
    }

    /// The effects so far.
    pub fn as_slice(&self) -> &[Effect] {
        &self.list
    }

    /// The same, for whoever takes what they hold.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Effect] {
        &mut self.list
    }

    /// Adds an effect.
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Forgets the effects.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }
}

/// One thing to store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    /// Messages of the transcript.
    Messages {
        /// The position of the first.
        from: usize,
        /// The messages.
        messages: Vec<Arc<Message>>,
    },
    /// A call is about to run. Not written for `pure` tools.
    CallStarted {
        /// The call.
        call: Arc<ToolCall>,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: RetryClass,
    },
    /// A call has finished before an earlier one of its batch.
    CallFinished {
        /// The call.
        call: Arc<ToolCall>,
        /// The attempt, from 1.
        attempt: u32,
        /// What a restart may do with it.
        class: RetryClass,
        /// The message that will follow in call order.
        result: Arc<Message>,
    },
    /// The view, or the transcript itself, is shorter from here on.
    Compaction {
        /// What was done.
        note: Arc<CompactionNote>,
        /// What is shown, over the transcript as it was.
        plan: Plan,
        /// Whether the transcript itself is what the plan shows: positions start anew.
        permanent: bool,
        /// Messages of the transcript from here on.
        messages: usize,
    },
    /// A turn has ended: everything before this is on stable storage. Adds nothing to a session.
    TurnEnd,
    /// The run is over.
    RunEnd(Arc<End>),
}

impl Record {
    /// How safe it must be before anything follows: synced before an `unsafe` call runs and at the end of a turn.
    pub fn durability(&self) -> Durability {
        match self {
            Self::CallStarted { class: RetryClass::Unsafe, .. } | Self::TurnEnd | Self::RunEnd(_) => {
                Durability::Sync
            }
            Self::Messages { .. }
            | Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::Compaction { .. } => Durability::Flush,
        }
    }

    /// Whether it must not be missing: it is tried again after a store has failed.
    pub(crate) fn is_owed(&self) -> bool {
        match self {
            Self::Messages { .. } | Self::Compaction { .. } | Self::TurnEnd | Self::RunEnd(_) => true,
            Self::CallStarted { .. } | Self::CallFinished { .. } => false,
        }
    }
}

/// Where the work stands when layers or the compactor are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Standing {
    /// The agent at work; `None` before the first one was prepared.
    #[serde(rename = "offer")]
    pub prepared: Option<Arc<PreparedAgent>>,
    /// The iteration, the time, and what is left of the budgets.
    pub progress: Progress,
}

/// One asynchronous operation. Exhaustive on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Op {
    /// Ask the [`crate::port::AgentSource`] and the [`crate::tool::ToolRegistry`] what the agent is.
    Prepare {
        /// The agent; `None` is the entry agent.
        agent: Option<AgentId>,
        /// The iteration that it is for.
        iteration: u32,
    },
    /// Tell the layers that an execution begins.
    Begin {
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Show the layers the messages about to be appended.
    Append {
        /// Where the messages come from.
        source: AppendSource,
        /// The messages.
        messages: Vec<Arc<Message>>,
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Ask the layers for the view.
    Recall {
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Ask the compactor for a shorter view.
    Compact {
        /// Why.
        reason: CompactReason,
        /// The view so far.
        plan: Option<Plan>,
        /// The last request that a provider counted.
        measured: Option<Box<Measured>>,
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Ask the model.
    Model {
        /// Where the turn stands.
        progress: Progress,
        /// The view.
        plan: Option<Plan>,
        /// The agent.
        #[serde(rename = "offer")]
        prepared: Arc<PreparedAgent>,
        /// Whether tools may be called.
        with_tools: bool,
        /// What is set aside for the call.
        grant: Grant,
    },
    /// Show the layers the answer.
    AfterModel {
        /// The answer.
        answer: Arc<Message>,
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Let the layers learn from an answer that was accepted.
    LayerStore {
        /// The answer.
        answer: Arc<Message>,
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Tell the layers that the execution is over.
    Complete {
        /// How it ended.
        outcome: Outcome,
        /// Where the work stands.
        standing: Box<Standing>,
    },
    /// Check the arguments of a call.
    Arguments {
        /// The call.
        call: Arc<ToolCall>,
    },
    /// Ask the n-th tool gate.
    Gate {
        /// Which gate, from 0.
        gate: u32,
        /// About what.
        proposed: Box<ProposedCall>,
    },
    /// Ask a check.
    Check {
        /// Its place in [`PortSet::checks`](super::PortSet::checks).
        check: u32,
        /// What it looks at.
        subject: Box<Subject>,
    },
    /// Ask the approver about a held call.
    Approve {
        /// The call, with the reason why it is held.
        proposed: Box<ProposedCall>,
    },
    /// Let the approver take note of the model's own request.
    NoteApproval {
        /// The request.
        request: Box<ApprovalRequest>,
    },
    /// Run one attempt of a call.
    Tool {
        /// The call, with the arguments to use.
        call: Arc<ToolCall>,
        /// The agent that asked.
        agent: AgentId,
        /// The iteration.
        iteration: u32,
        /// The position of the message that asks for it, in the transcript.
        message: u64,
        /// Its place in the batch, from 0.
        index: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// What it may spend beyond itself.
        grant: Grant,
    },
    /// Ask for waiting steering messages.
    Drain {
        /// Where in the turn.
        #[serde(default)]
        point: DrainPoint,
    },
    /// Find out what lies outside of the run and a stop decision rests on.
    Facts {
        /// What.
        ask: Arc<Json>,
    },
    /// Write these into the session, in order and at once: all of them or none.
    Store {
        /// What to write.
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

impl Op {
    /// Takes the operation out of its place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Drain { point: DrainPoint::Round })
    }
}
