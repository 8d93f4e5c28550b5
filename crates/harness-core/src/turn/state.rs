//! The data of a turn, and the context of its stages.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draining::{Draining, Then};
use super::loops::Loops;
use super::spec::TurnSpec;
use super::stage::{Stage, Step, enter, stop};
use crate::decide::Subject;
use crate::event::EventKind;
use crate::ids::AgentId;
use crate::json::Json;
use crate::limits::{Amount, Grant, Limit, Reached};
use crate::machine::{AgentProgress, Cx, Op, Pending, Reply};
use crate::message::{Cost, Message, UserMessage};
use crate::outcome::{Evidence, Fault, FaultSource, Stop, StopReason, TotalUsage};
use crate::port::{OpenCall, PreparedAgent, Progress};
use crate::time::{Millis, Time};
use crate::tool::ToolDef;

/// The data of a whole turn.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnData {
    pub(super) started_at: Time,
    /// The length of the transcript at the start.
    pub(super) began: usize,
    pub(super) deadline: Option<Time>,
    pub(super) resumed: bool,
    /// The agent of the next step; `None` until the entry agent is known.
    pub(super) agent: Option<AgentId>,
    pub(super) prepared: Option<Arc<PreparedAgent>>,
    /// Whether the agent changed since it was prepared.
    pub(super) is_stale: bool,
    pub(super) usage: TotalUsage,
    /// Iterations with a request, and the number of the last one.
    pub(super) asked: u32,
    pub(super) asked_in: u32,
    pub(super) last_step: LastStep,
    /// Messages of the transcript whose tokens are estimated, and these tokens.
    pub(super) counted: (usize, u64),
    /// Invalid answers in a row.
    pub(super) invalid: u32,
    /// Broken model steps in a row.
    pub(super) broken: u32,
    pub(super) loops: Loops,
    /// The stop after the last step, which has no tools; set once that step is next.
    pub(super) last_stop: Option<Stop>,
    /// Messages to inject: those that waited behind parked calls, or arrived while the turn stopped.
    pub(super) waiting: Vec<Arc<Message>>,
    /// The answer so far.
    pub(super) answer: Option<String>,
    /// The subject of the check that runs, or that stopped the turn.
    pub(super) checked: Option<Box<Subject>>,
    /// A question of a check that is not in the transcript yet.
    pub(super) question: Option<String>,
    /// The continuation that the approver gave in place of the usual one.
    pub(super) replaced: Option<Json>,
    /// Calls that ran behind parked ones of an ended turn: their results are not in the transcript.
    pub(super) left_open: Vec<OpenCall>,
}

/// The last model step.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LastStep {
    pub(super) asked_at: Time,
    pub(super) used: Amount,
    pub(super) took: Millis,
    /// The budget reserved for the step, while it runs.
    #[serde(skip)]
    pub(super) grant: Grant,
}

impl TurnData {
    /// The agent at work.
    pub(super) fn agent_id(&self) -> AgentId {
        let prepared = self.prepared.as_ref().map(|prepared| &prepared.agent);
        // Before the first agent is known nothing is asked in its name.
        prepared.or(self.agent.as_ref()).cloned().unwrap_or_else(|| AgentId::from("main"))
    }

    /// The JSON Schema of the agent's answers.
    pub(super) fn output(&self) -> Option<Json> {
        self.prepared.as_ref().and_then(|prepared| prepared.output.clone())
    }

    pub(super) fn tools(&self) -> &[ToolDef] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.tools)
    }

    /// The expected usage of `steps` model steps: that of the last one, for each.
    pub(super) fn step_amount(&self, steps: u32) -> Amount {
        let Amount { tokens, cost, .. } = self.last_step.used;
        let times = u64::from(steps);
        Amount {
            iterations: steps,
            tokens: tokens.saturating_mul(times),
            cost: Cost(cost.0.saturating_mul(times)),
            ..Amount::NONE
        }
    }

    /// The iteration, the time, and what is left of the budgets.
    pub(super) fn progress(&self, cx: &Cx<'_>) -> Progress {
        let elapsed = cx.now.since(self.started_at);
        Progress {
            iteration: cx.sh.iteration,
            tool_calls: self.usage.tool_calls,
            elapsed,
            left: cx.sh.budgets.left(),
        }
    }

    /// The agent and the progress, for layers and the compactor.
    pub(super) fn standing(&self, cx: &Cx<'_>) -> AgentProgress {
        AgentProgress { prepared: self.prepared.clone(), progress: self.progress(cx) }
    }
}

/// The context of a stage: the settings, the data of the turn, and the machine.
pub(super) struct TurnCx<'a> {
    pub(super) spec: &'a TurnSpec,
    pub(super) data: &'a mut TurnData,
    pub(super) cx: Cx<'a>,
}

impl TurnCx<'_> {
    pub(super) fn standing(&self) -> AgentProgress {
        self.data.standing(&self.cx)
    }

    pub(super) fn prepare_agent(&mut self) {
        let (agent, iteration) = (self.data.agent.clone(), self.cx.sh.iteration);
        self.cx.perform(Pending::Prepare, Op::Prepare { agent, iteration });
    }

    pub(super) fn take_prepared(&mut self, result: Result<Arc<PreparedAgent>, Fault>) -> Step<()> {
        let prepared = or_stop(result)?;
        self.data.agent = Some(prepared.agent.clone());
        if self.data.prepared.as_ref() != Some(&prepared) {
            self.cx.event(|| EventKind::AgentPrepared { prepared: Arc::clone(&prepared) });
        }
        self.data.prepared = Some(prepared);
        self.data.is_stale = false;
        ControlFlow::Continue(())
    }

    /// Emits the start of the turn: its agent is known.
    pub(super) fn announce(&mut self) {
        let (agent, resumed) = (self.data.agent_id(), self.data.resumed);
        self.cx.event(|| EventKind::TurnStarted { agent, resumed });
    }

    /// Appends a message by which the machine itself guides the model.
    pub(super) fn guide(&mut self, text: String) {
        self.cx.append_one(guidance_message(text));
    }

    /// The stop of a turn that has its answer.
    pub(super) fn stop_with_answer(&mut self) -> Step {
        let stop = self.data.last_stop.take();
        ControlFlow::Break(Box::new(stop.unwrap_or_else(|| StopReason::AnswerFinalized.into())))
    }

    pub(super) fn stop_at_limit<T>(&mut self, reason: StopReason, reached: Reached) -> Step<T> {
        self.cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
        stop(reason, Evidence::Limit(reached))
    }

    /// Makes the next step the last one, without tools.
    pub(super) fn close_with(&mut self, reached: Reached) {
        let reason = reached.limit.into();
        self.cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
        self.data.last_stop = Some(Stop::new(reason, Evidence::Limit(reached)));
    }

    /// Stops at the first limit that is reached: time, cost, tokens. Iterations and tool calls are checked at their start.
    pub(super) fn check_limits(&mut self) -> Step<()> {
        if let Some(reached) = self.overdue() {
            return self.stop_at_limit(StopReason::TimeoutReached, reached);
        }
        match self.cx.sh.budgets.spent() {
            Some(reached) => self.stop_at_limit(StopReason::BudgetReached, reached),
            None => ControlFlow::Continue(()),
        }
    }

    /// The evidence that the time is over.
    pub(super) fn overdue(&self) -> Option<Reached> {
        let now = self.cx.now;
        let deadline = self.data.deadline.filter(|deadline| now >= *deadline)?;
        let own = self.spec.limits.elapsed.map_or(u64::MAX, |span| span.0);
        let started_at = self.data.started_at;
        Some(Reached::new(Limit::Elapsed, now.since(started_at).0, own.min(deadline.since(started_at).0)))
    }
}

/// A reply that does not fit: the driver gave up, or broke its contract.
pub(super) fn unexpected(pending: Pending, reply: &Reply) -> Step {
    if matches!(reply, Reply::Interrupted { .. }) {
        let message = format!("the driver gave up on {pending:?} although nothing asked for it");
        return fail(StopReason::RuntimeError, "interrupted", message);
    }
    invariant(format!("a reply of the wrong kind answered {pending:?}"))
}

/// The stop of a machine that contradicts itself.
pub(super) fn invariant<T>(message: impl Into<String>) -> Step<T> {
    fail(StopReason::InternalInvariant, "internal_invariant", message)
}

fn fail<T>(reason: StopReason, code: &'static str, message: impl Into<String>) -> Step<T> {
    stop(reason, Evidence::Fault(Fault::new(FaultSource::Machine, code, message)))
}

/// The result of a part that the turn cannot do without.
pub(super) fn or_stop<T>(result: Result<T, Fault>) -> Step<T> {
    match result {
        Ok(value) => ControlFlow::Continue(value),
        Err(fault) => stop(StopReason::RuntimeError, Evidence::Fault(fault)),
    }
}

/// Injects what waits, then continues.
pub(super) fn drain(then: Then) -> Step {
    enter(Stage::Draining(Draining::new(then)))
}

/// A message by which the machine itself guides the model.
pub(crate) fn guidance_message(text: String) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text(text).from_origin("hook")))
}

/// The messages that layers returned for `shown`, without those that may not enter the transcript; `shown` when they
/// failed.
pub(super) fn admitted(
    cx: &mut Cx<'_>,
    shown: Vec<Arc<Message>>,
    result: Result<Vec<Arc<Message>>, Fault>,
) -> Vec<Arc<Message>> {
    let Some(mut given) = cx.tolerate(result) else { return shown };
    let before = given.len();
    given.retain(|message| stands_alone(message) || shown.contains(message));
    emit_refused(cx, before - given.len());
    given
}

/// Whether a message is neither a result nor holds calls, which need each other.
pub(super) fn stands_alone(message: &Message) -> bool {
    let calls = message.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_some());
    message.as_tool_result().is_none() && !calls
}

/// Reports messages of layers that may not enter the transcript.
pub(super) fn emit_refused(cx: &mut Cx<'_>, refused: usize) {
    if refused > 0 {
        let text = format!(
            "{refused} messages were left out: a layer adds neither results of calls nor answers with calls"
        );
        let fault = Fault::new(FaultSource::Layer, "append_refused", text);
        cx.event(|| EventKind::PartFailed { fault });
    }
}
