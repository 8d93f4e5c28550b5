//! What a machine asks of its driver.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Origin, Shared};
use crate::event::{Event, EventKind};
use crate::ids::{AgentId, OpId};
use crate::limits::Grant;
use crate::message::{ApprovalRequest, Message, ToolCall};
use crate::outcome::{End, Outcome};
use crate::port::{
    AppendSource, CompactReason, CompactionNote, DrainPoint, Durability, FactsAsk, GuardedAnswer, HookAsk,
    Measured, Offer, Progress, ProposedCall, RetryClass, StopStanding, ToolOutcome,
};
use crate::time::{Millis, Time};
use crate::transcript::Plan;

/// One thing for the driver to do. Exhaustive on purpose: a new effect must break every driver.
// With a tag of its own, an operation is copied into it as it lies.
#[repr(u8)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Journal this before any later effect. On failure send [`crate::machine::Input::PersistFailed`].
    Persist(Record),
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
    /// The effects, and behind them what is left of earlier ones: an event that is over leaves its share of the
    /// origin to the next event in its place.
    list: Vec<Effect>,
    /// How many effects there are.
    live: usize,
    pub(crate) events: bool,
    pub(crate) journal: bool,
    /// Memory of what is over.
    pub(crate) spare: Spare,
}

/// Memory of what is over, for the next one of its kind.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    /// Of an outcome.
    pub(crate) outcome: Option<Box<ToolOutcome>>,
    /// Of an outcome that was shared, once nobody else has it.
    pub(crate) shared: Option<Arc<ToolOutcome>>,
    /// Of a list of calls that was told; empty.
    calls: Vec<Arc<ToolCall>>,
    /// Where a list of calls is told now.
    calls_at: Option<usize>,
}

impl Spare {
    /// An outcome in memory that can be shared.
    pub(crate) fn share(&mut self, mut outcome: Box<ToolOutcome>) -> Arc<ToolOutcome> {
        let mut shared = self.shared.take().unwrap_or_default();
        match Arc::get_mut(&mut shared) {
            Some(place) => std::mem::swap(place, &mut *outcome),
            None => shared = Arc::new(std::mem::take(&mut *outcome)),
        }
        self.outcome = Some(outcome);
        shared
    }
}

impl Default for Effects {
    fn default() -> Self {
        Self::new()
    }
}

impl Effects {
    /// Effects of one input, nearly always: room for them is made once, and below the size from which an
    /// allocator tidies up.
    const USUAL: usize = 6;

    /// All effects.
    pub fn new() -> Self {
        Self {
            list: Vec::with_capacity(Self::USUAL),
            live: 0,
            events: true,
            journal: true,
            spare: Spare::default(),
        }
    }

    /// Leaves events out (they are still numbered), for runs that nobody listens to.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        self.events = false;
        self
    }

    /// Leaves journal records out, for runs that nobody stores.
    #[must_use]
    pub fn without_journal(mut self) -> Self {
        self.journal = false;
        self
    }

    /// Takes the effects, leaving the list empty and its memory in place.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.list.truncate(std::mem::take(&mut self.live));
        self.list.drain(..)
    }

    /// The effects so far.
    pub fn as_slice(&self) -> &[Effect] {
        self.list.get(..self.live).unwrap_or_default()
    }

    /// The same, for whoever takes what they hold.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Effect] {
        self.list.get_mut(..self.live).unwrap_or_default()
    }

    /// Adds an effect.
    #[expect(clippy::inline_always, reason = "what is built is written where it lies, not moved there")]
    #[inline(always)]
    pub(crate) fn push(&mut self, effect: Effect) {
        match self.list.get_mut(self.live) {
            Some(over) => *over = effect,
            None => self.list.push(effect),
        }
        self.live += 1;
    }

    /// Adds an event whose kind is not written yet. Where it is written: in place, since kinds are large.
    pub(crate) fn place_event(&mut self, shared: &Shared, seq: u64, at: Time) -> Option<&mut EventKind> {
        let over = self.list.get(self.live);
        if !matches!(over, Some(Effect::Event(event)) if Arc::ptr_eq(&event.origin, &shared.origin)) {
            self.make_place(&shared.origin);
        }
        let Some(Effect::Event(event)) = self.list.get_mut(self.live) else { return None };
        self.live += 1;
        (event.seq, event.at) = (seq, at);
        (event.turn, event.iteration) = (shared.turn, shared.iteration);
        Some(&mut event.kind)
    }

    /// Makes the next place one of an event.
    #[cold]
    fn make_place(&mut self, origin: &Arc<Origin>) {
        let (origin, kind) = (Arc::clone(origin), EventKind::RunStarted { descriptor_hash: None });
        self.push(Effect::Event(Event { seq: 0, at: Time(0), origin, turn: 0, iteration: 0, kind }));
        self.live -= 1;
    }

    /// Forgets the effects. What they hold is let go of when others take their places, but for a list of calls,
    /// whose memory the next list has.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if let Some(at) = self.spare.calls_at.take() {
            self.keep_calls(at);
        }
        self.live = 0;
    }

    /// An empty list of calls, for the event that comes next.
    pub(crate) fn calls_to_tell(&mut self) -> Vec<Arc<ToolCall>> {
        self.spare.calls_at = self.events.then_some(self.live);
        std::mem::take(&mut self.spare.calls)
    }

    fn keep_calls(&mut self, at: usize) {
        if let Some(Effect::Event(Event { kind: EventKind::ToolRequested { calls, .. }, .. })) =
            self.list.get_mut(at)
        {
            calls.clear();
            self.spare.calls = std::mem::take(calls);
        }
    }
}

/// The phases that a boundary can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Calls left open by an earlier process are settled.
    Repair,
    /// The transcript is as short as it has to be.
    Compact,
    /// A turn is over.
    Turn,
    /// It is decided how the run goes on.
    Decide,
}

/// What is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    /// These messages of the transcript.
    Messages(Range<usize>),
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
        /// Whether the transcript itself is what the plan shows: positions begin anew.
        permanent: bool,
        /// Messages of the transcript from here on.
        messages: usize,
    },
    /// A boundary between phases. The place for a checkpoint.
    Boundary {
        /// The phase that is over.
        phase: Boundary,
        /// The turn, from 1.
        turn: u32,
        /// Its last iteration.
        iteration: u32,
    },
    /// The run is over.
    RunEnd(Arc<End>),
}

impl Record {
    /// How safe it must be before the next effect: synced before an `unsafe` call runs and at boundaries.
    pub fn durability(&self) -> Durability {
        match self {
            Self::CallStarted { class: RetryClass::Unsafe, .. }
            | Self::Boundary { phase: Boundary::Turn, .. }
            | Self::RunEnd(_) => Durability::Sync,
            Self::Messages(_)
            | Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::Compaction { .. }
            | Self::Boundary { phase: Boundary::Repair | Boundary::Compact | Boundary::Decide, .. } => {
                Durability::Flush
            }
        }
    }
}

/// Where the work stands when layers or the compactor are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Standing {
    /// The agent at work; `None` before the first one was prepared.
    pub offer: Option<Arc<Offer>>,
    /// The iteration, the time, and what is left of the budgets.
    pub progress: Progress,
}

/// One asynchronous operation. Exhaustive on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Op {
    /// Ask the [`crate::port::AgentSource`] and the [`crate::port::ToolRegistry`] what the agent is.
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
        offer: Arc<Offer>,
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
    Store {
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
    /// Ask the n-th input guardrail.
    GuardInput {
        /// Which guardrail, from 0.
        guardrail: u32,
        /// About what.
        messages: Vec<Arc<Message>>,
        /// How long it may take.
        timeout: Option<Millis>,
    },
    /// Ask the n-th output guardrail.
    GuardOutput {
        /// Which guardrail, from 0.
        guardrail: u32,
        /// About what.
        answer: Arc<GuardedAnswer>,
        /// How long it may take.
        timeout: Option<Millis>,
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
    /// Ask the hooks.
    Hook {
        /// About what.
        ask: Box<HookAsk>,
        /// Where the turn stands.
        progress: Progress,
        /// The position in the transcript at which the turn began.
        from: u64,
    },
    /// Ask for waiting steering messages.
    Drain {
        /// Where in the turn.
        #[serde(default)]
        point: DrainPoint,
    },
    /// Ask the n-th stop gate.
    StopGate {
        /// Which gate, from 0.
        gate: u32,
        /// The end that it judges.
        end: Arc<End>,
        /// Where the run stands.
        standing: Arc<StopStanding>,
    },
    /// Find out what lies outside of the run and a stop decision rests on.
    Facts {
        /// What.
        ask: Arc<FactsAsk>,
    },
}

impl Op {
    /// Takes the operation out of its place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Drain { point: DrainPoint::Round })
    }
}
