//! Calls the model: its budget is reserved first, and its usage is charged.
//!
//! The turn may continue from a broken step ([`TurnSpec::continue_broken`](super::TurnSpec::continue_broken)). The text
//! of the step stays in the transcript, so that the next request continues from it. That request ends with one more user
//! message, which is not in the transcript.

use std::borrow::Cow;
use std::sync::Arc;

use super::call_ids::unique;
use super::draining::Then;
use super::reviewing::{Reviewing, answer_unrun};
use super::stage::{Stage, Step, WAIT, enter, stop};
use super::state::{LastStep, TurnCx, drain, guidance_message, invariant, unexpected};
use super::viewing::Viewing;
use crate::event::EventKind;
use crate::limits::{Amount, Grant};
use crate::machine::{Cx, Op, Pending, Reply};
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::outcome::{Evidence, Fault, FaultSource, Purpose, StopReason};
use crate::port::{ModelFault, ModelFaultCode, Progress};
use crate::port::{answer_tokens, message_tokens, prepared_tokens, request_tokens};
use crate::transcript::{Plan, View};

/// The last message of a request behind a broken step.
const CONTINUE: &str = "continue";

#[derive(Debug)]
pub(super) struct Asking {
    view: Viewing,
}

impl Asking {
    pub(super) fn new(view: Viewing) -> Self {
        Self { view }
    }

    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        // Layers and the compactor may have spent the rest since the iteration started.
        if let Some(reached) = turn.cx.sh.budgets.spent() {
            return turn.stop_at_limit(reached.limit.into(), reached);
        }
        match turn.cx.sh.budgets.reserve(turn.data.step_amount(1)) {
            Ok(grant) => turn.data.last_step.grant = grant,
            Err(reached) => return turn.stop_at_limit(reached.limit.into(), reached),
        }
        turn.data.last_step.asked_at = turn.cx.now;
        if turn.data.asked_in != turn.cx.sh.iteration {
            turn.data.asked_in = turn.cx.sh.iteration;
            turn.data.asked = turn.data.asked.saturating_add(1);
        }
        self.view.emit(&mut turn.cx);
        let Some(prepared) = turn.data.prepared.clone() else { return invariant("the agent is not known") };
        let with_tools = turn.data.last_stop.is_none();
        let ending = ending(turn);
        turn.cx.event(|| EventKind::ModelStepStarted {
            agent: prepared.agent.clone(),
            model: prepared.model.clone(),
            closing: (!with_tools).then_some(true),
            ending: ending.clone(),
        });
        let (progress, plan, grant) = (progress(turn), self.plan(ending), turn.data.last_step.grant);
        turn.cx.sh.request = Some(Op::Model { progress, plan, prepared, with_tools, grant });
        WAIT
    }

    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (_, Reply::Model(Ok(answer))) => {
                let answer = self.take_answer(turn, answer);
                if answer.as_assistant().is_none() {
                    return invariant("a model answered with another role than assistant");
                }
                enter(Stage::Reviewing(Reviewing::New(answer)))
            }
            (_, Reply::Model(Err(fault))) => self.on_fault(turn, *fault),
            (pending, Reply::Interrupted { partial }) => {
                self.take_cut_answer(turn, partial);
                unexpected(pending, &Reply::Interrupted { partial: None })
            }
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    /// The view of the request, with the message behind it.
    fn plan(&self, ending: Option<Arc<Message>>) -> Option<Plan> {
        let plan = self.view.plan();
        ending.map_or_else(|| plan.cloned(), |ending| Some(Plan::followed_by(plan, ending)))
    }

    /// Charges the usage of an answer. Returns it with unique call ids and its tokens.
    pub(super) fn take_answer(&mut self, turn: &mut TurnCx<'_>, answer: Arc<Message>) -> Arc<Message> {
        let mut answer = unique(turn.cx.log, answer);
        let reported = answer.as_assistant().and_then(|answer| answer.usage.as_ref());
        if !reported.is_some_and(|usage| usage.has_tokens())
            && turn.cx.sh.budgets.limits_tokens()
            && let Message::Assistant(answer) = Arc::make_mut(&mut answer)
        {
            self.estimate(turn, answer);
        }
        if let Some(message) = answer.as_assistant() {
            charge(turn, message, true);
            self.view.measure(&mut turn.cx, message);
        }
        answer
    }

    fn on_fault(&mut self, turn: &mut TurnCx<'_>, mut fault: ModelFault) -> Step {
        let broke_off = fault.partial.is_some();
        let recovers = breaks_off(&fault) && turn.data.broken < turn.spec.continue_broken;
        let failure = self.take_fault(turn, &mut fault, recovers);
        if recovers {
            return continue_broken(turn, fault.code.as_str());
        }
        let overflow = fault.code == ModelFaultCode::ContextLengthExceeded;
        if overflow
            && !broke_off
            && turn.cx.ports.compactor
            && let Some(viewing) = self.view.mend(&failure)
        {
            return enter(viewing);
        }
        let reason = if overflow {
            StopReason::ContextOverflow
        } else if fault.code == ModelFaultCode::Cancelled {
            return stop(StopReason::Cancelled, Evidence::Cancelled { by: Arc::from("model") });
        } else if fault.code == ModelFaultCode::Deferred {
            StopReason::BackendDeferred
        } else if fault.code == ModelFaultCode::BudgetReached {
            StopReason::BudgetReached
        } else {
            StopReason::RuntimeError
        };
        stop(reason, Evidence::Fault(failure))
    }

    /// Keeps the partial answer of a model that failed, and emits the failure. `recovers`: whether the turn continues from
    /// it.
    pub(super) fn take_fault(
        &mut self,
        turn: &mut TurnCx<'_>,
        fault: &mut ModelFault,
        recovers: bool,
    ) -> Fault {
        let mut partial = fault.partial.take();
        if let Some(partial) = &mut partial {
            self.estimate(turn, partial);
        }
        let usage = partial.as_ref().and_then(|partial| partial.usage.clone());
        charge(turn, partial.as_deref().unwrap_or(&AssistantMessage::default()), false);
        let kept = match partial {
            Some(partial) if recovers => to_continue(*partial),
            Some(partial) => Some(*partial),
            None => None,
        };
        if let Some(partial) = kept {
            append_partial(&mut turn.cx, partial, "the answer that asked for it broke off");
        }
        let failure = Fault::new(FaultSource::Model, fault.code.as_str(), std::mem::take(&mut fault.message));
        turn.cx.event(|| EventKind::ModelStepFailed { fault: failure.clone(), usage });
        failure
    }

    /// Keeps the partial answer of a model that was cut off, marked as such.
    pub(super) fn take_cut_answer(&mut self, turn: &mut TurnCx<'_>, partial: Option<Arc<Message>>) {
        let arrived = partial.as_ref().and_then(|message| message.as_assistant()).cloned();
        let mut cut = arrived.unwrap_or_default();
        cut.agent.get_or_insert_with(|| turn.data.agent_id());
        // The request was sent, and counts.
        self.estimate(turn, &mut cut);
        charge(turn, &cut, false);
        if partial.is_some() {
            append_partial(&mut turn.cx, cut, "the answer that asked for it was cut off");
        }
    }

    /// Estimates the tokens of an answer when they are limited and its provider reported none.
    fn estimate(&self, turn: &mut TurnCx<'_>, answer: &mut AssistantMessage) {
        let reported = answer.usage.as_deref().cloned().unwrap_or_default();
        let Some(prepared) = turn.data.prepared.clone() else { return };
        if reported.has_tokens() || !turn.cx.sh.budgets.limits_tokens() {
            return;
        }
        let with_tools = turn.data.last_stop.is_none();
        let input = match self.plan(ending(turn)) {
            Some(plan) => request_tokens(&View::planned(turn.cx.log.prefix(), plan), &prepared, with_tools),
            None => log_tokens(turn).saturating_add(prepared_tokens(&prepared, with_tools)),
        };
        answer.usage = Some(Arc::new(reported.or_estimated(input, answer_tokens(answer))));
    }
}

/// Charges the usage of a model call; failed and cut-off calls count.
fn charge(turn: &mut TurnCx<'_>, message: &AssistantMessage, answered: bool) {
    let mut used = Amount { iterations: 1, ..Amount::NONE };
    turn.data.usage.add_call(Purpose::Answer, message.usage.as_deref(), answered);
    if let Some(usage) = &message.usage {
        used.tokens = usage.all_tokens();
        used.cost = usage.total_cost().unwrap_or_default();
    }
    let LastStep { asked_at, grant, .. } = turn.data.last_step;
    let took = turn.cx.now.since(asked_at);
    turn.data.last_step = LastStep { asked_at, used, took, grant: Grant::default() };
    turn.cx.sh.budgets.settle(grant, used);
}

/// The progress of the turn; what is left includes the budget of the step itself.
fn progress(turn: &TurnCx<'_>) -> Progress {
    let mut progress = turn.data.progress(&turn.cx);
    let Amount { tokens, cost, .. } = turn.data.last_step.grant.0;
    progress.left.tokens = progress.left.tokens.saturating_add(tokens);
    progress.left.cost = progress.left.cost.plus(cost);
    progress
}

/// Tokens of the transcript. Each message is counted once in a turn.
fn log_tokens(turn: &mut TurnCx<'_>) -> u64 {
    let log = &turn.cx.log;
    let (seen, tokens) = turn.data.counted;
    let new = log.range(seen.min(log.len())..log.len()).map(|message| message_tokens(message));
    let tokens = new.fold(tokens, u64::saturating_add);
    turn.data.counted = (log.len(), tokens);
    tokens
}

/// Whether a model failed during its answer: another attempt may get further.
fn breaks_off(fault: &ModelFault) -> bool {
    use ModelFaultCode::{Network, Protocol, Provider, Timeout};
    fault.http_status.is_none() && matches!(fault.code, Provider | Network | Timeout | Protocol)
}

/// The message behind the view of a request: [`CONTINUE`] behind a broken step.
fn ending(turn: &TurnCx<'_>) -> Option<Arc<Message>> {
    (turn.data.broken > 0).then(|| guidance_message(CONTINUE.to_owned()))
}

/// Continues behind a broken step.
pub(super) fn continue_broken(turn: &mut TurnCx<'_>, reason: impl Into<Cow<'static, str>>) -> Step {
    turn.data.broken = turn.data.broken.saturating_add(1);
    let (reason, attempt, most) = (reason.into(), turn.data.broken, turn.spec.continue_broken);
    turn.cx.event(|| EventKind::ModelStepContinued { reason, attempt, most });
    drain(Then::Iterate)
}

/// Appends a partial answer; its calls get results (law 1).
fn append_partial(cx: &mut Cx<'_>, partial: AssistantMessage, why: &str) {
    let partial = unique(cx.log, Arc::new(Message::Assistant(partial)));
    cx.append_one(Arc::clone(&partial));
    answer_unrun(cx, &partial, why);
}

/// The partial answer to continue from, not marked as failed, because requests omit failed answers. `None` when it is
/// empty.
fn to_continue(mut partial: AssistantMessage) -> Option<AssistantMessage> {
    if matches!(partial.stop_reason, FinishReason::Error | FinishReason::Aborted) {
        partial.stop_reason = FinishReason::Other("incomplete".to_owned());
    }
    (!partial.content.is_empty()).then_some(partial)
}
