//! From the prompt to the model's answer.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::recovery::{append_partial, kept_partial};
use super::spec::TurnSpec;
use super::stage::{Reviewing, Stage};
use super::state::{AfterDrain, TurnState};
use crate::event::EventKind;
use crate::ids::EntryId;
use crate::limits::{Amount, Budget, Limit, Reached};
use crate::machine::{Cx, Pending, Start};
use crate::message::{AssistantMessage, Cost, Invalid, Message, ModelOutput, ToolCall, UserMessage};
use crate::outcome::{End, Evidence, Fault, FaultSource, Stop, StopReason};
use crate::port::{ModelFault, ModelFaultCode, Prepared, PreparedAgent};
use crate::time::Millis;
use crate::transcript::Plan;

impl TurnState {
    pub(super) fn start(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        self.started_at = cx.now;
        self.began = cx.log.len() as u64;
        self.resumed = start.continuation.is_some();
        self.agent.clone_from(&start.agent);
        let deadline = spec.limits.elapsed.map(|span| cx.now.after(span));
        cx.sh.budgets.push(Budget::new(spec.limits.amount(), deadline));
        self.charge_carried(cx);
        self.turn_deadline = cx.sh.budgets.deadline();
        self.prompt.clone_from(&start.prompt);
        if self.prompt.is_empty() {
            self.steering.clone_from(&start.waiting);
        } else {
            self.prompt.splice(0..0, start.waiting.iter().cloned());
        }
        if self.begins(cx) {
            self.start = Some(Box::new(start));
            return None;
        }
        self.open(spec, cx, start)
    }

    /// What comes first: calls that an earlier process left open, or else the prompt.
    pub(super) fn open(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        if cx.log.has_open_calls() || self.goes_on_from_last(cx.log) {
            return self.repair(cx, start);
        }
        self.append_prompt(spec, cx)
    }

    /// Brings the prompt into the transcript, through the layers when there are any.
    pub(super) fn append_prompt(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if self.checks_prompt(cx) {
            return None;
        }
        if cx.ports.layers.is_some() && !self.prompt.is_empty() {
            self.issue(cx, Pending::AppendPrompt);
            return None;
        }
        let prompt = std::mem::take(&mut self.prompt);
        cx.append(prompt);
        self.after_prompt(spec, cx)
    }

    pub(super) fn on_appended(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Vec<Arc<Message>>, Fault>,
    ) -> Option<End> {
        self.take_seen_prompt(cx, result);
        self.after_prompt(spec, cx)
    }

    /// Appends what layers gave in place of the prompt.
    pub(super) fn take_seen_prompt(&mut self, cx: &mut Cx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let prompt = std::mem::take(&mut self.prompt);
        let prompt = super::layers::admitted(cx, prompt, result);
        cx.append(prompt);
    }

    fn after_prompt(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if self.prepared.is_some() && !self.stale_prepared {
            return self.begin(spec, cx);
        }
        self.issue(cx, Pending::Prepare);
        None
    }

    pub(super) fn on_prepared(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Arc<PreparedAgent>, Fault>,
    ) -> Option<End> {
        match result {
            Ok(prepared) => {
                self.agent = Some(prepared.agent.clone());
                if self.prepared.as_ref() != Some(&prepared) {
                    cx.event(|| EventKind::AgentPrepared { prepared: Arc::clone(&prepared) });
                }
                self.prepared = Some(prepared);
                self.stale_prepared = false;
            }
            Err(fault) => {
                let stop = Stop::new(StopReason::RuntimeError, Evidence::Fault(fault));
                return self.stop_now(spec, cx, stop);
            }
        }
        if let Some(start) = self.start.take() {
            return self.reopen_batch(spec, cx, *start);
        }
        if self.announced {
            return self.recall(spec, cx);
        }
        self.begin(spec, cx)
    }

    fn begin(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        self.announce(cx);
        self.drain(spec, cx, AfterDrain::Iterate)
    }

    pub(super) fn announce(&mut self, cx: &mut Cx<'_>) {
        self.announced = true;
        let (agent, resumed) = (self.agent_id(), self.resumed);
        cx.event(|| EventKind::TurnStarted { agent, resumed });
    }

    /// Injects what waits, then goes on.
    pub(super) fn drain(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, then: AfterDrain) -> Option<End> {
        self.after_drain = then;
        if cx.ports.steering {
            self.issue(cx, Pending::Drain);
            return None;
        }
        if self.steering.is_empty() { self.go_on(spec, cx) } else { self.on_drained(spec, cx, Vec::new()) }
    }

    pub(super) fn on_drained(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        entries: Vec<(EntryId, Arc<Message>)>,
    ) -> Option<End> {
        let injected = !entries.is_empty() || !self.steering.is_empty();
        let (ids, mut messages): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        messages.append(&mut self.steering);
        if injected {
            return self.inject(spec, cx, messages, ids);
        }
        self.go_on(spec, cx)
    }

    /// Nothing waits: the next iteration, or the end.
    fn go_on(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        match self.after_drain {
            AfterDrain::Complete => self.complete(spec, cx),
            AfterDrain::Iterate => {
                self.answer = None;
                self.iterate(spec, cx)
            }
        }
    }

    /// Begins the next iteration, unless a limit is reached.
    pub(super) fn iterate(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        cx.sh.iteration += 1;
        self.plan = None;
        self.shortening = super::compaction::Shortening::default();
        let one = Amount { iterations: 1, ..Amount::NONE };
        if let Some(reached) = cx.sh.budgets.would_reach(one) {
            return self.stop_at_limit(spec, cx, StopReason::MaxIterationsReached, reached);
        }
        if let Some((reason, reached)) = self.reached_limit(spec, cx) {
            return self.stop_at_limit(spec, cx, reason, reached);
        }
        if let Some(reached) = cx.sh.budgets.would_reach(self.step_amount(1)) {
            return self.stop_at_limit(spec, cx, reached.limit.into(), reached);
        }
        self.prepare_recovery();
        let has_tools = self.prepared.as_ref().is_some_and(|prepared| !prepared.tools.is_empty());
        if spec.closing_step
            && cx.sh.iteration > 1
            && has_tools
            && self.closing.is_none()
            && let Some(reached) = self.near_limit(cx)
        {
            self.close_with(cx, reached.limit.into(), reached);
        }
        let changes = self.prepared.as_ref().is_some_and(|prepared| prepared.changes);
        if self.stale_prepared || (changes && cx.sh.iteration > 1) {
            self.issue(cx, Pending::Prepare);
            return None;
        }
        self.recall(spec, cx)
    }

    /// What `steps` model steps will use at least, as far as is known: as much as the last one did.
    fn step_amount(&self, steps: u32) -> Amount {
        let Amount { tokens, cost, .. } = self.last_step;
        let times = u64::from(steps);
        Amount {
            iterations: steps,
            tokens: tokens.saturating_mul(times),
            cost: Cost(cost.0.saturating_mul(times)),
            ..Amount::NONE
        }
    }

    /// The limit that two more steps would pass.
    fn near_limit(&self, cx: &Cx<'_>) -> Option<Reached> {
        if let Some(reached) = cx.sh.budgets.would_reach(self.step_amount(2)) {
            let used = u64::from(reached.limit == Limit::Iterations);
            let needs = reached.needs.map(|both| both / 2);
            return Some(Reached { value: reached.value + used, needs, ..reached });
        }
        let deadline = self.turn_deadline?;
        let needed = Millis(self.last_step_took.0.saturating_mul(2));
        if needed.0 == 0 || cx.now.after(needed) < deadline {
            return None;
        }
        let spent = cx.now.since(self.started_at).0;
        Some(Reached::new(Limit::Elapsed, spent, deadline.since(self.started_at).0))
    }

    fn recall(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if cx.ports.layers.is_some() {
            self.issue(cx, Pending::Recall);
            return None;
        }
        self.compact(spec, cx)
    }

    pub(super) fn on_recalled(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Option<Plan>, Fault>,
    ) -> Option<End> {
        self.take_recalled(cx, result);
        self.compact(spec, cx)
    }

    pub(super) fn ask(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        // Layers and the compactor may have spent the rest since the iteration began.
        if let Some(reached) = cx.sh.budgets.spent() {
            return self.stop_at_limit(spec, cx, reached.limit.into(), reached);
        }
        match cx.sh.budgets.reserve(self.step_amount(1)) {
            Ok(grant) => self.grant = grant,
            Err(reached) => {
                return self.stop_at_limit(spec, cx, reached.limit.into(), reached);
            }
        }
        self.asked_at = cx.now;
        if self.asked_in != cx.sh.iteration {
            self.asked_in = cx.sh.iteration;
            self.asked = self.asked.saturating_add(1);
        }
        self.emit_view(cx);
        cx.event(|| EventKind::ModelStepStarted {
            agent: self.agent_id(),
            model: self.prepared.as_ref().and_then(|prepared| prepared.model.clone()),
        });
        if let Some(op) = self.model_op(cx) {
            cx.perform(Pending::Model, op);
        }
        None
    }

    pub(super) fn on_model(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Arc<Message>, Box<ModelFault>>,
    ) -> Option<End> {
        let answer = match result {
            Ok(answer) => self.book_answer(cx, answer),
            Err(fault) => return self.on_model_fault(spec, cx, *fault),
        };
        if answer.as_assistant().is_none() {
            return self.invariant(spec, cx, "a model answered with another role than assistant".into());
        }
        if cx.ports.layers.is_some() {
            self.stage = Stage::Reviewing(Reviewing::Layers(answer));
            self.issue(cx, Pending::AfterModel);
            return None;
        }
        self.take_answer(spec, cx, answer)
    }

    /// Books what an answer used; gives it with ids of its own and all its tokens.
    pub(super) fn book_answer(&mut self, cx: &mut Cx<'_>, answer: Arc<Message>) -> Arc<Message> {
        let answer = super::call_ids::unique(cx.log, answer);
        let answer = self.estimated(cx, answer);
        if let Some(message) = answer.as_assistant() {
            self.book(cx, message, true);
            self.measure(cx, message);
        }
        answer
    }

    pub(super) fn on_after_model(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Option<String>, Fault>,
    ) -> Option<End> {
        let Some(Reviewing::Layers(answer)) = self.take_reviewing() else { return None };
        match cx.tolerate(result).flatten() {
            Some(guidance) => self.answer_again(spec, cx, &answer, guidance),
            None => self.take_answer(spec, cx, answer),
        }
    }

    pub(super) fn append_answer(&self, cx: &mut Cx<'_>, answer: Arc<Message>) {
        let at = cx.append_one(answer);
        let duration = cx.now.since(self.asked_at);
        cx.event_about(at, |answer| step_finished(answer.as_assistant(), duration));
    }

    /// Tells of an answer that does not come into the transcript.
    pub(super) fn emit_answer(&self, cx: &mut Cx<'_>, answer: &Message) {
        let duration = cx.now.since(self.asked_at);
        cx.event(|| step_finished(answer.as_assistant(), duration));
    }

    fn take_answer(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, answer: Arc<Message>) -> Option<End> {
        if self.checks_answer(cx, &answer) {
            return None;
        }
        self.accept_answer(spec, cx, answer)
    }

    /// Takes an answer that nothing speaks against into the transcript, and does what it asks for.
    pub(super) fn accept_answer(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        answer: Arc<Message>,
    ) -> Option<End> {
        self.append_answer(cx, answer);
        if cx.ports.layers.is_some() && self.stores(cx) {
            return None;
        }
        self.act_on_last(spec, cx)
    }

    /// Does what the answer asks for that is the last message of the transcript.
    pub(super) fn act_on_last(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if spec.continue_broken > 0
            && let ControlFlow::Break(end) = self.check_whole(spec, cx)
        {
            return end;
        }
        if cx.log.last()?.as_assistant()?.asks_for_tools() {
            return self.open_batch(spec, cx);
        }
        self.act_on_words(spec, cx)
    }

    /// The same for an answer that asks for no tools.
    fn act_on_words(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let message = cx.log.last()?.as_assistant()?;
        match message.output() {
            ModelOutput::ToolRequest => self.open_batch(spec, cx),
            ModelOutput::FinalAnswer => self.take_final(spec, cx),
            ModelOutput::Clarification { question } => {
                cx.event(|| EventKind::ClarificationRequested { question: question.clone() });
                self.answer = Some(question);
                self.stop_now(spec, cx, StopReason::ClarificationRequired.into())
            }
            ModelOutput::ApprovalRequest(request) => {
                self.stage = Stage::Reviewing(Reviewing::Approver(Box::new(request.clone())));
                if cx.ports.approver {
                    self.issue(cx, Pending::NoteApproval);
                    return None;
                }
                self.on_approval_noted(spec, cx, Ok(Box::new(Prepared::new(request, None))))
            }
            ModelOutput::Refusal { reason } => {
                let reason = reason.to_owned();
                self.answer = Some(reason);
                self.stop_now(spec, cx, StopReason::ModelRefused.into())
            }
            ModelOutput::Invalid(invalid) => {
                answer_last_unrun(cx, "the answer that asked for it was not usable");
                self.on_invalid(spec, cx, invalid)
            }
        }
    }

    /// The last message of the transcript is the answer.
    fn take_final(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let text = cx.log.last()?.joined_text();
        self.answer = Some(text);
        self.drain(spec, cx, AfterDrain::Complete)
    }

    fn on_invalid(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, invalid: Invalid) -> Option<End> {
        self.invalid += 1;
        if self.checks_invalid(cx, &invalid) {
            return None;
        }
        self.after_invalid(spec, cx, invalid, None)
    }

    /// Decides whether to ask again after an invalid output; with what the model is told, when that is not the usual.
    pub(super) fn after_invalid(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        invalid: Invalid,
        guidance: Option<String>,
    ) -> Option<End> {
        if self.invalid >= spec.limits.invalid_outputs {
            let stop = Stop::new(StopReason::ModelInvalidResponse, Evidence::Invalid(invalid));
            return self.stop_now(spec, cx, stop);
        }
        if let Some((reason, reached)) = self.reached_limit(spec, cx) {
            return self.stop_at_limit(spec, cx, reason, reached);
        }
        let usual =
            || format!("Your last answer could not be used: {}. Answer again, in full.", invalid.reason);
        cx.append_one(guidance_message(guidance.unwrap_or_else(usual)));
        self.iterate(spec, cx)
    }

    pub(super) fn on_approval_noted(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Box<Prepared>, Fault>,
    ) -> Option<End> {
        self.take_reviewing();
        match result {
            Ok(prepared) => {
                let Prepared { request, continuation } = *prepared;
                cx.event(|| super::gates::requested(&request, None));
                self.replaced = continuation;
                let stop = Stop::new(StopReason::ApprovalRequired, Evidence::Approval(request));
                self.stop_now(spec, cx, stop)
            }
            Err(fault) => {
                let stop = Stop::new(StopReason::RuntimeError, Evidence::Fault(fault));
                self.stop_now(spec, cx, stop)
            }
        }
    }

    fn on_model_fault(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, mut fault: ModelFault) -> Option<End> {
        let broke_off = fault.partial.is_some();
        let recovers = self.recovers_from(spec, &fault);
        let told = self.take_model_fault(cx, &mut fault, recovers);
        if recovers {
            return self.recover(spec, cx, fault.code.as_str());
        }
        if fault.code == ModelFaultCode::Cancelled {
            let evidence = Evidence::Cancelled { by: Arc::from("model") };
            return self.stop_now(spec, cx, Stop::new(StopReason::Cancelled, evidence));
        }
        let overflow = fault.code == ModelFaultCode::ContextLengthExceeded;
        if overflow && !broke_off && self.mends_overflow(cx, &told) {
            return None;
        }
        let reason = if overflow {
            StopReason::ContextOverflow
        } else if fault.code == ModelFaultCode::Deferred {
            StopReason::BackendDeferred
        } else {
            StopReason::RuntimeError
        };
        self.stop_now(spec, cx, Stop::new(reason, Evidence::Fault(told)))
    }

    /// Keeps what had arrived before a model failed, and tells the failure.
    pub(super) fn take_model_fault(
        &mut self,
        cx: &mut Cx<'_>,
        fault: &mut ModelFault,
        recovers: bool,
    ) -> Fault {
        fault.partial.iter_mut().for_each(|partial| self.estimate(cx, partial));
        let usage = fault.partial.as_ref().and_then(|partial| partial.usage.clone());
        match fault.partial.take() {
            Some(partial) if recovers => {
                self.book(cx, &partial, false);
                if let Some(partial) = kept_partial(*partial) {
                    append_partial(cx, partial, "the answer that asked for it broke off");
                }
            }
            Some(partial) => {
                self.book(cx, &partial, false);
                let partial = Arc::new(Message::Assistant(*partial));
                append_partial(cx, partial, "the answer that asked for it broke off");
            }
            None => self.book(cx, &AssistantMessage::default(), false),
        }
        let told = Fault::new(FaultSource::Model, fault.code.as_str(), std::mem::take(&mut fault.message));
        cx.event(|| EventKind::ModelStepFailed { fault: told.clone(), usage });
        told
    }

    /// The driver gave up on the model; what had arrived stays, marked.
    pub(super) fn take_cut_answer(&mut self, cx: &mut Cx<'_>, partial: Option<Arc<Message>>) {
        let mut cut =
            partial.as_ref().and_then(|message| message.as_assistant()).cloned().unwrap_or_default();
        // The request was sent, and counts.
        self.estimate(cx, &mut cut);
        self.book(cx, &cut, false);
        let partial = partial.map(|_| Arc::new(Message::Assistant(cut)));
        if let Some(partial) = partial {
            append_partial(cx, partial, "the answer that asked for it was cut off");
        }
    }
}

/// `message`: what the model answered.
fn step_finished(message: Option<&AssistantMessage>, duration: Millis) -> EventKind {
    EventKind::ModelStepFinished {
        output_type: message.map_or("invalid", AssistantMessage::output_type).into(),
        usage: message.and_then(|message| message.usage.clone()),
        duration,
    }
}

/// Answers every call of `message` with a result that says why it did not run (law 1).
pub(super) fn answer_unrun(cx: &mut Cx<'_>, message: &Message, why: &str) {
    let Some(message) = message.as_assistant() else { return };
    let at = cx.now;
    let results: Vec<_> = message.tool_calls().map(|call| not_run(call, why, at)).collect();
    cx.append(results);
}

/// The same for the answer that is the last message of the transcript.
pub(super) fn answer_last_unrun(cx: &mut Cx<'_>, why: &str) {
    if let Some(answer) = cx.log.last().cloned() {
        answer_unrun(cx, &answer, why);
    }
}

/// The result of a call that did not run.
pub(super) fn not_run(call: &ToolCall, why: &str, at: crate::time::Time) -> Arc<Message> {
    let outcome = super::batch::not_run_outcome(why);
    Arc::new(Message::ToolResult(outcome.to_message(call, None, at)))
}

/// A message by which the machine itself guides the model.
pub(crate) fn guidance_message(text: String) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text(text).from_origin("hook")))
}
