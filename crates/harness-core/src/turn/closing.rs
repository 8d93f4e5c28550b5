//! The end of a turn: nothing starts any more, and what still comes is kept.
//!
//! A cancellation and the deadline abort what is in flight; any other stop waits for it. Until nothing is in flight
//! replies come here and not to the stage that asked. Then every call gets its result, the layers are told, and the
//! turn ends.

use std::sync::Arc;

use super::calling::{Batch, CallState, Finished, Progress, not_run_outcome};
use super::reviewing::keep_answer;
use super::stage::Stage;
use super::state::{TurnCx, TurnData};
use crate::event::{EventKind, ResultNote};
use crate::ids::CallDigest;
use crate::machine::{Completion, Cx, Effect, Input, Pending, Record, Reply};
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::outcome::{
    Continuation, ContinuationKind, End, Evidence, FaultSource, Outcome, PendingCall, Stop, StopReason,
    WAITING,
};
use crate::port::PreparedAgent;
use crate::time::Time;

/// A turn that ends.
#[derive(Debug)]
pub(super) enum Closing {
    /// Something is in flight.
    Settling {
        stop: Stop,
        /// The stage that the stop broke off.
        left: Stage,
        /// Whether everything in flight was aborted.
        aborted: bool,
    },
    /// The layers take note of the end.
    Completing(Completion),
}

impl Closing {
    /// Starts to end the turn; gives the end when nothing has to be waited for.
    pub(super) fn start(&mut self, turn: &mut TurnCx<'_>, aborts: bool) -> Option<End> {
        if aborts {
            self.abort(&mut turn.cx);
        }
        if let Self::Settling { left: Stage::Calling(batch), .. } = self {
            append_results(batch, &mut turn.cx);
        }
        self.settle(turn)
    }

    /// Takes an input; gives the end when it has come.
    pub(super) fn step(
        &mut self,
        turn: &mut TurnCx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        let Self::Settling { left, .. } = self else {
            let Self::Completing(completion) = self else { return None };
            let end = completion.step(&mut turn.cx, pending, input)?;
            return Some(emit_end(&mut turn.cx, end));
        };
        match input {
            Input::Reply(_, reply) => take_late(turn, left, pending?, reply),
            Input::Cancel { .. } => self.abort(&mut turn.cx),
            Input::Wake => {
                turn.overdue()?;
                self.abort(&mut turn.cx);
            }
            Input::Start(_) | Input::PartFailed(_) | Input::Spent(_) => return None,
        }
        self.settle(turn)
    }

    /// These calls could not be stored as started: they are answered, and do not run.
    pub(super) fn refuse_unstored(&mut self, turn: &mut TurnCx<'_>, calls: Vec<Pending>) -> Option<End> {
        let Self::Settling { left: Stage::Calling(batch), .. } = self else { return None };
        for (at, outcome) in batch.take_unstored(&mut turn.cx, calls) {
            finish(batch, &mut turn.cx, at, Finished::not_run(outcome));
        }
        if turn.cx.idle() { self.settle(turn) } else { None }
    }

    /// The calls at work.
    pub(super) fn batch(&self) -> Option<&Batch> {
        if let Self::Settling { left, .. } = self { left.batch() } else { None }
    }

    /// When what is in flight is aborted; `None` once it is.
    pub(super) fn wake_at(&self, deadline: Option<Time>) -> Option<Time> {
        match self {
            Self::Settling { aborted, .. } => deadline.filter(|_| !aborted),
            Self::Completing(completion) => completion.wake_at(),
        }
    }

    /// Aborts what is in flight. Once is enough.
    fn abort(&mut self, cx: &mut Cx<'_>) {
        if let Self::Settling { aborted, .. } = self
            && !cx.idle()
            && !std::mem::replace(aborted, true)
        {
            cx.emit(Effect::AbortAll);
        }
    }

    /// When nothing is in flight, every call gets its result and the turn ends.
    fn settle(&mut self, turn: &mut TurnCx<'_>) -> Option<End> {
        let Self::Settling { stop, left, .. } = self else { return None };
        if let Stage::Calling(batch) = left {
            give_up_retries(batch, &mut turn.cx);
        }
        if !turn.cx.idle() {
            return None;
        }
        let (stop, left) = (stop.clone(), std::mem::replace(left, Stage::Ended));
        let (batch, prompt) = abandon(turn, left, &stop);
        turn.data.left_open = batch.iter().flat_map(|batch| batch.started()).collect();
        let end = end(turn, stop, batch.as_deref(), prompt);
        // A run tells the layers of its own end.
        if turn.cx.ports.layers.is_none() || turn.data.of_run {
            return Some(emit_end(&mut turn.cx, end));
        }
        let standing = turn.standing();
        *self = Self::Completing(Completion::start(&mut turn.cx, end, standing));
        None
    }
}

/// Takes a reply that comes after the stop.
fn take_late(turn: &mut TurnCx<'_>, left: &mut Stage, pending: Pending, reply: Reply) {
    match (left, pending, reply) {
        (Stage::Opening(_), _, Reply::Prepared(Ok(prepared))) => {
            // The agent is known, so the turn did start.
            turn.data.prepared = Some(prepared);
            turn.announce();
        }
        (Stage::Opening(opening), _, Reply::Appended(result)) => opening.take_seen(turn, result),
        (Stage::Opening(opening), Pending::Check(point, check), Reply::Check(asked)) => {
            opening.take_check(turn, (point, check), *asked);
        }
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
        (Stage::Reviewing(reviewing), Pending::Check(point, check), Reply::Check(asked)) => {
            reviewing.take_check(turn, (point, check), *asked);
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

/// The same, while calls were at work.
fn take_late_of_call(turn: &mut TurnCx<'_>, batch: &mut Batch, pending: Pending, reply: Reply) {
    match (pending, reply) {
        (Pending::Tool(at), Reply::Tool(result)) => {
            if let Some((outcome, fault)) = batch.charge(turn, at, result) {
                finish(batch, &mut turn.cx, at, Finished::ran(outcome, fault));
            }
        }
        (Pending::Tool(at), Reply::Interrupted { .. }) => {
            let finished = batch.cut_off(&mut turn.cx, at);
            finish(batch, &mut turn.cx, at, finished);
        }
        (Pending::Check(point, check), Reply::Check(asked)) => {
            if let Some((_, subject)) = batch.checking.take() {
                turn.take_check((point, check), &subject, *asked);
            }
        }
        (Pending::AppendResults, Reply::Appended(result)) => batch.take_seen(&mut turn.cx, result),
        _ => {}
    }
}

/// Takes a result: no layer and no check sees it.
fn finish(batch: &mut Batch, cx: &mut Cx<'_>, at: u32, mut finished: Finished) {
    if finished.ran {
        finished.note = Some(ResultNote::Late);
    }
    if batch.take_result(cx, at, finished, true) {
        append_results(batch, cx);
    }
}

/// Appends the results that are next in call order, unless layers or a check still look at one.
fn append_results(batch: &mut Batch, cx: &mut Cx<'_>) {
    while !batch.is_looked_at()
        && batch.slots.get(batch.flushed).is_some_and(|slot| slot.finished().is_some())
    {
        batch.append_next(cx);
    }
}

/// Ends the waits of retries: the last failure is the result.
fn give_up_retries(batch: &mut Batch, cx: &mut Cx<'_>) {
    for at in batch.places(|slot| matches!(slot.progress, Progress::Waiting(_) | Progress::Ready)) {
        if let Some(outcome) = batch.slot_mut(at).and_then(CallState::take_last) {
            finish(batch, cx, at, Finished::ran(outcome, None));
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
                append_results(batch, &mut turn.cx);
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
        finish(batch, &mut turn.cx, at, Finished::not_run(not_run_outcome(&why)));
    }
    append_results(batch, &mut turn.cx);
    // What layers added comes behind the last result, or, behind a parked call, later.
    let added = std::mem::take(&mut batch.added);
    if batch.is_parked() {
        turn.data.waiting.splice(0..0, added);
    } else {
        turn.cx.append(added);
    }
}

/// Makes the end.
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
    cx.persist(|| Record::TurnEnd);
    end
}

/// Emits the end, which nothing changes any more.
fn emit_end(cx: &mut Cx<'_>, end: End) -> End {
    let emitted = Arc::new(end.clone());
    cx.event(|| EventKind::TurnFinished { end: emitted });
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
    if let Some(parked) = slot.particulars().parked_as.as_deref() {
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
