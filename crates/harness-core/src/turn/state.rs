//! The state of a turn: plain data, without messages that the transcript holds.

use std::sync::Arc;

use super::call_state::Batch;
use super::compaction::Shortening;
use super::cycle::Cycles;
use super::layers::Injecting;
use super::recovery::Recovering;
use super::redundancy::History;
use super::stage::{Reviewing, Stage};
use crate::ids::AgentId;
use crate::limits::{Amount, Grant};
use crate::machine::{Cx, Op, Pending, Start};
use crate::message::Message;
use crate::outcome::{Stop, TotalUsage};
use crate::port::{DrainPoint, PreparedAgent, Progress, ProposedCall};
use crate::time::{Millis, Time};
use crate::transcript::Plan;

/// What a drained steering queue is followed by when it was empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AfterDrain {
    /// The next iteration.
    #[default]
    Iterate,
    /// The end that the model's answer asks for.
    Complete,
}

/// The state of a turn. Drive it as a [`crate::turn::Turn`].
#[derive(Debug, Default)]
pub struct TurnState {
    pub(super) started_at: Time,
    /// The length of the transcript when it began.
    pub(super) began: u64,
    pub(super) turn_deadline: Option<Time>,
    pub(super) resumed: bool,
    /// Whether `turn_started` was told.
    pub(super) announced: bool,
    /// What is to be appended before the first iteration.
    pub(super) prompt: Vec<Arc<Message>>,
    /// What an earlier process left open; settled once the agent is known.
    pub(super) start: Option<Box<Start>>,
    /// The agent of the next step; `None` until the entry agent is known.
    pub(super) agent: Option<AgentId>,
    pub(super) prepared: Option<Arc<PreparedAgent>>,
    /// Whether the agent changed since `prepared`.
    pub(super) stale_prepared: bool,
    /// The view of the next request.
    pub(super) plan: Option<Plan>,
    pub(super) shortening: Shortening,
    pub(super) recovering: Recovering,
    pub(super) grant: Grant,
    pub(super) asked_at: Time,
    /// What is being checked.
    pub(super) checking: Option<Box<super::checks::Checking>>,
    /// Whether they let the prompt pass.
    pub(super) prompt_passed: bool,
    /// What the layers look at before it is injected.
    pub(super) injecting: Option<Box<Injecting>>,
    /// What it had used when its process ended, while it is taken up.
    pub(super) carried: Option<Box<super::resume::PriorUsage>>,
    /// Whether it is part of a run, which tells the layers of its end.
    pub(super) inner: bool,
    pub(super) batch: Option<Box<Batch>>,
    pub(super) history: History,
    pub(super) cycles: Cycles,
    /// What the last model step used, and how long it took.
    pub(super) last_step: Amount,
    pub(super) last_step_took: Millis,
    pub(super) usage: TotalUsage,
    /// Iterations whose model was called, and the number of the last one.
    pub(super) asked: u32,
    pub(super) asked_in: u32,
    /// Messages of the transcript whose tokens are estimated, and these tokens.
    pub(super) counted: (usize, u64),
    pub(super) invalid: u32,
    /// Set when the next step is the last one, asked without tools; the stop that follows it.
    pub(super) closing: Option<Stop>,
    pub(super) after_drain: AfterDrain,
    /// Messages that wait to be injected: what waited behind parked calls, what came while the turn stopped.
    pub(super) steering: Vec<Arc<Message>>,
    pub(super) stage: Stage,
    pub(super) answer: Option<String>,
    /// A question of a check that is not in the transcript yet.
    pub(super) question: Option<String>,
    /// A continuation of the approver's own.
    pub(super) replaced: Option<crate::json::Json>,
}

impl TurnState {
    /// A turn of a run.
    pub(crate) fn of_run() -> Self {
        Self { inner: true, ..Self::default() }
    }

    /// The length of the transcript when it began.
    pub(crate) fn began(&self) -> usize {
        usize::try_from(self.began).unwrap_or(usize::MAX)
    }

    pub(super) fn agent_id(&self) -> AgentId {
        agent_of(self.prepared.as_deref(), self.agent.as_ref())
    }

    /// What is left, with what is set aside for the step itself.
    fn left_for_step(&self, cx: &Cx<'_>) -> Amount {
        let left = cx.sh.budgets.left();
        let Amount { tokens, cost, .. } = self.grant.0;
        Amount { tokens: left.tokens.saturating_add(tokens), cost: left.cost.plus(cost), ..left }
    }

    /// Where the turn asks for steering.
    fn drain_point(&self, iteration: u32) -> DrainPoint {
        match self.after_drain {
            AfterDrain::Complete => DrainPoint::Answer,
            AfterDrain::Iterate if iteration == 0 => DrainPoint::Begin,
            AfterDrain::Iterate => DrainPoint::Round,
        }
    }

    /// The question to the model.
    pub(super) fn model_op(&self, cx: &Cx<'_>) -> Option<Op> {
        let elapsed = self.asked_at.since(self.started_at);
        Some(Op::Model {
            progress: Progress::new(cx.sh.iteration, self.usage.tool_calls, elapsed, self.left_for_step(cx)),
            plan: self.recovering.view(self.plan.as_ref()),
            prepared: Arc::clone(self.prepared.as_ref()?),
            with_tools: self.closing.is_none(),
            grant: self.grant,
        })
    }

    /// Asks for what `pending` stands for.
    pub(super) fn issue(&mut self, cx: &mut Cx<'_>, pending: Pending) {
        if let Some(op) = self.op_for(cx, pending) {
            cx.perform(pending, op);
        }
    }

    /// A call as gates and approvers see it; `None` when nothing of its name is offered.
    pub(super) fn proposed(&self, cx: &Cx<'_>, slot: &super::call_state::CallState) -> Option<ProposedCall> {
        let def = self.def_of(slot)?.clone();
        let proposed = ProposedCall::new(Arc::clone(&slot.call), def, self.agent_id(), cx.sh.iteration);
        Some(proposed.in_work_of(Arc::clone(&cx.sh.origin)))
    }

    /// The operation that `pending` stands for, built from the state.
    fn op_for(&self, cx: &Cx<'_>, pending: Pending) -> Option<Op> {
        let iteration = cx.sh.iteration;
        let call = |at: u32| self.batch.as_ref().and_then(|batch| batch.slot(at));
        Some(match pending {
            Pending::Prepare => Op::Prepare { agent: self.agent.clone(), iteration },
            Pending::Begin
            | Pending::AppendPrompt
            | Pending::AppendResults
            | Pending::AppendSteering
            | Pending::Recall
            | Pending::AfterModel
            | Pending::LayerStore
            | Pending::Complete => self.layers_op(cx, pending)?,
            Pending::Compact => self.compact_op(cx),
            Pending::Model => self.model_op(cx)?,
            Pending::NoteApproval => {
                let Some(Reviewing::Approver(request)) = self.reviewing() else { return None };
                Op::NoteApproval { request: request.clone() }
            }
            Pending::Drain => Op::Drain { point: self.drain_point(iteration) },
            Pending::Arguments(at) => Op::Arguments { call: Arc::clone(&call(at)?.call) },
            Pending::Gate(at, gate, _) => {
                Op::Gate { gate, proposed: Box::new(self.proposed(cx, call(at)?)?) }
            }
            Pending::Check(_, check) => {
                Op::Check { check, subject: Box::new(self.checking.as_ref()?.subject.clone()) }
            }
            Pending::Approve(at) => {
                let slot = call(at)?;
                Op::Approve { proposed: Box::new(self.proposed(cx, slot)?.held(slot.hold_reason())) }
            }
            Pending::Tool(at) => call(at)?.op(at, self.batch.as_ref()?.answer_at, self.agent_id(), iteration),
            Pending::Facts | Pending::Shorten => return None,
        })
    }
}

/// The agent at work.
pub(super) fn agent_of(prepared: Option<&PreparedAgent>, agent: Option<&AgentId>) -> AgentId {
    match (prepared, agent) {
        (Some(PreparedAgent { agent, .. }), _) | (None, Some(agent)) => agent.clone(),
        // Before the first agent is known nothing is asked in its name.
        (None, None) => AgentId::from("main"),
    }
}
