//! The calls of a batch, from their request to the end of the batch.

use std::ops::ControlFlow::Continue;
use std::sync::Arc;

use super::batch::{Action, Batch, CallState, Finished, Progress};
use super::results::{not_performed, not_run_outcome};
use crate::decide::{Answered, CheckDecision, Point};
use crate::event::EventKind;
use crate::ids::AgentId;
use crate::json::Json;
use crate::limits::Amount;
use crate::machine::{Cx, Op, Pending, Record, Reply};
use crate::message::{ApprovalRequest, Handoff};
use crate::outcome::{Evidence, Fault, StopReason};
use crate::time::Time;
use crate::tool::{RetryClass, ToolKind, ToolOutcome};
use crate::turn::checks::Checked;
use crate::turn::draining::Then;
use crate::turn::reviewing::answer_with;
use crate::turn::spec::OnToolFailure;
use crate::turn::stage::{Stage, Step, WAIT, enter, stop};
use crate::turn::state::{TurnCx, drain, unexpected};

impl Batch {
    pub(in crate::turn) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if !self.is_reopened {
            self.request(turn)?;
        }
        self.flush(turn)?;
        self.run(turn)
    }

    pub(in crate::turn) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (Pending::Tool(at), Reply::Tool(result)) => self.on_tool(turn, at, result),
            (Pending::Tool(at), Reply::Interrupted { .. }) => {
                let finished = self.cut_off(&mut turn.cx, at);
                self.finish(turn, at, finished)?;
                self.run(turn)
            }
            (Pending::Arguments(at), Reply::Arguments(result)) => {
                self.on_arguments(turn, at, result)?;
                self.run(turn)
            }
            (Pending::Gate(at, gate, point), Reply::Gate(asked)) => {
                self.on_gate(turn, (at, gate, point), *asked)?;
                self.run(turn)
            }
            (Pending::Approve(at), Reply::Approval(decision)) => {
                self.on_decision(turn, at, decision)?;
                self.run(turn)
            }
            (Pending::Check(point, check), Reply::Check(asked)) => {
                self.on_check(turn, (point, check), *asked)
            }
            (Pending::AppendResults, Reply::Appended(result)) => {
                self.take_seen(&mut turn.cx, result);
                self.flush(turn)?;
                self.run(turn)
            }
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    /// Emits the calls, unless the answer before them was the last.
    fn request(&self, turn: &mut TurnCx<'_>) -> Step<()> {
        if let Some(last) = turn.data.last_stop.clone() {
            return Step::Break(Box::new(last));
        }
        if turn.spec.on_tool_failure == OnToolFailure::EndOnError
            && let Some(unknown) = self.slots.iter().find(|slot| slot.tool.is_none())
        {
            let evidence = Evidence::Tool { name: Arc::from(unknown.call.name.as_str()), code: None };
            return stop(StopReason::ToolUnavailable, evidence);
        }
        turn.cx.event(|| {
            let calls = self.slots.iter().map(|slot| Arc::clone(&slot.call)).collect();
            EventKind::ToolRequested { calls, parallel: Some(!self.is_sequential()) }
        });
        Continue(())
    }

    /// Starts whatever can be started, until something has to be waited for or the batch is over.
    fn run(&mut self, turn: &mut TurnCx<'_>) -> Step {
        loop {
            match self.next(turn.spec) {
                Action::Prepare(at) => self.prepare(turn, at)?,
                Action::Start(at) => self.start(turn, at)?,
                Action::Wait => return WAIT,
                Action::Done => return self.close(turn),
            }
        }
    }

    /// Reserves the budget, stores the start, and runs an attempt.
    fn start(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<()> {
        let TurnCx { data, cx, .. } = turn;
        let Some(slot) = self.slots.get_mut(at as usize) else { return Continue(()) };
        let def = slot.def_in(data.tools());
        let share = def.map_or(Amount::NONE, |def| def.share);
        let handoff =
            def.and_then(|def| if let ToolKind::Handoff(to) = &def.kind { Some(to.clone()) } else { None });
        // A repeated attempt is not another call, but may spend again.
        slot.own_calls = u32::from(slot.started.is_none());
        let own = Amount { tool_calls: slot.own_calls, ..Amount::NONE };
        match cx.sh.budgets.reserve_share(own, share) {
            Ok(grant) => slot.grant = grant,
            Err(reached) => {
                self.refused.get_or_insert(reached);
                let why = format!("the permitted {} are used up ({})", reached.limit, reached.ceiling);
                let finished = not_performed(slot, not_run_outcome(&why));
                return self.finish(turn, at, finished);
            }
        }
        let is_first = slot.started.is_none();
        slot.started.get_or_insert(cx.now);
        if slot.class != RetryClass::Pure {
            let (call, attempt, class) = (Arc::clone(&slot.call), slot.attempt, slot.class);
            cx.persist(Record::CallStarted { call, attempt, class });
        }
        if is_first {
            data.usage.tool_calls += 1;
            cx.event(|| EventKind::ToolStarted { call: Arc::clone(&slot.call) });
        }
        if let Some(to) = handoff {
            return self.hand_off(turn, at, to);
        }
        slot.progress = Progress::Running;
        let (agent, iteration) = (data.agent_id(), cx.sh.iteration);
        let (call, attempt, class, grant) = (Arc::clone(&slot.call), slot.attempt, slot.class, slot.share());
        let message = self.answer_at as u64;
        let op = Op::Tool { call, agent, iteration, message, index: at, attempt, class, grant };
        cx.perform(Pending::Tool(at), op);
        Continue(())
    }

    /// Moves to another agent from the next iteration on. Of several in one batch the last one wins.
    fn hand_off(&mut self, turn: &mut TurnCx<'_>, at: u32, to: AgentId) -> Step<()> {
        let from = turn.data.agent_id();
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        let grant = std::mem::take(&mut slot.grant);
        turn.cx.sh.budgets.settle(grant, grant.0);
        let call = slot.call.id.clone();
        let result = Handoff { to: to.clone(), accepted: true, payload: slot.call.arguments.clone() };
        let outcome = ToolOutcome::structured(Json::of(&result).unwrap_or_default());
        turn.data.agent = Some(to.clone());
        turn.data.is_stale = true;
        turn.cx.event(|| EventKind::HandedOff { call, from, to });
        self.finish(turn, at, Finished::ran(Arc::new(outcome), None))
    }

    fn on_tool(&mut self, turn: &mut TurnCx<'_>, at: u32, result: Result<Arc<ToolOutcome>, Fault>) -> Step {
        let Some((outcome, fault)) = self.charge(turn, at, result) else { return WAIT };
        if !outcome.approvals().is_empty() {
            self.park(at, outcome.approvals());
        } else if outcome.is_retryable() && self.may_retry(turn, at) {
            self.wait_to_retry(turn, at, outcome);
        } else {
            self.finish(turn, at, Finished::ran(outcome, fault))?;
        }
        self.run(turn)
    }

    fn park(&mut self, at: u32, requests: &[ApprovalRequest]) {
        if let Some(slot) = self.slot_mut(at) {
            slot.park(requests);
        }
    }

    /// Whether another attempt is permitted, and time and money are left for it.
    fn may_retry(&self, turn: &TurnCx<'_>, at: u32) -> bool {
        let Some(attempt) = self.slot(at).map(|slot| slot.attempt) else { return false };
        let starts = turn.cx.now.after(turn.spec.retry.wait(attempt));
        attempt <= turn.spec.retry.max_retries
            && turn.data.deadline.is_none_or(|deadline| starts < deadline)
            && turn.cx.sh.budgets.spent().is_none()
    }

    fn wait_to_retry(&mut self, turn: &mut TurnCx<'_>, at: u32, outcome: Arc<ToolOutcome>) {
        let Some(slot) = self.slot_mut(at) else { return };
        let backoff = turn.spec.retry.wait(slot.attempt);
        slot.attempt += 1;
        let (call, attempt) = (Arc::clone(&slot.call), slot.attempt);
        let max_attempts = turn.spec.retry.max_retries.saturating_add(1);
        let previous_error = outcome.error.clone();
        let until = turn.cx.now.after(backoff);
        slot.progress = if backoff.0 == 0 { Progress::Ready } else { Progress::Waiting(until) };
        slot.last = Some(outcome);
        turn.cx.event(|| EventKind::ToolRetried { call, attempt, max_attempts, backoff, previous_error });
    }

    /// Starts the retries whose time has come.
    pub(in crate::turn) fn wake(&mut self, turn: &mut TurnCx<'_>) -> Step {
        // A driver whose clock stands still says with the wake-up itself that the time has come.
        let now: Time = self.wake_at().unwrap_or(turn.cx.now).max(turn.cx.now);
        for slot in &mut self.slots {
            if matches!(slot.progress, Progress::Waiting(until) if until <= now) {
                slot.progress = Progress::Ready;
            }
        }
        self.run(turn)
    }

    fn on_check(
        &mut self,
        turn: &mut TurnCx<'_>,
        asked_at: (Point, u32),
        asked: Answered<CheckDecision>,
    ) -> Step {
        let judged = self.checking.take();
        if let Checked::Running = turn.on_check(asked_at, asked)? {
            self.checking = judged;
            return WAIT;
        }
        if let Some(at) = judged {
            self.judge(turn, at)?;
        }
        self.flush(turn)?;
        self.run(turn)
    }

    /// The starts of these calls could not be stored: they are answered, and do not run.
    pub(in crate::turn) fn refuse_unstored(&mut self, turn: &mut TurnCx<'_>, calls: Vec<Pending>) -> Step {
        for (at, finished) in self.take_unstored(&mut turn.cx, calls) {
            self.finish(turn, at, finished)?;
        }
        if turn.cx.idle() { self.run(turn) } else { WAIT }
    }

    /// The results of calls whose start could not be stored.
    pub(in crate::turn) fn take_unstored(
        &mut self,
        cx: &mut Cx<'_>,
        calls: Vec<Pending>,
    ) -> Vec<(u32, Finished)> {
        let mut unstored = Vec::new();
        for pending in calls {
            let Pending::Tool(at) = pending else { continue };
            if let Some(slot) = self.slot_mut(at) {
                cx.sh.budgets.settle(std::mem::take(&mut slot.grant), Amount::NONE);
                let why = "its start could not be stored, and it must not run twice";
                unstored.push((at, not_performed(slot, not_run_outcome(why))));
            }
        }
        unstored
    }

    /// Every call is finished or parked.
    fn close(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if self.is_parked() {
            let parked = self.slots.iter().filter(|slot| slot.is_parked());
            let requests = parked.flat_map(CallState::requests).collect();
            return stop(StopReason::ApprovalRequired, Evidence::Held(requests));
        }
        let text = self.ending_text(turn);
        turn.cx.append(std::mem::take(&mut self.added));
        if let Some(reached) = self.refused {
            if !turn.spec.closing_step {
                return turn.stop_at_limit(reached.limit.into(), reached);
            }
            turn.close_with(reached);
        } else if let Some(text) = text {
            return answer_with(turn, text);
        } else {
            turn.data.invalid = 0;
        }
        if let Some(opening) = self.opening.take() {
            return enter(Stage::Opening(opening));
        }
        if self.refused.is_none()
            && let Some(hint) = turn.data.loops.take_hint()
        {
            turn.guide(hint.to_owned());
        }
        drain(Then::Iterate)
    }
}
