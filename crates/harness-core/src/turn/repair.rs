//! Calls that an earlier process left open.
//!
//! A transcript may end with an answer whose calls are not all answered: the process died, or the turn
//! was parked. Before anything else each of them gets its one result (law 1): a result that had been
//! stored is used; a call that had started runs again only if its tool declares that safe; a call that
//! never started runs now when the turn merely goes on, and is answered as not run when a new prompt
//! follows.

use std::sync::Arc;

use super::batch::not_run_outcome;
use super::call_state::{Batch, CallState, Finished, Progress};
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::{EventKind, RepairHow};
use crate::machine::{Cx, Pending, Start};
use crate::message::{FinishReason, Message, ToolCall};
use crate::outcome::End;
use crate::port::{Decision, OpenCall};
use crate::tool::{RetryClass, ToolOutcome, ToolStatus};
use crate::transcript::Prefix;

/// The last answer with calls, and how many of its calls are answered.
struct Open {
    answer_at: usize,
    calls: Vec<Arc<ToolCall>>,
    answered: usize,
    /// Whether the answer broke off: its calls never run.
    broken: bool,
}

fn find_open(log: &Prefix) -> Option<Open> {
    let mut answered = 0;
    for at in (0..log.len()).rev() {
        match &**log.get(at)? {
            Message::ToolResult(_) => answered += 1,
            Message::Assistant(answer) => {
                let calls: Vec<_> = answer.tool_calls().cloned().collect();
                let broken = matches!(answer.stop_reason, FinishReason::Error | FinishReason::Aborted);
                return (answered < calls.len()).then_some(Open { answer_at: at, calls, answered, broken });
            }
            Message::System(_) | Message::User(_) | Message::Custom(_) => return None,
        }
    }
    None
}

impl TurnState {
    /// Asks for the agent first: which calls may run is told by its tools.
    pub(super) fn repair(&mut self, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        self.start = Some(Box::new(start));
        if self.agent.is_none() {
            self.agent = last_agent(cx.log);
        }
        self.issue(cx, Pending::Prepare);
        None
    }

    /// Takes up the open batch where it was left.
    pub(super) fn reopen_batch(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        if self.goes_on_from_last(cx.log) && !cx.log.has_open_calls() {
            return self.go_on_from_last(spec, cx);
        }
        let continues = start.prompt.is_empty() || !start.decisions.is_empty();
        if !self.settle_open_calls(spec, cx, &start, continues) {
            return self.append_prompt(spec, cx);
        }
        self.run_batch(spec, cx)
    }

    /// The turn ends before the agent is known: nothing of what is open can run.
    pub(super) fn abandon_open_calls(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) {
        if let Some(start) = self.start.take() {
            self.settle_open_calls(spec, cx, &start, false);
        }
    }

    /// Builds the open batch, with what is known about each call. Whether there is one.
    fn settle_open_calls(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        start: &Start,
        continues: bool,
    ) -> bool {
        let Some(open) = find_open(cx.log) else { return false };
        let mut batch = Box::<Batch>::default();
        batch.open(open.calls.iter().map(Arc::clone), open.answer_at, spec, self.prepared.as_deref());
        for (at, slot) in batch.slots.iter_mut().enumerate() {
            if at < open.answered {
                if let Some(message) = cx.log.get(open.answer_at + 1 + at) {
                    slot.progress = finished(Arc::clone(message), false);
                }
                continue;
            }
            let before = start.open_calls.iter().find(|open| open.call == slot.call.id);
            if before.is_none() && take_decision(cx, slot, start) {
                continue;
            }
            let how = settle_open(cx, slot, before, continues && !open.broken);
            self.count_repaired(cx, how);
            let call = &slot.call;
            cx.event(|| EventKind::CallRepaired { call: Arc::clone(call), how });
        }
        batch.flushed = open.answered;
        batch.repairs = true;
        self.batch = Some(batch);
        self.flush(spec, cx, false);
        true
    }
}

/// The agent that spoke last.
fn last_agent(log: &Prefix) -> Option<crate::ids::AgentId> {
    log.iter().rev().find_map(|message| message.as_assistant()?.agent.clone())
}

pub(super) fn finished(message: Arc<Message>, ran: bool) -> Progress {
    let is_error = message.as_tool_result().is_some_and(|result| result.is_error);
    let outcome = ToolOutcome {
        status: if is_error { ToolStatus::Failed } else { ToolStatus::Success },
        content: message.content().to_vec(),
        ..ToolOutcome::default()
    };
    Progress::Finished(Finished {
        outcome: Arc::new(outcome),
        message: Some(message),
        fault: None,
        ran,
        note: None,
    })
}

/// Applies what was decided about a parked call that never started. Whether that settles it; a call that
/// may run now is repaired like any other.
fn take_decision(cx: &mut Cx<'_>, slot: &mut CallState, start: &Start) -> bool {
    let pending = start.continuation.iter().flat_map(|made| &made.pending);
    let Some(parked) = pending.into_iter().find(|parked| parked.call_id == slot.call.id) else {
        return false;
    };
    if start.decisions.is_empty() {
        return false;
    }
    let given = start.decisions.iter().find(|decided| decided.call == slot.call.id);
    let decision = given.map_or(Decision::Later, |decided| decided.decision.clone());
    slot.particulars_mut().held = Some(parked.reason.clone());
    slot.particulars_mut().parked_as = Some(Box::new(parked.clone()));
    if given.is_some() {
        super::gates::emit_decision(cx, slot.call.id.clone(), &decision);
    }
    match decision {
        Decision::Granted => {
            slot.particulars_mut().granted = true;
            slot.particulars_mut().held = None;
            false
        }
        Decision::Edited(arguments) => {
            super::gates::rewrite(slot, arguments);
            slot.particulars_mut().edited = true;
            slot.particulars_mut().held = None;
            false
        }
        Decision::Denied { reason } => {
            let outcome = ToolOutcome::error("tool_blocked", format!("Denied: {reason}"));
            let message = Message::ToolResult(outcome.to_message(&slot.call, None, cx.now));
            slot.progress = finished(Arc::new(message), false);
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
    let answer = |slot: &CallState, outcome: ToolOutcome| {
        finished(Arc::new(Message::ToolResult(outcome.to_message(&slot.call, None, cx.now))), false)
    };
    match before {
        Some(OpenCall { result: Some(result), .. }) => {
            slot.progress = finished(Arc::clone(result), true);
            RepairHow::Recovered
        }
        Some(before) if may_repeat(slot, before.class) => {
            slot.attempt = before.attempt.saturating_add(1);
            slot.progress = Progress::Ready;
            RepairHow::Rerun
        }
        Some(_) => {
            let text = "The process ended while this call was running. It may have taken effect: check before it is repeated.";
            slot.progress = answer(slot, ToolOutcome::with_error(ToolStatus::Cancelled, "interrupted", text));
            RepairHow::Interrupted
        }
        None if continues => RepairHow::Run,
        None => {
            slot.progress = answer(slot, not_run_outcome("the turn that asked for it ended before it began"));
            RepairHow::NotRun
        }
    }
}

/// Both the class at the time and the class now must allow it.
fn may_repeat(slot: &CallState, class: RetryClass) -> bool {
    class != RetryClass::Unsafe && slot.class != RetryClass::Unsafe
}
