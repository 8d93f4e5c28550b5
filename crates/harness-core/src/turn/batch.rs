//! A batch: the calls of one answer, each through its gates to its result.
//!
//! For each call: offered → arguments → gates → approval → budget → execution (with retries). A
//! sequential batch prepares a call only when the one before it is answered; a parallel one prepares
//! one call at a time while others run. Results enter the transcript in call order.

use std::sync::Arc;

use serde::Serialize;

use super::call_state::{Batch, CallState, Finished, Next, Progress};
use super::spec::{OnToolFailure, TurnSpec};
use super::state::{TurnState, agent_of};
use crate::event::{EventKind, ResultNote};
use crate::ids::{AgentId, CallId};
use crate::json::Json;
use crate::limits::{Amount, Grant, Reached};
use crate::machine::{Cx, Pending, Record};
use crate::message::{Message, ToolCall};
use crate::outcome::{End, Evidence, Fault, Stop, StopReason};
use crate::time::{Millis, Time};
use crate::tool::{Ongoing, RetryClass, SettledGrant, ToolDef, ToolKind, ToolOutcome, ToolStatus};
use crate::transcript::Transcript;

/// The result of a handoff: the data of its envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HandoffResult<'a> {
    handoff_to: &'a AgentId,
    accepted: bool,
    payload: &'a Json,
}

/// The outcome of a call that did not run.
pub(super) fn not_run_outcome(why: &str) -> ToolOutcome {
    ToolOutcome::with_error(ToolStatus::Cancelled, "not_run", format!("This call did not run: {why}."))
}

/// How a call came to its result.
#[derive(Default)]
pub(super) struct Done {
    /// The fault of its tool or registry.
    pub(super) fault: Option<Fault>,
    pub(super) ran: bool,
    pub(super) note: Option<ResultNote>,
}

impl Done {
    fn ran(fault: Option<Fault>) -> Self {
        Self { fault, ran: true, note: None }
    }
}

impl TurnState {
    /// Begins with the calls of the answer that is the last message of the transcript.
    pub(super) fn open_batch(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let answer_at = cx.log.len().saturating_sub(1);
        let answer = cx.log.get(answer_at)?.as_assistant()?;
        let batch = self.batch.insert(Box::default());
        batch.open(answer.tool_calls().map(Arc::clone), answer_at, spec, self.prepared.as_deref());
        if let Some(stop) = &self.closing {
            let stop = stop.clone();
            return self.stop_now(spec, cx, stop);
        }
        if spec.on_tool_failure == OnToolFailure::EndOnError
            && let Some(unknown) = batch.slots.iter().find(|slot| slot.tool.is_none())
        {
            let evidence = Evidence::Tool { name: Arc::from(unknown.call.name.as_str()), code: None };
            return self.stop_now(spec, cx, Stop::new(StopReason::ToolUnavailable, evidence));
        }
        cx.event(|| {
            let calls = batch.slots.iter().map(|slot| Arc::clone(&slot.call)).collect();
            EventKind::ToolRequested { calls, parallel: Some(!batch.is_sequential()) }
        });
        self.run_batch(spec, cx)
    }

    /// Starts whatever can be started, until something has to be waited for or the batch is over.
    pub(super) fn run_batch(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        while !self.is_stopping() {
            let batch = self.batch.as_ref()?;
            let in_order = batch.is_sequential();
            match batch.next(spec) {
                // In sequence it is its turn, else others may be before it.
                Next::Prepare(at) => {
                    if !self.prepare_call(spec, cx, at) {
                        continue;
                    }
                    if !in_order {
                        self.set(at, Progress::Ready);
                    } else if self.start_call(spec, cx, at) {
                        return None;
                    }
                }
                Next::Start(at) => {
                    if self.start_call(spec, cx, at) && in_order {
                        return None;
                    }
                }
                Next::Wait => return None,
                Next::Done => return self.close_batch(spec, cx),
            }
        }
        self.settle(spec, cx)
    }

    /// Sets the budget aside, has the start stored, and runs an attempt. Whether one runs.
    fn start_call(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> bool {
        let tools = self.prepared.as_ref().map_or(&[][..], |prepared| &prepared.tools);
        let Some(batch) = &mut self.batch else { return false };
        let Some(slot) = batch.slots.get_mut(at as usize) else { return false };
        let def = slot.def_in(tools);
        let share = def.map_or(Amount::NONE, |def| def.share);
        // A repeated attempt is not another call, but may spend again.
        slot.own_calls = u32::from(!slot.counted);
        let own = Amount { tool_calls: slot.own_calls, ..Amount::NONE };
        match cx.sh.budgets.reserve_share(own, share) {
            Ok(grant) => slot.grant = grant,
            Err(reached) => {
                batch.refused.get_or_insert(reached);
                self.refuse_call(spec, cx, at, reached);
                return false;
            }
        }
        slot.started.get_or_insert(cx.now);
        let first = !std::mem::replace(&mut slot.counted, true);
        if slot.class != RetryClass::Pure {
            let (call, class, attempt) = (&slot.call, slot.class, slot.attempt);
            cx.persist(|| Record::CallStarted { call: Arc::clone(call), attempt, class });
        }
        if first {
            self.usage.tool_calls += 1;
            cx.event(|| EventKind::ToolStarted { call: Arc::clone(&slot.call) });
        }
        if let Some(ToolKind::Handoff(agent)) = def.map(|def| &def.kind) {
            let agent = agent.clone();
            self.hand_off(spec, cx, at, agent);
            return false;
        }
        slot.progress = Progress::Running;
        let agent = agent_of(self.prepared.as_deref(), self.agent.as_ref());
        let op = slot.op(at, batch.answer_at, agent, cx.sh.iteration);
        cx.perform(Pending::Tool(at), op);
        true
    }

    /// Answers a call for which nothing is left.
    fn refuse_call(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, reached: Reached) {
        let why = format!("the permitted {} are used up ({})", reached.limit, reached.ceiling);
        self.answer_call(spec, cx, at, not_run_outcome(&why));
    }

    /// Moves to another agent from the next iteration on. Of several in one batch the last one wins.
    fn hand_off(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, to: AgentId) {
        let from = self.agent_id();
        let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) else { return };
        let grant = std::mem::take(&mut slot.grant);
        cx.sh.budgets.settle(grant, grant.0);
        let call = slot.call.id.clone();
        let result = HandoffResult { handoff_to: &to, accepted: true, payload: &slot.call.arguments };
        let outcome = ToolOutcome::structured(Json::of(&result).unwrap_or_default());
        self.agent = Some(to.clone());
        self.stale_prepared = true;
        cx.event(|| EventKind::HandedOff { call, from, to });
        self.finish_call(spec, cx, at, Box::new(outcome), Done::ran(None));
    }

    pub(super) fn on_tool(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        at: u32,
        result: Result<Box<ToolOutcome>, Fault>,
    ) -> Option<End> {
        let stopping = self.is_stopping();
        let slot = self.batch.as_mut().and_then(|batch| batch.slot_mut(at))?;
        let grant = std::mem::take(&mut slot.grant);
        let (outcome, fault) = match result {
            Ok(outcome) => (outcome, None),
            Err(fault) => (Box::new(ToolOutcome::error(&*fault.code, fault.message.clone())), Some(fault)),
        };
        // The call itself counts beside what was spent within it.
        let own = Amount { tool_calls: slot.own_calls, ..Amount::NONE };
        let calls = outcome.spent.tool_calls.saturating_add(own.tool_calls);
        let mut used = Amount { tool_calls: calls, ..outcome.spent };
        if let Some(usage) = &outcome.usage {
            self.usage.add_child(usage);
            used.tokens = used.tokens.saturating_add(usage.all_tokens());
            used.cost = used.cost.plus(usage.total_cost().unwrap_or_default());
        }
        match &outcome.ongoing {
            None => cx.sh.budgets.settle(grant, used),
            Some(ongoing) => settle_ongoing(cx, ongoing, &slot.call.id, (grant, own), used),
        }
        let attempt = slot.attempt;
        let retries = outcome.is_retryable() && !stopping && attempt <= spec.retry.max_retries;
        if retries && self.may_retry(spec, cx, attempt) {
            self.wait_to_retry(spec, cx, at, outcome);
        } else {
            self.finish_call(spec, cx, at, outcome, Done::ran(fault));
        }
        self.run_batch(spec, cx)
    }

    /// Whether time and money are left for another attempt.
    fn may_retry(&self, spec: &TurnSpec, cx: &Cx<'_>, attempt: u32) -> bool {
        let begins = cx.now.after(spec.retry.wait(attempt));
        let in_time = self.turn_deadline.is_none_or(|deadline| begins < deadline);
        in_time && cx.sh.budgets.spent().is_none()
    }

    fn wait_to_retry(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, outcome: Box<ToolOutcome>) {
        let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) else { return };
        let backoff = spec.retry.wait(slot.attempt);
        slot.attempt += 1;
        let (call, attempt) = (Arc::clone(&slot.call), slot.attempt);
        let max_attempts = spec.retry.max_retries.saturating_add(1);
        let previous_error = outcome.error.clone();
        slot.progress =
            if backoff.0 == 0 { Progress::Ready } else { Progress::Waiting(cx.now.after(backoff)) };
        slot.particulars_mut().last = Some(outcome);
        cx.event(|| EventKind::ToolRetried { call, attempt, max_attempts, backoff, previous_error });
    }

    /// Starts the retries whose time has come.
    pub(super) fn wake_retries(&mut self, now: Time) {
        for slot in self.batch.iter_mut().flat_map(|batch| &mut batch.slots) {
            if matches!(slot.progress, Progress::Waiting(until) if until <= now) {
                slot.progress = Progress::Ready;
            }
        }
    }

    /// The driver gave up on a call that had started.
    pub(super) fn on_tool_cut(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> Option<End> {
        if let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) {
            let grant = std::mem::take(&mut slot.grant);
            // What it spent is not known: the whole grant counts.
            cx.sh.budgets.settle(grant, grant.0);
        }
        let text = "This call was cut off before it answered. It may have taken effect: check before it is repeated.";
        let outcome = ToolOutcome::with_error(ToolStatus::Timeout, "interrupted", text);
        self.finish_call(spec, cx, at, Box::new(outcome), Done::ran(None));
        self.run_batch(spec, cx)
    }

    /// Answers a call that did not run.
    pub(super) fn answer_call(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, outcome: ToolOutcome) {
        self.finish_call(spec, cx, at, Box::new(outcome), Done::default());
    }

    /// Takes a call's result: into the transcript when it is its turn, else into a side record.
    pub(super) fn finish_call(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        at: u32,
        outcome: Box<ToolOutcome>,
        done: Done,
    ) {
        let Done { fault, ran, mut note } = done;
        let stopping = self.is_stopping();
        if ran && stopping {
            note = Some(ResultNote::Late);
        }
        let Some(batch) = &mut self.batch else { return };
        let next = !batch.is_looked_at() && batch.flushed == at as usize;
        let in_turn = next && (stopping || cx.ports.layers.is_none());
        let Some(slot) = batch.slots.get_mut(at as usize) else { return };
        let message = Arc::new(Message::ToolResult(outcome.to_message(&slot.call, slot.started, cx.now)));
        let outcome = Arc::from(outcome);
        slot.take_last();
        let took = took(&message);
        let mut finished = Finished { outcome, message: None, fault, ran, note };
        if in_turn {
            cx.append_one(message);
        } else {
            if ran {
                cx.persist(|| Record::CallFinished {
                    call: Arc::clone(&slot.call),
                    attempt: slot.attempt,
                    class: slot.class,
                    result: Arc::clone(&message),
                });
            }
            finished.message = Some(message);
        }
        emit_result(cx, &slot.call, &finished, took);
        slot.progress = Progress::Finished(finished);
        if next {
            self.flush(spec, cx, in_turn);
        }
    }

    /// Brings the results that are next in call order into the transcript and judges each, until layers or
    /// a check have to be waited for.
    pub(super) fn flush(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, mut appended: bool) {
        loop {
            let stopping = self.is_stopping();
            let Some(batch) = self.batch.as_mut().filter(|batch| !batch.is_looked_at()) else { return };
            let Some(slot) = batch.slots.get_mut(batch.flushed) else { return };
            let Progress::Finished(finished) = &mut slot.progress else { return };
            if cx.ports.layers.is_some() && !stopping && batch.seen <= batch.flushed {
                return self.show_results(cx);
            }
            if !std::mem::take(&mut appended)
                && let Some(message) = finished.message.take()
            {
                cx.append_one(message);
            }
            let terminates = finished.outcome.terminate && terminate(&batch.slots);
            let at = u32::try_from(batch.flushed).unwrap_or(u32::MAX);
            batch.flushed += 1;
            if stopping || terminates {
                continue;
            }
            if !self.checks_result(cx, at) {
                self.judge_result(spec, cx, at);
            }
        }
    }

    fn close_batch(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let batch = self.batch.as_ref()?;
        if batch.slots.iter().any(|slot| matches!(slot.progress, Progress::Parked)) {
            return self.park(spec, cx);
        }
        let (refused, repairs) = (batch.refused, batch.repairs);
        let offered = self.prepared.as_ref().map_or(&[][..], |prepared| &prepared.tools);
        let text = if refused.is_none() { ending_text(batch, offered, cx.log) } else { None };
        if !batch.added.is_empty() {
            self.keep_what_layers_added(cx);
        }
        if let Some(reached) = refused {
            return self.close_or_stop(spec, cx, reached);
        }
        self.batch = None;
        if let Some(text) = text {
            return self.end_with(spec, cx, &text);
        }
        self.invalid = 0;
        if let Some(hint) = self.cycles.take_hint().filter(|_| !repairs) {
            cx.append_one(super::flow::guidance_message(hint.to_owned()));
        }
        if repairs {
            return self.append_prompt(spec, cx);
        }
        self.drain(spec, cx, super::state::AfterDrain::Iterate)
    }

    /// Calls wait for decisions that come after this turn.
    fn park(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let slots = self.batch.iter().flat_map(|batch| &batch.slots);
        let held =
            slots.filter(|slot| matches!(slot.progress, Progress::Parked)).map(CallState::held_request);
        let evidence = Evidence::Held(held.collect());
        self.stop_now(spec, cx, Stop::new(StopReason::ApprovalRequired, evidence))
    }

    /// Every call of the batch asked to end the turn, with this text.
    fn end_with(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, text: &str) -> Option<End> {
        if self.checks_text(cx, text) {
            return None;
        }
        self.answer = Some(text.to_owned());
        self.drain(spec, cx, super::state::AfterDrain::Complete)
    }

    /// A call was refused for a limit: one more step without tools, if that is wanted and possible.
    fn close_or_stop(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, reached: Reached) -> Option<End> {
        let reason = reached.limit.into();
        if !spec.closing_step {
            return self.stop_at_limit(spec, cx, reason, reached);
        }
        self.batch = None;
        self.close_with(cx, reason, reached);
        self.drain(spec, cx, super::state::AfterDrain::Iterate)
    }

    /// What a call calls.
    pub(super) fn def_of(&self, slot: &CallState) -> Option<&ToolDef> {
        slot.def_in(&self.prepared.as_ref()?.tools)
    }

    pub(super) fn set(&mut self, at: u32, progress: Progress) {
        if let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) {
            slot.progress = progress;
        }
    }

    /// Ends the waits of retries: the last failure is the result.
    pub(super) fn give_up_retries(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) {
        let waiting: Vec<_> = self
            .batch
            .iter_mut()
            .flat_map(|batch| batch.slots.iter_mut().enumerate())
            .filter(|(_, slot)| matches!(slot.progress, Progress::Waiting(_) | Progress::Ready))
            .filter_map(|(at, slot)| Some((u32::try_from(at).ok()?, slot.take_last()?)))
            .collect();
        for (at, outcome) in waiting {
            self.finish_call(spec, cx, at, outcome, Done::ran(None));
        }
    }
}

/// Books what a call used whose work goes on, or settles what other calls had kept for theirs. `granted`: what
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

/// How long the call of a result ran.
fn took(message: &Message) -> Millis {
    Millis(message.as_tool_result().and_then(|message| message.duration_ms).unwrap_or(0))
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

/// Whether every call of a batch succeeded and asked to end the turn.
fn terminate(slots: &[CallState]) -> bool {
    slots.iter().all(|slot| match &slot.progress {
        Progress::Finished(finished) => !finished.outcome.is_error() && finished.outcome.terminate,
        Progress::New
        | Progress::Asking
        | Progress::Ready
        | Progress::Running
        | Progress::Waiting(_)
        | Progress::Parked => false,
    })
}

/// The texts of the results that end the turn: of all, in a batch in which every call succeeded and asked for
/// it, else of the terminal tools that succeeded. Of a result without text the `text` or `message` of its data.
fn ending_text(batch: &Batch, offered: &[ToolDef], log: &Transcript) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Said {
        text: Option<String>,
        message: Option<String>,
    }
    let slots = &batch.slots;
    let all = !slots.is_empty() && terminate(slots);
    let ends = |slot: &CallState| match &slot.progress {
        Progress::Finished(finished) => {
            all || (!finished.outcome.is_error() && slot.def_in(offered).is_some_and(|def| def.terminal))
        }
        Progress::New
        | Progress::Asking
        | Progress::Ready
        | Progress::Running
        | Progress::Waiting(_)
        | Progress::Parked => false,
    };
    if !slots.iter().any(ends) {
        return None;
    }
    let results = usize::try_from(batch.answer_at).unwrap_or(usize::MAX).saturating_add(1);
    let mut told = String::new();
    for (at, slot) in slots.iter().enumerate().filter(|(_, slot)| ends(slot)) {
        let Progress::Finished(finished) = &slot.progress else { continue };
        let message = finished.message.as_ref().or_else(|| log.get(results.saturating_add(at)));
        let text = message.map_or_else(String::new, |message| message.joined_text());
        let data = || finished.outcome.structured.as_ref()?.to::<Said>().ok();
        let text =
            if text.is_empty() { data().and_then(|said| said.text.or(said.message)) } else { Some(text) };
        told.push_str(&text.unwrap_or_default());
    }
    Some(told)
}
