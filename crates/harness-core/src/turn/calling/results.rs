//! Results of calls: through layers and checks into the transcript, in call order, and their effect on the turn.

use std::ops::ControlFlow::Continue;
use std::sync::Arc;

use super::batch::{Batch, CallState, Finished, Progress};
use crate::decide::{Point, Subject};
use crate::event::{EventKind, ResultNote};
use crate::ids::CallId;
use crate::limits::{Amount, Grant};
use crate::machine::{Cx, Op, Pending, Record};
use crate::message::{Message, ToolCall};
use crate::outcome::{Evidence, Fault, Stop, StopReason};
use crate::port::AppendSource;
use crate::time::Millis;
use crate::tool::{Ongoing, SettledGrant, ToolOutcome, ToolStatus};
use crate::turn::loops::{CallResult, Loop};
use crate::turn::spec::OnToolFailure;
use crate::turn::stage::Step;
use crate::turn::state::{TurnCx, emit_refused, stands_alone};

pub(in crate::turn) fn not_run_outcome(why: &str) -> ToolOutcome {
    ToolOutcome::with_error(ToolStatus::Cancelled, "not_run", format!("This call did not run: {why}."))
}

/// The outcome of a call that started, and of whose effects nothing is known.
pub(in crate::turn) fn interrupted(status: ToolStatus) -> ToolOutcome {
    let text =
        "This call was cut off before it answered. It may have taken effect: check before it is repeated.";
    ToolOutcome::with_error(status, "interrupted", text)
}

/// The result of a call that is not performed, or, if its work waits, not performed again.
pub(in crate::turn) fn not_performed(slot: &CallState, outcome: ToolOutcome) -> Finished {
    if slot.work.is_none() {
        return Finished::not_run(outcome);
    }
    Finished { ran: slot.started.is_some(), ..Finished::not_run(interrupted(ToolStatus::Cancelled)) }
}

impl CallState {
    /// Stores a result that must outlive this run, and whose turn in call order has not come.
    pub(in crate::turn) fn store_aside(&self, cx: &mut Cx<'_>, finished: &Finished) {
        if let Some(result) = finished.message.as_ref().filter(|_| finished.is_lasting()) {
            let (call, result) = (Arc::clone(&self.call), Arc::clone(result));
            cx.persist(Record::CallFinished { call, attempt: self.attempt, class: self.class, result });
        }
    }
}

impl Batch {
    /// Charges the usage of an attempt. Returns its outcome, and the error of its tool or registry itself.
    pub(in crate::turn) fn charge(
        &mut self,
        turn: &mut TurnCx<'_>,
        at: u32,
        result: Result<Arc<ToolOutcome>, Fault>,
    ) -> Option<(Arc<ToolOutcome>, Option<Fault>)> {
        let slot = self.slot_mut(at)?;
        let grant = std::mem::take(&mut slot.grant);
        slot.work = None;
        let (outcome, fault) = match result {
            Ok(outcome) => (outcome, None),
            Err(fault) => (Arc::new(ToolOutcome::error(&*fault.code, fault.message.clone())), Some(fault)),
        };
        // The call itself counts beside what was spent within it.
        let own = Amount { tool_calls: slot.own_calls, ..Amount::NONE };
        let calls = outcome.spent.tool_calls.saturating_add(own.tool_calls);
        let mut used = Amount { tool_calls: calls, ..outcome.spent };
        if let Some(usage) = &outcome.usage {
            turn.data.usage.add_child(usage);
            used.tokens = used.tokens.saturating_add(usage.all_tokens());
            used.cost = used.cost.plus(usage.total_cost().unwrap_or_default());
        }
        match &outcome.ongoing {
            None => turn.cx.sh.budgets.settle(grant, used),
            Some(ongoing) => settle_ongoing(&mut turn.cx, ongoing, &slot.call.id, (grant, own), used),
        }
        Some((outcome, fault))
    }

    /// The driver gave up on a call that had started: its result. What it spent is not known: the whole grant counts.
    pub(in crate::turn) fn cut_off(&mut self, cx: &mut Cx<'_>, at: u32) -> Finished {
        if let Some(slot) = self.slot_mut(at) {
            let grant = std::mem::take(&mut slot.grant);
            cx.sh.budgets.settle(grant, grant.0);
        }
        Finished::ran(Arc::new(interrupted(ToolStatus::Timeout)), None)
    }

    pub(super) fn answer(&mut self, turn: &mut TurnCx<'_>, at: u32, outcome: ToolOutcome) -> Step<()> {
        self.finish(turn, at, Finished::not_run(outcome))
    }

    /// Takes the result of a call, and whatever follows it in call order: into the transcript when it is its turn and no
    /// layer sees it before, else into a side record.
    pub(in crate::turn) fn finish(
        &mut self,
        turn: &mut TurnCx<'_>,
        at: u32,
        mut finished: Finished,
    ) -> Step<()> {
        let is_next = !self.is_looked_at() && self.flushed == at as usize;
        let at_once = self.is_stopped || turn.cx.ports.layers.is_none();
        if self.is_stopped && finished.ran {
            finished.note = Some(ResultNote::Late);
        }
        let cx = &mut turn.cx;
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        let duration = slot.started.map_or(Millis(0), |started| cx.now.since(started));
        let result = finished.outcome.to_message(&slot.call, slot.started, cx.now);
        let message = Arc::new(Message::ToolResult(result));
        slot.last = None;
        if is_next && at_once {
            cx.append_one(message);
        } else {
            finished.message = Some(message);
            slot.store_aside(cx, &finished);
        }
        emit_result(cx, &slot.call, &finished, duration);
        slot.progress = Progress::Finished(finished);
        if is_next { self.flush(turn) } else { Continue(()) }
    }

    /// Appends the results that are next in call order and judges each, until layers or a check have to be waited for. Of a
    /// turn that stops, no layer and no check sees them.
    pub(in crate::turn) fn flush(&mut self, turn: &mut TurnCx<'_>) -> Step<()> {
        while !self.is_looked_at()
            && self.slots.get(self.flushed).is_some_and(|slot| slot.finished().is_some())
        {
            if !self.is_stopped && turn.cx.ports.layers.is_some() && self.seen <= self.flushed {
                self.show_results(turn);
                break;
            }
            let at = self.append_next(&mut turn.cx);
            let ends = |slot: &CallState| slot.finished().is_some_and(|finished| finished.outcome.terminate);
            if self.is_stopped {
                continue;
            }
            if self.slot(at).is_some_and(ends) && self.terminates() {
                continue;
            }
            if !self.checks_result(turn, at) {
                self.judge(turn, at)?;
            }
        }
        Continue(())
    }

    /// Appends the result that is next, unless that is done; gives the place of its call.
    fn append_next(&mut self, cx: &mut Cx<'_>) -> u32 {
        let at = u32::try_from(self.flushed).unwrap_or(u32::MAX);
        self.flushed += 1;
        if let Some(CallState { progress: Progress::Finished(finished), .. }) = self.slot_mut(at)
            && let Some(message) = finished.message.take()
        {
            cx.append_one(message);
        }
        at
    }

    /// Shows the layers the results that are next in call order. They are stored already.
    fn show_results(&mut self, turn: &mut TurnCx<'_>) {
        let next = self.slots.iter().skip(self.flushed).map_while(CallState::finished);
        self.showing = Some(self.flushed + next.clone().count());
        let messages = next.filter_map(|finished| finished.message.clone()).collect();
        let (source, standing) = (AppendSource::ToolResults, Box::new(turn.standing()));
        let op = Op::Append { source, messages, standing };
        turn.cx.perform(Pending::AppendResults, op);
    }

    /// Takes what layers gave in place of the results that they looked at; without it these stay. A result
    /// that was left out, or is one of another call, is put back (law 1).
    pub(in crate::turn) fn take_seen(&mut self, cx: &mut Cx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let given = cx.tolerate(result);
        let Some(upto) = self.showing.take() else { return };
        self.seen = upto;
        let Some(mut given) = given else { return };
        for slot in self.slots.iter_mut().take(upto).skip(self.flushed) {
            let Some(at) = given.iter().position(|message| is_result_of(message, &slot.call)) else {
                continue;
            };
            let message = given.remove(at);
            if let Progress::Finished(finished) = &mut slot.progress {
                finished.message = Some(message);
            }
        }
        let (added, refused): (Vec<_>, Vec<_>) = given.into_iter().partition(|message| stands_alone(message));
        self.added.extend(added);
        emit_refused(cx, refused.len());
    }

    /// Shows a result that is in the transcript to the checks of results. Whether there is one.
    fn checks_result(&mut self, turn: &mut TurnCx<'_>, at: u32) -> bool {
        let Some(slot) = self.slot(at) else { return false };
        let Some(finished) = slot.finished().filter(|finished| finished.ran) else { return false };
        let checks = turn.start_checks(Point::Result, |turn| {
            let (call, outcome) = (Arc::clone(&slot.call), Arc::clone(&finished.outcome));
            Subject::Result { call, outcome, progress: turn.data.progress(&turn.cx) }
        });
        self.checking = checks.then_some(at);
        checks
    }

    /// Judges the result of the call at `at`, which was just appended: registry errors, error results, loops, limits, in
    /// this order.
    pub(super) fn judge(&self, turn: &mut TurnCx<'_>, at: u32) -> Step<()> {
        if let Some(stop) = self.stop_for_result(turn, at) {
            if stop.reason == StopReason::RedundantToolLoop {
                turn.cx.event(|| EventKind::LimitReached { reason: stop.reason, reached: None });
            }
            return Step::Break(Box::new(stop));
        }
        turn.check_limits()
    }

    /// The stop that a result itself leads to.
    fn stop_for_result(&self, turn: &mut TurnCx<'_>, at: u32) -> Option<Stop> {
        let slot = self.slot(at)?;
        let finished = slot.finished()?;
        let is_error = finished.outcome.is_error();
        if is_error {
            turn.data.loops.clear();
            if let Some(stop) = self.stop_for_error(turn, &slot.call, finished) {
                return Some(stop);
            }
        }
        let position = self.answer_at.saturating_add(1 + at as usize);
        let polls = slot.def_in(turn.data.tools()).is_some_and(|def| def.polling);
        if polls || turn.spec.longest_cycle == 0 {
            return None;
        }
        let new = CallResult::of(turn.cx.log, position, &slot.call)?;
        let longest = turn.spec.longest_cycle;
        let evidence = match turn.data.loops.add(turn.cx.log, longest, new, is_error, finished.ran)? {
            Loop::Row => Evidence::Tool { name: Arc::from(slot.call.name.as_str()), code: None },
            Loop::Cycle(tools) => Evidence::Loop { tools },
        };
        Some(Stop::new(StopReason::RedundantToolLoop, evidence))
    }

    /// The stop that an error itself leads to.
    fn stop_for_error(&self, turn: &TurnCx<'_>, call: &ToolCall, finished: &Finished) -> Option<Stop> {
        let on_failure = turn.spec.on_tool_failure;
        if let Some(fault) = &finished.fault
            && on_failure != OnToolFailure::Answer
        {
            return Some(Stop::new(StopReason::RuntimeError, Evidence::Fault(fault.clone())));
        }
        let lasting = finished.fault.is_none() && finished.ran && !finished.outcome.is_retryable();
        if !lasting || self.opening.is_some() || on_failure != OnToolFailure::EndOnError {
            return None;
        }
        let evidence = Evidence::Tool {
            name: Arc::from(call.name.as_str()),
            code: finished.outcome.error.as_ref().map(|error| Arc::from(error.code.as_str())),
        };
        Some(Stop::new(StopReason::ToolErrorUnrecoverable, evidence))
    }

    /// Whether every call succeeded and asked to end the turn.
    fn terminates(&self) -> bool {
        self.slots.iter().all(|slot| {
            slot.finished().is_some_and(|finished| !finished.outcome.is_error() && finished.outcome.terminate)
        })
    }

    /// The texts of the results that end the turn: of all, in a batch in which every call succeeded and asked for
    /// it, else of the terminal tools that succeeded. Of a result without text the `text` or `message` of its data.
    /// None while a prompt waits behind what is repaired.
    pub(super) fn ending_text(&self, turn: &TurnCx<'_>) -> Option<String> {
        if self.opening.as_ref().is_some_and(|opening| !opening.prompt.is_empty()) {
            return None;
        }
        let all = !self.slots.is_empty() && self.terminates();
        let ends = |slot: &CallState, finished: &Finished| {
            let terminal = || slot.def_in(turn.data.tools()).is_some_and(|def| def.terminal);
            all || (!finished.outcome.is_error() && terminal())
        };
        let mut text = None;
        for (at, slot) in self.slots.iter().enumerate() {
            let Some(finished) = slot.finished().filter(|finished| ends(slot, finished)) else { continue };
            let message = finished.message.as_ref();
            let message = message.or_else(|| turn.cx.log.get(self.answer_at.saturating_add(1 + at)));
            text.get_or_insert_with(String::new).push_str(&words_of(message, &finished.outcome));
        }
        text
    }
}

/// The words of a result that ends a turn.
fn words_of(message: Option<&Arc<Message>>, outcome: &ToolOutcome) -> String {
    #[derive(serde::Deserialize)]
    struct Words {
        text: Option<String>,
        message: Option<String>,
    }
    let text = message.map_or_else(String::new, |message| message.joined_text());
    if !text.is_empty() {
        return text;
    }
    let data = outcome.structured.as_ref().and_then(|data| data.to::<Words>().ok());
    data.and_then(|words| words.text.or(words.message)).unwrap_or_default()
}

fn is_result_of(message: &Message, call: &ToolCall) -> bool {
    let result = message.as_tool_result();
    result.is_some_and(|result| result.tool_call_id == call.id && result.tool_name == call.name)
}

/// Charges what a call used whose work continues, or settles what other calls had kept for theirs. `granted`: what
/// was set aside for the call, and how much of that is the call itself.
fn settle_ongoing(
    cx: &mut Cx<'_>,
    ongoing: &Ongoing,
    call: &CallId,
    (grant, own): (Grant, Amount),
    used: Amount,
) {
    let given_back = if ongoing.keeps_grant { Grant(own) } else { grant };
    cx.sh.budgets.settle(given_back, used);
    if ongoing.keeps_grant {
        cx.sh.held.keep(call.clone(), Grant(grant.0.minus(own)), &cx.sh.budgets);
    }
    for SettledGrant { call, spent } in &ongoing.settled {
        cx.sh.held.settle(call, *spent, &mut cx.sh.budgets);
    }
}

fn emit_result(cx: &mut Cx<'_>, call: &Arc<ToolCall>, finished: &Finished, duration: Millis) {
    cx.event(|| {
        let (call, outcome, note) = (Arc::clone(call), Arc::clone(&finished.outcome), finished.note);
        if outcome.is_error() {
            let (ran, fault) = (finished.ran, finished.fault.clone());
            EventKind::ToolFailed { call, outcome, duration, ran, fault, note }
        } else {
            EventKind::ToolFinished { call, outcome, duration, note }
        }
    });
}
