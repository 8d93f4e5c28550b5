//! The view of a request: that of the layers, under the compaction in force, and as short as the compactor
//! makes it.
//!
//! Once shortened it stays shortened: a plan that the compactor tells of is in force for later requests,
//! turns and runs until the next one, and the session keeps it. A provider that refuses a request as too long
//! makes the compactor be asked once more, and the request is sent once more.

use std::sync::Arc;

use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::EventKind;
use crate::limits::{Limit, Reached};
use crate::machine::compaction::{charge, check, emit_start, emit_troubles, or_failed, store};
use crate::machine::{Cx, Op, Pending};
use crate::message::{AssistantMessage, Usage};
use crate::outcome::{End, Evidence, Fault, FaultSource, Stop, StopReason, TotalUsage};
use crate::port::{CompactReason, Compaction, CompactionNote, Measured, Overflow};
use crate::time::Time;
use crate::transcript::Plan;

/// What is known about the view of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortening {
    /// What the layers showed.
    recalled: Option<Plan>,
    /// Whether the view still has to be told.
    untold: bool,
    /// The fault by which a provider refused the view as too long, until it is shorter.
    pub(super) refused: Option<Box<Fault>>,
    /// Whether that happened once: there is no second attempt.
    mended: bool,
    since: Time,
}

impl TurnState {
    /// Takes the layers' view, when it keeps calls and results together.
    pub(super) fn take_recalled(&mut self, cx: &mut Cx<'_>, result: Result<Option<Plan>, Fault>) {
        let checked = result.and_then(|plan| match plan {
            Some(plan) => check(cx, &plan, FaultSource::Layer).map(|()| Some(plan)),
            None => Ok(None),
        });
        self.plan = cx.tolerate(checked).flatten();
        self.shortening.recalled.clone_from(&self.plan);
        if let Some(plan) = &self.plan {
            emit_plan(cx, "layers", plan);
        }
    }

    /// Puts the compaction in force over the view, and has it made shorter where that is needed.
    pub(super) fn compact(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if cx.sh.view.plan.is_some() {
            self.apply_in_force(cx);
        }
        if cx.ports.compactor {
            self.shortening.since = cx.now;
            self.issue(cx, Pending::Compact);
            return None;
        }
        self.ask(spec, cx)
    }

    fn apply_in_force(&mut self, cx: &mut Cx<'_>) {
        let Some(in_force) = cx.sh.view.plan.clone() else { return };
        let plan = self.plan.as_ref().map_or_else(|| in_force.clone(), |plan| plan.under(&in_force));
        match check(cx, &plan, FaultSource::Compactor) {
            Ok(()) => {
                self.plan = Some(plan);
                self.shortening.untold = true;
            }
            Err(fault) => {
                cx.sh.view.plan = None;
                cx.event(|| EventKind::CompactionFailed { fault });
            }
        }
    }

    /// The question to the compactor.
    pub(super) fn compact_op(&self, cx: &Cx<'_>) -> Op {
        let refused = self.shortening.refused.is_some();
        Op::Compact {
            reason: if refused { CompactReason::Overflow } else { CompactReason::Request },
            plan: self.plan.clone(),
            measured: cx.sh.view.measured.clone(),
            standing: Box::new(self.standing(cx)),
        }
    }

    /// Whether the compactor is asked because a provider refused the request as too long: once.
    pub(super) fn mends_overflow(&mut self, cx: &mut Cx<'_>, refused: &Fault) -> bool {
        if !cx.ports.compactor || std::mem::replace(&mut self.shortening.mended, true) {
            return false;
        }
        self.shortening.refused = Some(Box::new(refused.clone()));
        self.shortening.since = cx.now;
        emit_start(cx, &CompactReason::Overflow);
        self.issue(cx, Pending::Compact);
        true
    }

    pub(super) fn on_compacted(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        result: Result<Box<Compaction>, Fault>,
    ) -> Option<End> {
        let refused = self.shortening.refused.take();
        let before = self.plan.clone();
        let overflow = self.take_compaction(cx, refused.is_none(), result);
        if let Some(overflow) = overflow {
            let reached = Reached::new(Limit::Context, overflow.tokens, overflow.ceiling);
            return self.stop_at_limit(spec, cx, StopReason::ContextOverflow, reached);
        }
        if let Some(fault) = refused.filter(|_| self.plan == before) {
            let stop = Stop::new(StopReason::ContextOverflow, Evidence::Fault(*fault));
            return self.stop_now(spec, cx, stop);
        }
        self.ask(spec, cx)
    }

    /// Takes what came of a compaction; gives what is still too long. `starts`: whether its start was not told yet.
    pub(super) fn take_compaction(
        &mut self,
        cx: &mut Cx<'_>,
        starts: bool,
        result: Result<Box<Compaction>, Fault>,
    ) -> Option<Overflow> {
        let Compaction { plan, note, usage, failed, pressure, overflow } = *or_failed(result);
        let usage = charge(&mut self.usage, cx, usage);
        emit_troubles(cx, failed, pressure);
        if let Some(plan) = plan {
            if starts && note.is_some() {
                emit_start(cx, &CompactReason::Request);
            }
            self.take_compacted(cx, plan, note, &usage);
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
        self.plan = Some(plan.clone());
        self.shortening.untold = true;
        let Some(note) = note else { return };
        let recalled = self.shortening.recalled.as_ref();
        let plan = recalled.map_or_else(|| plan.clone(), |recalled| plan.without_made_of(recalled));
        cx.sh.view.plan = Some(plan.clone());
        let note = Arc::new(note);
        store(cx, &note, &plan, false);
        let (duration, usage) = (cx.now.since(self.shortening.since), Box::new(usage.clone()));
        cx.event(|| EventKind::CompactionCompleted { note, permanent: false, plan, usage, duration });
    }

    /// Tells the view of the request that is about to be made, when it is not that of the layers alone.
    pub(super) fn emit_view(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.shortening.untold)
            && let Some(plan) = &self.plan
        {
            emit_plan(cx, "compactor", plan);
        }
    }

    /// Remembers what a provider counted for the request that it answered.
    pub(super) fn measure(&self, cx: &mut Cx<'_>, answer: &AssistantMessage) {
        let counted = answer.usage.as_ref().filter(|usage| !usage.is_estimated());
        if let (true, Some(usage)) = (cx.ports.compactor, counted) {
            let (messages, plan, usage) = (cx.log.len() as u64, self.plan.clone(), Usage::clone(usage));
            cx.sh.view.measured = Some(Box::new(Measured { messages, plan, usage }));
        }
    }
}

fn emit_plan(cx: &mut Cx<'_>, by: &str, plan: &Plan) {
    let (messages, spans) = (cx.log.len() as u64, plan.spans.len() as u64);
    cx.event(|| EventKind::ViewPlanned { by: by.to_owned(), messages, spans, plan: plan.clone() });
}
