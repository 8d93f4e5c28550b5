//! The end of a turn: nothing new starts, and late replies are kept.
//!
//! A cancellation and the deadline abort the operations in flight; any other stop waits for them. Until then replies come
//! here and not to the stage that started them. Then every call gets its result, and the turn ends.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;

use super::calling::{Batch, CallState, Finished, Progress, interrupted, not_performed, not_run_outcome};
use super::reviewing::keep_answer;
use super::stage::Stage;
use super::state::{TurnCx, TurnData};
use crate::ids::CallDigest;
use crate::machine::{Cx, Effect, Input, Pending, Record, Reply};
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::outcome::{
    Continuation, ContinuationKind, End, Evidence, FaultSource, Outcome, PendingCall, Stop, StopReason,
    WAITING,
};
use crate::port::PreparedAgent;
use crate::time::Time;
use crate::tool::ToolStatus;

#[derive(Debug)]
pub(super) struct Closing {
    stop: Stop,
    /// The stage that the stop interrupted.
    left: Stage,
    /// Whether the operations in flight were aborted.
    aborted: bool,
}

impl Closing {
    pub(super) fn new(stop: Stop, left: Stage) -> Self {
        Self { stop, left, aborted: false }
    }

    /// Starts to end the turn, and aborts the operations in flight if `aborts`. Returns the end when nothing is in flight.
    pub(super) fn start(&mut self, turn: &mut TurnCx<'_>, aborts: bool) -> Option<End> {
        if aborts {
            self.abort(&mut turn.cx);
        }
        if let Stage::Calling(batch) = &mut self.left {
            stop_batch(turn, batch);
        }
        self.settle(turn)
    }

    /// Takes an input; returns the end once nothing is in flight.
    pub(super) fn step(
        &mut self,
        turn: &mut TurnCx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        match input {
            Input::Reply(_, reply) => take_late(turn, &mut self.left, pending?, reply),
            Input::Cancel { .. } => self.abort(&mut turn.cx),
            Input::Wake => {
                turn.overdue()?;
                self.abort(&mut turn.cx);
            }
            Input::Start(_) | Input::PartFailed(_) | Input::Spent(_) => return None,
        }
        self.settle(turn)
    }

    /// Answers calls whose start could not be stored; they do not run.
    pub(super) fn refuse_unstored(&mut self, turn: &mut TurnCx<'_>, calls: Vec<Pending>) -> Option<End> {
        let Stage::Calling(batch) = &mut self.left else { return None };
        for (at, finished) in batch.take_unstored(&mut turn.cx, calls) {
            finish(turn, batch, at, finished);
        }
        if turn.cx.idle() { self.settle(turn) } else { None }
    }

    pub(super) fn batch(&self) -> Option<&Batch> {
        self.left.batch()
    }

    /// When the operations in flight are aborted; `None` once they are.
    pub(super) fn wake_at(&self, deadline: Option<Time>) -> Option<Time> {
        deadline.filter(|_| !self.aborted)
    }

    /// Aborts the operations in flight, once.
    fn abort(&mut self, cx: &mut Cx<'_>) {
        if !cx.idle() && !std::mem::replace(&mut self.aborted, true) {
            cx.emit(Effect::AbortAll);
        }
    }

    /// Ends the turn once nothing is in flight: every call gets its result.
    fn settle(&mut self, turn: &mut TurnCx<'_>) -> Option<End> {
        if let Stage::Calling(batch) = &mut self.left {
            give_up_retries(turn, batch);
        }
        if !turn.cx.idle() {
            return None;
        }
        let left = std::mem::replace(&mut self.left, Stage::Ended);
        let (batch, prompt) = abandon(turn, left, &self.stop);
        turn.data.left_open = batch.iter().flat_map(|batch| batch.started()).collect();
        Some(end(turn, self.stop.clone(), batch.as_deref(), prompt))
    }
}

/// Takes a reply that comes after the stop.
fn take_late(turn: &mut TurnCx<'_>, left: &mut Stage, pending: Pending, reply: Reply) {
    match (left, pending, reply) {
        (left, Pending::Check(point, check), Reply::Check(answered)) => {
            turn.take_check((point, check), *answered);
            if let Stage::Calling(batch) = left {
                batch.checking = None;
            }
        }
        (Stage::Opening(_), _, Reply::Prepared(Ok(prepared))) => {
            // The agent is known, so the turn did start.
            turn.data.prepared = Some(prepared);
            turn.announce();
        }
        (Stage::Opening(opening), _, Reply::Appended(result)) => opening.take_seen(turn, result),
        (Stage::Viewing(viewing), _, Reply::Recalled(result)) => viewing.take_recalled(&mut turn.cx, result),
        (Stage::Viewing(viewing), _, Reply::Compacted(result)) => {
            viewing.take_compaction(turn, result);
        }
        (Stage::Asking(asking), _, Reply::Model(Ok(answer))) => {
            let answer = asking.take_answer(turn, answer);
            keep_answer(turn, answer);
        }
        (Stage::Asking(asking), _, Reply::Model(Err(mut fault))) => {
            asking.take_fault(turn, &mut fault, false);
        }
        (Stage::Asking(asking), _, Reply::Interrupted { partial }) => asking.take_cut_answer(turn, partial),
        (Stage::Reviewing(reviewing), _, Reply::AfterModel(result)) => {
            turn.cx.tolerate(result);
            if let Some(answer) = reviewing.take_new() {
                keep_answer(turn, answer);
            }
        }
        (Stage::Reviewing(_), Pending::LayerStore, Reply::Noted(result)) => {
            turn.cx.tolerate(result);
        }
        (Stage::Calling(batch), pending, reply) => take_late_of_call(turn, batch, pending, reply),
        (Stage::Draining(draining), _, Reply::Appended(result)) => draining.take_seen(&mut turn.cx, result),
        (Stage::Draining(_), _, Reply::Drained(entries)) => {
            // The queue lets go of them once the input is taken: they come before what waits.
            turn.data.waiting.splice(0..0, entries.into_iter().map(|(_, message)| message));
        }
        // What was asked decides nothing any more.
        _ => {}
    }
}

fn take_late_of_call(turn: &mut TurnCx<'_>, batch: &mut Batch, pending: Pending, reply: Reply) {
    match (pending, reply) {
        (Pending::Tool(at), Reply::Tool(result)) => {
            if let Some((outcome, fault)) = batch.charge(turn, at, result) {
                let waits = !outcome.approvals().is_empty();
                let outcome = if waits { Arc::new(interrupted(ToolStatus::Cancelled)) } else { outcome };
                finish(turn, batch, at, Finished::ran(outcome, fault));
            }
        }
        (Pending::Tool(at), Reply::Interrupted { .. }) => {
            let finished = batch.cut_off(&mut turn.cx, at);
            finish(turn, batch, at, finished);
        }
        (Pending::AppendResults, Reply::Appended(result)) => batch.take_seen(&mut turn.cx, result),
        _ => {}
    }
}

/// Appends the results that are next in call order; no layer and no check sees any from now on.
fn stop_batch(turn: &mut TurnCx<'_>, batch: &mut Batch) {
    batch.is_stopped = true;
    let (Continue(()) | Break(_)) = batch.flush(turn);
}

/// Takes a result. It cannot stop the turn once more.
fn finish(turn: &mut TurnCx<'_>, batch: &mut Batch, at: u32, finished: Finished) {
    let (Continue(()) | Break(_)) = batch.finish(turn, at, finished);
}

/// Ends the waits of retries: the last failure is the result.
fn give_up_retries(turn: &mut TurnCx<'_>, batch: &mut Batch) {
    for at in batch.places(|slot| matches!(slot.progress, Progress::Waiting(_) | Progress::Ready)) {
        if let Some(outcome) = batch.slot_mut(at).and_then(|slot| slot.last.take()) {
            finish(turn, batch, at, Finished::ran(outcome, None));
        }
    }
}

/// Settles what the stage left behind; gives the calls that may be parked, and what of the prompt is not in the
/// transcript.
fn abandon(turn: &mut TurnCx<'_>, left: Stage, stop: &Stop) -> (Option<Box<Batch>>, Vec<Arc<Message>>) {
    let (mut batch, opening) = match left {
        Stage::Opening(mut opening) => {
            let mut batch = opening.abandon_open_calls(turn);
            if let Some(batch) = &mut batch {
                stop_batch(turn, batch);
            }
            (batch, Some(opening))
        }
        Stage::Calling(mut batch) => {
            let opening = batch.opening.take();
            (Some(batch), opening)
        }
        Stage::Reviewing(reviewing) => {
            reviewing.abandon(turn);
            (None, None)
        }
        Stage::Draining(draining) => {
            draining.abandon(&mut turn.cx);
            (None, None)
        }
        Stage::Viewing(_) | Stage::Asking(_) | Stage::Closing(_) | Stage::Ended => (None, None),
    };
    if let Some(batch) = &mut batch {
        answer_rest(turn, batch, stop);
    }
    let prompt = opening.map(|opening| opening.into_prompt(turn));
    (batch, prompt.unwrap_or_default())
}

/// Gives every call that has no result one that says why. Parked calls keep waiting when the turn ends for them.
fn answer_rest(turn: &mut TurnCx<'_>, batch: &mut Batch, stop: &Stop) {
    let parks = stop.reason == StopReason::ApprovalRequired;
    let why = format!("the turn ended first ({})", stop.reason);
    (batch.checking, batch.showing) = (None, None);
    for at in batch.places(|slot| slot.finished().is_none() && !(parks && slot.is_parked())) {
        let Some(slot) = batch.slot(at) else { continue };
        let finished = not_performed(slot, not_run_outcome(&why));
        finish(turn, batch, at, finished);
    }
    stop_batch(turn, batch);
    // What layers added comes behind the last result, or, behind a parked call, later.
    let added = std::mem::take(&mut batch.added);
    if batch.is_parked() {
        turn.data.waiting.splice(0..0, added);
    } else {
        turn.cx.append(added);
    }
}

fn end(turn: &mut TurnCx<'_>, stop: Stop, batch: Option<&Batch>, mut waiting: Vec<Arc<Message>>) -> End {
    let TurnCx { data, cx, .. } = turn;
    mark_unanswered(data.prepared.as_deref(), cx, &stop);
    waiting.append(&mut data.waiting);
    if !batch.is_some_and(Batch::is_parked) {
        append_question(data, cx);
        cx.append(std::mem::take(&mut waiting));
    }
    cx.sh.budgets.pop();
    cx.sh.held.level_gone(&cx.sh.budgets);
    let answer = data.answer.take();
    let mut continuation = continuation(data, cx, &stop, answer.as_deref());
    if let Some(continuation) = &mut continuation {
        continuation.pending = batch.map(|batch| pending_calls(data, cx, batch)).unwrap_or_default();
        // Behind a parked call nothing may stand but its result.
        waiting.truncate(WAITING);
        continuation.waiting = waiting;
    }
    let end = End {
        answer,
        agent: data.agent.clone(),
        iterations: data.asked,
        refused_iteration: (data.asked_in < cx.sh.iteration).then_some(cx.sh.iteration),
        turns: cx.sh.turn,
        usage: data.usage.clone(),
        elapsed: cx.now.since(data.started_at),
        continuation,
        waived: Vec::new(),
        persist_failed: cx.sh.persist_failed.clone(),
        resumed: data.resumed,
        control: None,
        stop,
    };
    cx.persist(Record::TurnEnd);
    end
}

fn continuation(
    data: &mut TurnData,
    cx: &Cx<'_>,
    stop: &Stop,
    answer: Option<&str>,
) -> Option<Box<Continuation>> {
    let mut made = Continuation::of(cx, stop, data.agent.clone(), &data.usage)?;
    if made.kind == ContinuationKind::Clarification {
        made.question = answer.map(str::to_owned);
    }
    if let Evidence::Approval(request) = &stop.evidence {
        made.request = Some(request.clone());
    }
    made.replaced_by = data.replaced.take();
    Some(Box::new(made))
}

fn pending_calls(data: &TurnData, cx: &Cx<'_>, batch: &Batch) -> Vec<PendingCall> {
    let parked = batch.slots.iter().filter(|slot| slot.is_parked());
    parked.map(|slot| pending_call(data, cx, slot, batch.answer_at as u64)).collect()
}

/// A parked call: what it was parked as first, or else what it is now.
fn pending_call(data: &TurnData, cx: &Cx<'_>, slot: &CallState, message: u64) -> PendingCall {
    if let Some(parked) = slot.parked_as.as_deref().filter(|_| slot.started.is_none()) {
        return PendingCall { message, ..parked.clone() };
    }
    let run = cx.sh.origin.run.clone();
    let def = slot.def_in(data.tools());
    let digest = def.map(|def| CallDigest::of(run.as_ref(), &slot.call.id, def, &slot.call.arguments));
    PendingCall {
        call_id: slot.call.id.clone(),
        message,
        reason: slot.hold_reason(),
        tool: slot.call.name.clone(),
        digest: digest.unwrap_or_else(|| "".into()),
        run,
        arguments: Some(slot.call.arguments.clone()),
        work: slot.work.clone(),
    }
}

/// The question of a check, as the assistant's: a transcript that is resumed shows what was asked.
fn append_question(data: &mut TurnData, cx: &mut Cx<'_>) {
    if let Some(question) = data.question.take() {
        let mut message = AssistantMessage::clarification(&question);
        message.agent.clone_from(&data.agent);
        cx.append_one(Arc::new(Message::Assistant(message)));
    }
}

/// Marks in the transcript that the model gave no answer, unless it is marked. No request contains such a message.
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
