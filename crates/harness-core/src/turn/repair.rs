//! Repair of calls that an earlier process left open.
//!
//! A transcript may end with an answer whose calls do not all have a result: the process died, or the turn was parked.
//! Each of them gets its one result first (law 1). A stored result is used; a call that started runs again only if its
//! tool declares that safe; a call that never started runs now if the turn merely continues, and is answered as not run
//! if a new prompt follows. A resumed turn of a run continues where its messages end.

use std::sync::Arc;

use super::calling::{Batch, CallState, Finished, Progress, emit_decision, interrupted, not_run_outcome};
use super::opening::Opening;
use super::reviewing::Reviewing;
use super::stage::{Stage, Step, WAIT, enter};
use super::state::{TurnCx, TurnData};
use crate::event::{EventKind, RepairHow};
use crate::limits::{Amount, Grant};
use crate::machine::{Cx, Start};
use crate::message::{FinishReason, Message, ToolCall};
use crate::outcome::{Purpose, TotalUsage};
use crate::port::{Decision, OpenCall};
use crate::tool::{RetryClass, ToolStatus};
use crate::transcript::{Prefix, Transcript};

/// The usage of a turn in an earlier process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriorUsage {
    /// The length of the transcript at its start.
    began: usize,
    /// Its usage, not charged to any limit yet; each answer is a model call.
    usage: TotalUsage,
}

impl PriorUsage {
    /// A turn that started with the message at `began`.
    pub(crate) fn new(began: usize, log: &Transcript) -> Self {
        let mut usage = TotalUsage::default();
        for message in log.range(began..log.len()) {
            match &**message {
                Message::Assistant(answer) => usage.add_call(Purpose::Answer, answer.usage.as_deref(), true),
                Message::ToolResult(_) => usage.tool_calls = usage.tool_calls.saturating_add(1),
                Message::System(_) | Message::User(_) | Message::Custom(_) => {}
            }
        }
        Self { began, usage }
    }

    pub(super) fn charge(&self, data: &mut TurnData, cx: &mut Cx<'_>) {
        let (iterations, tool_calls) = (self.usage.model_calls, self.usage.tool_calls);
        data.began = self.began;
        data.usage.clone_from(&self.usage);
        cx.sh.iteration = iterations;
        (data.asked, data.asked_in) = (iterations, iterations);
        let used = Amount { iterations, tool_calls, ..self.usage.amount() };
        cx.sh.budgets.settle(Grant::default(), used);
    }
}

/// The last answer with calls, and how many of its calls are answered.
struct Open {
    answer_at: usize,
    calls: Vec<Arc<ToolCall>>,
    answered: usize,
    /// Whether the answer is incomplete: its calls never run.
    broken: bool,
}

/// The last answer, when only results follow it.
fn find_last(log: &Prefix) -> Option<Open> {
    let (answer_at, answer, answered) = log.last_batch()?;
    let broken = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
    Some(Open { answer_at, calls: answer.tool_calls().cloned().collect(), answered, broken })
}

impl Opening {
    /// Whether the turn continues from its last answer or from the results of one, and not with a request.
    pub(super) fn follows_last(&self, turn: &TurnCx<'_>) -> bool {
        let log = &turn.cx.log;
        self.prior.is_some()
            && self.prompt.is_empty()
            && turn.data.began < log.len()
            && log.last().is_some_and(|last| match &**last {
                Message::Assistant(answer) => answer.tool_calls().next().is_none(),
                Message::ToolResult(_) => true,
                Message::System(_) | Message::User(_) | Message::Custom(_) => false,
            })
    }

    /// Resumes open calls where they were left.
    pub(super) fn reopen(&mut self, turn: &mut TurnCx<'_>, start: &Start) -> Step {
        if self.follows_last(turn) && !turn.cx.log.has_open_calls() {
            return follow_last(turn);
        }
        let continues = start.prompt.is_empty() || !start.decisions.is_empty();
        let Some(mut batch) = self.settle_open_calls(turn, start, continues) else {
            return self.enter(turn);
        };
        batch.opening = Some(Box::new(std::mem::take(self)));
        enter(Stage::Calling(batch))
    }

    /// Settles the open calls of a turn that ends before its agent is known: none of them can run.
    pub(super) fn abandon_open_calls(&mut self, turn: &mut TurnCx<'_>) -> Option<Box<Batch>> {
        let start = self.start.take()?;
        self.settle_open_calls(turn, &start, false)
    }

    /// The open calls, each with its repair.
    fn settle_open_calls(&self, turn: &mut TurnCx<'_>, start: &Start, continues: bool) -> Option<Box<Batch>> {
        let open = find_last(turn.cx.log).filter(|open| open.answered < open.calls.len())?;
        let mut batch = reopened(turn, &open);
        let mut is_next = true;
        for slot in batch.slots.iter_mut().skip(open.answered) {
            let before = start.open_calls.iter().find(|open| open.call == slot.call.id);
            if take_decision(&mut turn.cx, slot, start, before.is_some()) {
                if let Some(denied) = slot.finished().filter(|_| !is_next) {
                    slot.store_aside(&mut turn.cx, denied);
                }
                is_next &= slot.finished().is_some();
                continue;
            }
            let how = settle_open(&turn.cx, slot, before, continues && !open.broken);
            is_next &= slot.finished().is_some();
            if before.is_some_and(OpenCall::has_started) {
                self.count_repaired(turn, how);
            }
            let call = &slot.call;
            turn.cx.event(|| EventKind::CallRepaired { call: Arc::clone(call), how });
        }
        Some(batch)
    }

    /// A call that had started, and does not start again, counts.
    fn count_repaired(&self, turn: &mut TurnCx<'_>, how: RepairHow) {
        let started = match how {
            RepairHow::Recovered | RepairHow::Interrupted => self.prior.is_some(),
            RepairHow::Rerun | RepairHow::NotRun | RepairHow::Run => false,
        };
        if started {
            turn.data.usage.tool_calls = turn.data.usage.tool_calls.saturating_add(1);
            turn.cx.sh.budgets.settle(Grant::default(), Amount { tool_calls: 1, ..Amount::NONE });
        }
    }
}

/// Continues behind the last message.
fn follow_last(turn: &mut TurnCx<'_>) -> Step {
    turn.announce();
    let Some(last) = find_last(turn.cx.log) else { return WAIT };
    if last.answered == 0 {
        return enter(Stage::Reviewing(Reviewing::Accepted));
    }
    let mut batch = reopened(turn, &last);
    batch.seen = batch.flushed;
    enter(Stage::Calling(batch))
}

/// The calls of an answer, with those results that are in the transcript.
fn reopened(turn: &TurnCx<'_>, open: &Open) -> Box<Batch> {
    let mut batch = Batch::new(open.calls.iter(), open.answer_at, turn.spec, turn.data.tools());
    batch.is_reopened = true;
    for (at, slot) in batch.slots.iter_mut().enumerate().take(open.answered) {
        if let Some(message) = turn.cx.log.get(open.answer_at + 1 + at) {
            slot.progress = Progress::Finished(Finished::of_message(Arc::clone(message), false));
        }
    }
    batch.flushed = open.answered.min(batch.slots.len());
    batch
}

/// Applies the decision about a parked call: one that never started, or whose work waits. Returns whether that settles it; a
/// call that may run now is repaired like any other.
fn take_decision(cx: &mut Cx<'_>, slot: &mut CallState, start: &Start, is_stored: bool) -> bool {
    let pending = start.continuation.iter().flat_map(|made| &made.pending);
    let Some(parked) = pending.into_iter().find(|parked| parked.call_id == slot.call.id) else {
        return false;
    };
    if start.decisions.is_empty() || is_stored && parked.work.is_none() {
        return false;
    }
    let given = start.decisions.iter().find(|decided| decided.call == slot.call.id);
    let decision = given.map_or(Decision::Later, |decided| decided.decision.clone());
    slot.held = Some(parked.reason.clone());
    slot.work.clone_from(&parked.work);
    slot.parked_as = Some(Box::new(parked.clone()));
    // It is performed again as it was.
    if let Some(work) = &parked.work {
        slot.attempt = work.attempt;
        if let Some(ran) = parked.arguments.as_ref().filter(|ran| **ran != slot.call.arguments) {
            slot.rewrite(ran.clone());
        }
    }
    if given.is_some() && slot.work.is_none() {
        emit_decision(cx, slot.call.id.clone(), &decision);
    }
    match decision {
        Decision::Granted => {
            (slot.granted, slot.held) = (true, None);
            slot.work.is_some()
        }
        Decision::Edited(arguments) => {
            slot.edit(arguments);
            false
        }
        Decision::Denied { reason } => {
            if slot.work.is_none() {
                slot.attempt = 0;
            }
            slot.progress = answered(cx, slot, Finished::denied(&reason));
            true
        }
        Decision::Later => {
            slot.progress = Progress::Parked;
            true
        }
    }
}

/// Decides about one open call.
fn settle_open(cx: &Cx<'_>, slot: &mut CallState, before: Option<&OpenCall>, continues: bool) -> RepairHow {
    match before {
        Some(before @ OpenCall { result: Some(result), .. }) => {
            let (result, ran) = (Arc::clone(result), before.has_started());
            let recovered = Finished { is_denied: !ran, ..Finished::of_message(result, ran) };
            slot.progress = Progress::Finished(recovered);
            RepairHow::Recovered
        }
        Some(before) if may_repeat(slot, before.class) => {
            slot.attempt = before.attempt.saturating_add(1);
            slot.progress = Progress::Ready;
            RepairHow::Rerun
        }
        Some(_) => {
            slot.progress = answered(cx, slot, Finished::not_run(interrupted(ToolStatus::Cancelled)));
            RepairHow::Interrupted
        }
        None if continues => RepairHow::Run,
        None => {
            let outcome = not_run_outcome("the turn that asked for it ended before the call started");
            slot.progress = answered(cx, slot, Finished::not_run(outcome));
            RepairHow::NotRun
        }
    }
}

/// The state of a call that gets its result without running.
fn answered(cx: &Cx<'_>, slot: &CallState, finished: Finished) -> Progress {
    let message = Arc::new(Message::ToolResult(finished.outcome.to_message(&slot.call, None, cx.now)));
    Progress::Finished(Finished { is_denied: finished.is_denied, ..Finished::of_message(message, false) })
}

/// Both the class at the time and the class now must allow it.
fn may_repeat(slot: &CallState, class: RetryClass) -> bool {
    class != RetryClass::Unsafe && slot.class != RetryClass::Unsafe
}
