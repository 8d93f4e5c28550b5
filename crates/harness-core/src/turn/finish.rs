//! Stops, and the end.

use std::sync::Arc;

use super::batch::not_run_outcome;
use super::call_state::Progress;
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::EventKind;
use crate::ids::CallDigest;
use crate::limits::Reached;
use crate::machine::{Cx, Pending, Record};
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::outcome::{
    Continuation, ContinuationKind, End, Evidence, Fault, FaultSource, Outcome, PendingCall, Stop,
    StopReason, WAITING,
};
use crate::port::PreparedAgent;

impl TurnState {
    /// Ends the turn as soon as nothing is outstanding. The first stop stays.
    pub(super) fn stop_now(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, stop: Stop) -> Option<End> {
        self.stop(stop);
        self.settle(spec, cx)
    }

    pub(super) fn stop_at_limit(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        reason: StopReason,
        reached: Reached,
    ) -> Option<End> {
        cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
        self.stop_now(spec, cx, Stop::new(reason, Evidence::Limit(reached)))
    }

    /// Makes the next step the last one: asked without tools, and the turn is deferred after it.
    pub(super) fn close_with(&mut self, cx: &mut Cx<'_>, reason: StopReason, reached: Reached) {
        cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
        self.closing = Some(Stop::new(reason, Evidence::Limit(reached)));
    }

    /// Ends the turn with the model's answer.
    pub(super) fn complete(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let stop = self.closing.take().unwrap_or_else(|| StopReason::AnswerFinalized.into());
        self.stop_now(spec, cx, stop)
    }

    /// Something was cut off that has no result of its own.
    pub(super) fn on_cut(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, pending: Pending) -> Option<End> {
        let fault = Fault::new(
            FaultSource::Machine,
            "interrupted",
            format!("the driver gave up on {pending:?} although nothing asked for it"),
        );
        self.stop_now(spec, cx, Stop::new(StopReason::RuntimeError, Evidence::Fault(fault)))
    }

    pub(super) fn invariant(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, message: String) -> Option<End> {
        let fault = Fault::new(FaultSource::Machine, "internal_invariant", message);
        self.stop_now(spec, cx, Stop::new(StopReason::InternalInvariant, Evidence::Fault(fault)))
    }

    /// The starts of these calls could not be stored: they are answered, and do not run.
    pub(super) fn refuse_unstored(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        calls: Vec<Pending>,
    ) -> Option<End> {
        for pending in calls {
            if let Pending::Tool(at) = pending {
                self.release(cx, at);
                let why = "its start could not be stored, and it must not run twice";
                self.answer_call(spec, cx, at, not_run_outcome(why));
            }
        }
        if self.batch.is_some() && cx.idle() { self.run_batch(spec, cx) } else { None }
    }

    fn release(&mut self, cx: &mut Cx<'_>, at: u32) {
        if let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slots.get_mut(at as usize)) {
            cx.sh.budgets.settle(std::mem::take(&mut slot.grant), crate::limits::Amount::NONE);
        }
    }

    pub(super) fn end(&mut self, cx: &mut Cx<'_>, stop: Stop) -> End {
        mark_unanswered(self.prepared.as_deref(), cx, &stop);
        let mut waiting = std::mem::take(&mut self.prompt);
        waiting.append(&mut self.steering);
        if !self.is_parked() {
            self.append_question(cx);
            cx.append(std::mem::take(&mut waiting));
        }
        cx.sh.budgets.pop();
        cx.sh.held.level_gone(&cx.sh.budgets);
        let answer = self.answer.take();
        let mut continuation = self.continuation(cx, &stop, answer.as_deref());
        if let Some(continuation) = &mut continuation {
            // Behind a parked call nothing may stand but its result.
            waiting.truncate(WAITING);
            continuation.waiting = waiting;
        }
        let end = End {
            answer,
            agent: self.agent.clone(),
            iterations: self.asked,
            refused_iteration: (self.asked_in < cx.sh.iteration).then_some(cx.sh.iteration),
            turns: cx.sh.turn,
            usage: self.usage.clone(),
            elapsed: cx.now.since(self.started_at),
            continuation,
            waived: Vec::new(),
            persist_failed: cx.sh.persist_failed.clone(),
            resumed: self.resumed,
            control: None,
            stop,
        };
        cx.persist(|| Record::TurnEnd);
        end
    }

    /// Tells the end, which nothing changes any more.
    pub(super) fn emit_end(cx: &mut Cx<'_>, end: End) -> End {
        let told = Arc::new(end.clone());
        cx.event(|| EventKind::TurnFinished { end: told });
        end
    }

    fn continuation(
        &mut self,
        cx: &Cx<'_>,
        stop: &Stop,
        question: Option<&str>,
    ) -> Option<Box<Continuation>> {
        let mut made = Continuation::of(cx, stop, self.agent.clone(), &self.usage)?;
        if made.kind == ContinuationKind::Clarification {
            made.question = question.map(str::to_owned);
        }
        if let Evidence::Approval(request) = &stop.evidence {
            made.request = Some(request.clone());
        }
        made.pending = self.pending_calls(cx);
        made.replaced_by = self.replaced.take();
        Some(Box::new(made))
    }

    pub(super) fn is_parked(&self) -> bool {
        let slots = self.batch.iter().flat_map(|batch| &batch.slots);
        slots.into_iter().any(|slot| matches!(slot.progress, Progress::Parked))
    }

    fn pending_calls(&self, cx: &Cx<'_>) -> Vec<PendingCall> {
        let Some(batch) = &self.batch else { return Vec::new() };
        let parked = batch.slots.iter().filter(|slot| matches!(slot.progress, Progress::Parked));
        parked.map(|slot| self.pending_call(cx, slot, batch.answer_at)).collect()
    }

    /// A parked call: what it was parked as first, or else what it is now.
    fn pending_call(&self, cx: &Cx<'_>, slot: &super::call_state::CallState, message: u64) -> PendingCall {
        if let Some(parked) = slot.particulars().parked_as.as_deref() {
            return PendingCall { message, ..parked.clone() };
        }
        let run = cx.sh.origin.run.clone();
        let digest = self
            .def_of(slot)
            .map(|def| CallDigest::of(run.as_ref(), &slot.call.id, def, &slot.call.arguments));
        PendingCall {
            call_id: slot.call.id.clone(),
            message,
            reason: slot.hold_reason(),
            tool: slot.call.name.clone(),
            digest: digest.unwrap_or_else(|| "".into()),
            run,
            arguments: Some(slot.call.arguments.clone()),
        }
    }
}

/// Says in the transcript that a model gave no answer, when nothing there says so yet. No request contains such a
/// message.
fn mark_unanswered(prepared: Option<&PreparedAgent>, cx: &mut Cx<'_>, stop: &Stop) {
    let (reason, why) = match (&stop.reason, &stop.evidence) {
        (StopReason::Cancelled, Evidence::Cancelled { by }) => {
            (FinishReason::Aborted, format!("the turn was cancelled ({by})"))
        }
        (reason, Evidence::Fault(fault))
            if fault.source_part == FaultSource::Model && reason.outcome() == Outcome::Failed =>
        {
            (FinishReason::Error, fault.message.clone())
        }
        _ => return,
    };
    // Results of its calls may follow an answer that broke off.
    let said = cx.log.iter().rev().find(|message| message.as_tool_result().is_none());
    let marked = said
        .and_then(|message| message.as_assistant())
        .is_some_and(|answer| matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted));
    if !marked {
        let mut answer = AssistantMessage { stop_reason: reason, ..AssistantMessage::default() };
        answer.error_message = Some(why);
        if let Some(prepared) = prepared {
            answer.agent = Some(prepared.agent.clone());
            answer.model.clone_from(&prepared.model);
            answer.provider = prepared.provider.as_deref().map(str::to_owned);
            answer.protocol = prepared.protocol.as_deref().map(str::to_owned);
        }
        cx.append_one(Arc::new(Message::Assistant(answer)));
    }
}
