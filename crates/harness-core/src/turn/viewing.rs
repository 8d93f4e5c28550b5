//! An iteration starts: limits, the agent where it may have changed, and the view of the request, which is that of the
//! layers, under the compaction in force, and as short as the compactor makes it.
//!
//! Once shortened it stays shortened: a plan that the compactor reports is in force for later requests,
//! turns and runs until the next one, and the session keeps it. A provider that refuses a request as too long
//! makes the compactor be asked once more, and the request is sent once more.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::asking::Asking;
use super::stage::{Stage, Step, WAIT, enter, stop};
use super::state::{TurnCx, unexpected};
use crate::event::EventKind;
use crate::limits::{Amount, Limit, Reached};
use crate::machine::compaction::{charge, check, emit_start, emit_troubles, or_failed, store};
use crate::machine::{Cx, Op, Pending, Reply};
use crate::message::{AssistantMessage, Usage};
use crate::outcome::{Evidence, Fault, FaultSource, StopReason, TotalUsage};
use crate::port::{CompactReason, Compaction, CompactionNote, Measured, Overflow};
use crate::time::{Millis, Time};
use crate::transcript::Plan;

/// The view of a request; the whole transcript, as long as layers and the compactor are not asked.
#[derive(Debug, Default)]
pub(super) struct Viewing(Option<Box<Made>>);

/// A view that is made.
#[derive(Debug, Default)]
struct Made {
    /// The view; `None` is the whole transcript.
    plan: Option<Plan>,
    /// The view of the layers.
    recalled: Option<Plan>,
    /// Whether the view still has to be reported.
    is_new: bool,
    /// The error of a provider that rejected the view as too long, until it is shorter.
    refused: Option<Box<Fault>>,
    /// Whether that happened once: there is no second attempt.
    is_mended: bool,
    /// When the compactor was asked.
    since: Time,
}

impl Made {
    fn shorten(&mut self, plan: Plan) {
        self.plan = Some(plan);
        self.is_new = true;
    }
}

impl Viewing {
    /// The plan of the view; `None` is the whole transcript.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.0.as_ref()?.plan.as_ref()
    }

    fn made(&mut self) -> &mut Made {
        self.0.get_or_insert_default()
    }

    /// Starts the next iteration, or makes a view shorter that was refused.
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if self.0.as_ref().is_some_and(|made| made.refused.is_some()) {
            emit_start(&mut turn.cx, &CompactReason::Overflow);
            return self.ask_compactor(turn);
        }
        turn.cx.sh.iteration += 1;
        let near = turn.cx.sh.budgets.would_reach(turn.data.step_amount(2));
        check_iteration(turn, near.is_some())?;
        let again = turn.cx.sh.iteration > 1;
        let may_close = again && turn.spec.closing_step && turn.data.last_stop.is_none();
        if may_close
            && !turn.data.tools().is_empty()
            && let Some(reached) = near_limit(turn, near)
        {
            turn.close_with(reached);
        }
        let changes = turn.data.prepared.as_ref().is_some_and(|prepared| prepared.changes);
        if turn.data.is_stale || (changes && again) {
            turn.prepare_agent();
            return WAIT;
        }
        self.recall(turn)
    }

    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (Pending::Prepare, Reply::Prepared(result)) => {
                turn.take_prepared(result)?;
                self.recall(turn)
            }
            (Pending::Recall, Reply::Recalled(result)) => {
                self.take_recalled(&mut turn.cx, result);
                self.shorten(turn)
            }
            (Pending::Compact, Reply::Compacted(result)) => self.on_compacted(turn, result),
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    fn recall(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if turn.cx.ports.layers.is_none() {
            return self.shorten(turn);
        }
        let standing = Box::new(turn.standing());
        turn.cx.perform(Pending::Recall, Op::Recall { standing });
        WAIT
    }

    /// Takes the layers' view, when it keeps calls and results together.
    pub(super) fn take_recalled(&mut self, cx: &mut Cx<'_>, result: Result<Option<Plan>, Fault>) {
        let checked = result.and_then(|plan| match plan {
            Some(plan) => check(cx, &plan, FaultSource::Layer).map(|()| Some(plan)),
            None => Ok(None),
        });
        if let Some(plan) = cx.tolerate(checked).flatten() {
            emit_plan(cx, "layers", &plan);
            let made = self.made();
            made.recalled = Some(plan.clone());
            made.plan = Some(plan);
        }
    }

    /// Puts the compaction in force over the view, and has it made shorter where that is needed.
    fn shorten(&mut self, turn: &mut TurnCx<'_>) -> Step {
        self.apply_in_force(&mut turn.cx);
        if turn.cx.ports.compactor {
            return self.ask_compactor(turn);
        }
        self.ask_model()
    }

    fn apply_in_force(&mut self, cx: &mut Cx<'_>) {
        let Some(in_force) = cx.sh.view.plan.clone() else { return };
        let plan = self.plan().map_or_else(|| in_force.clone(), |plan| plan.under(&in_force));
        match check(cx, &plan, FaultSource::Compactor) {
            Ok(()) => self.made().shorten(plan),
            Err(fault) => {
                cx.sh.view.plan = None;
                cx.event(|| EventKind::CompactionFailed { fault });
            }
        }
    }

    fn ask_compactor(&mut self, turn: &mut TurnCx<'_>) -> Step {
        let made = self.made();
        made.since = turn.cx.now;
        let refused = made.refused.is_some();
        let op = Op::Compact {
            reason: if refused { CompactReason::Overflow } else { CompactReason::Request },
            plan: made.plan.clone(),
            measured: turn.cx.sh.view.measured.clone(),
            standing: Box::new(turn.standing()),
        };
        turn.cx.perform(Pending::Compact, op);
        WAIT
    }

    fn on_compacted(&mut self, turn: &mut TurnCx<'_>, result: Result<Box<Compaction>, Fault>) -> Step {
        let made = self.made();
        let (refused, before) = (made.refused.clone(), made.plan.clone());
        if let Some(overflow) = self.take_compaction(turn, result) {
            let reached = Reached::new(Limit::Context, overflow.tokens, overflow.ceiling);
            return turn.stop_at_limit(StopReason::ContextOverflow, reached);
        }
        if let Some(fault) = refused.filter(|_| self.plan() == before.as_ref()) {
            return stop(StopReason::ContextOverflow, Evidence::Fault(*fault));
        }
        self.ask_model()
    }

    /// Takes the result of a compaction. Returns the overflow that is left.
    pub(super) fn take_compaction(
        &mut self,
        turn: &mut TurnCx<'_>,
        result: Result<Box<Compaction>, Fault>,
    ) -> Option<Overflow> {
        let starts = self.made().refused.take().is_none();
        let Compaction { plan, note, usage, failed, pressure, overflow } = *or_failed(result);
        let usage = charge(&mut turn.data.usage, &mut turn.cx, usage);
        emit_troubles(&mut turn.cx, failed, pressure);
        if let Some(plan) = plan {
            if starts && note.is_some() {
                emit_start(&mut turn.cx, &CompactReason::Request);
            }
            self.take_compacted(&mut turn.cx, plan, note, &usage);
        }
        overflow
    }

    /// Takes a view that keeps calls and results together; any other leaves it as it was. With a note it
    /// stays in force, without what the layers made for this request alone.
    fn take_compacted(
        &mut self,
        cx: &mut Cx<'_>,
        plan: Plan,
        note: Option<CompactionNote>,
        usage: &TotalUsage,
    ) {
        if let Err(fault) = check(cx, &plan, FaultSource::Compactor) {
            return cx.event(|| EventKind::CompactionFailed { fault });
        }
        let plan = plan.opened(cx.log.len());
        let made = self.made();
        made.shorten(plan.clone());
        let Some(note) = note else { return };
        let recalled = made.recalled.as_ref();
        let plan = recalled.map_or_else(|| plan.clone(), |recalled| plan.without_made_of(recalled));
        cx.sh.view.plan = Some(plan.clone());
        let note = Arc::new(note);
        store(cx, &note, &plan, false);
        let (duration, usage) = (cx.now.since(made.since), Box::new(usage.clone()));
        cx.event(|| EventKind::CompactionCompleted { note, permanent: false, plan, usage, duration });
    }

    fn ask_model(&mut self) -> Step {
        enter(Stage::Asking(Asking::new(std::mem::take(self))))
    }

    /// The stage in which a view that a provider refused as too long is made shorter; `None` when it was before.
    pub(super) fn mend(&mut self, refused: &Fault) -> Option<Stage> {
        let mut view = std::mem::take(self);
        let made = view.made();
        if std::mem::replace(&mut made.is_mended, true) {
            return None;
        }
        made.refused = Some(Box::new(refused.clone()));
        Some(Stage::Viewing(view))
    }

    /// Reports the view of the request that is about to be made, when it is not that of the layers alone.
    pub(super) fn emit(&mut self, cx: &mut Cx<'_>) {
        let Some(made) = &mut self.0 else { return };
        if std::mem::take(&mut made.is_new)
            && let Some(plan) = &made.plan
        {
            emit_plan(cx, "compactor", plan);
        }
    }

    /// Remembers what a provider counted for the request that it answered.
    pub(super) fn measure(&self, cx: &mut Cx<'_>, answer: &AssistantMessage) {
        let counted = answer.usage.as_ref().filter(|usage| !usage.is_estimated());
        if let (true, Some(usage)) = (cx.ports.compactor, counted) {
            let (messages, plan, usage) = (cx.log.len() as u64, self.plan().cloned(), Usage::clone(usage));
            cx.sh.view.measured = Some(Box::new(Measured { messages, plan, usage }));
        }
    }
}

/// Stops when an iteration would pass a limit. What two more steps fit into (not `is_near`), one fits into.
fn check_iteration(turn: &mut TurnCx<'_>, is_near: bool) -> Step<()> {
    if !is_near {
        return turn.check_limits();
    }
    let one = Amount { iterations: 1, ..Amount::NONE };
    if let Some(reached) = turn.cx.sh.budgets.would_reach(one) {
        return turn.stop_at_limit(StopReason::MaxIterationsReached, reached);
    }
    turn.check_limits()?;
    match turn.cx.sh.budgets.would_reach(turn.data.step_amount(1)) {
        Some(reached) => turn.stop_at_limit(reached.limit.into(), reached),
        None => ControlFlow::Continue(()),
    }
}

/// The limit that two more steps would pass: of the budgets, `near`, or the time.
fn near_limit(turn: &TurnCx<'_>, near: Option<Reached>) -> Option<Reached> {
    let TurnCx { data, cx, .. } = turn;
    if let Some(reached) = near {
        let used = u64::from(reached.limit == Limit::Iterations);
        let needs = reached.needs.map(|both| both / 2);
        return Some(Reached { value: reached.value + used, needs, ..reached });
    }
    let deadline = data.deadline?;
    let needed = Millis(data.last_step.took.0.saturating_mul(2));
    if needed.0 == 0 || cx.now.after(needed) < deadline {
        return None;
    }
    let spent = cx.now.since(data.started_at).0;
    Some(Reached::new(Limit::Elapsed, spent, deadline.since(data.started_at).0))
}

fn emit_plan(cx: &mut Cx<'_>, by: &str, plan: &Plan) {
    let (messages, spans) = (cx.log.len() as u64, plan.spans.len() as u64);
    cx.event(|| EventKind::ViewPlanned { by: by.to_owned(), messages, spans, plan: plan.clone() });
}
