//! What a result means for the turn.

use std::sync::Arc;

use super::call_state::{Finished, Progress};
use super::redundancy::Fresh;
use super::spec::{OnToolFailure, TurnSpec};
use super::state::TurnState;
use crate::event::EventKind;
use crate::limits::{Limit, Reached};
use crate::machine::Cx;
use crate::message::ToolCall;
use crate::outcome::{Evidence, Stop, StopReason};
use crate::transcript::Transcript;

impl TurnState {
    /// Judges the result that was just appended, that of the call at place `at` of the batch: faults, errors,
    /// loops, limits, in this order.
    pub(super) fn judge_result(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) {
        if let Some(stop) = self.stop_for_result(spec, cx.log, at) {
            if stop.reason == StopReason::RedundantToolLoop {
                cx.event(|| EventKind::LimitReached { reason: stop.reason, reached: None });
            }
            self.stop(stop);
            return;
        }
        if let Some((reason, reached)) = self.reached_limit(spec, cx) {
            cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
            self.stop(Stop::new(reason, Evidence::Limit(reached)));
        }
    }

    /// The stop that an error itself leads to.
    fn stop_for_error(&self, spec: &TurnSpec, call: &ToolCall, finished: &Finished) -> Option<Stop> {
        let outcome = &*finished.outcome;
        if let Some(fault) = &finished.fault
            && spec.on_tool_failure != OnToolFailure::Answer
        {
            return Some(Stop::new(StopReason::RuntimeError, Evidence::Fault(fault.clone())));
        }
        let repairs = self.batch.as_ref().is_some_and(|batch| batch.repairs);
        let lasting = finished.fault.is_none() && finished.ran && !outcome.is_retryable();
        if !lasting || repairs || spec.on_tool_failure != OnToolFailure::EndOnError {
            return None;
        }
        let evidence = Evidence::Tool {
            name: Arc::from(call.name.as_str()),
            code: outcome.error.as_ref().map(|error| Arc::from(error.code.as_str())),
        };
        Some(Stop::new(StopReason::ToolErrorUnrecoverable, evidence))
    }

    /// The stop that a result itself leads to.
    fn stop_for_result(&mut self, spec: &TurnSpec, log: &Transcript, at: u32) -> Option<Stop> {
        let batch = self.batch.as_ref()?;
        let slot = batch.slot(at)?;
        let Progress::Finished(finished) = &slot.progress else { return None };
        let (call, outcome) = (&slot.call, &*finished.outcome);
        if outcome.is_error() {
            self.history.clear();
            if let Some(stop) = self.stop_for_error(spec, call, finished) {
                return Some(stop);
            }
        }
        let position = usize::try_from(batch.answer_at).unwrap_or(usize::MAX).saturating_add(1 + at as usize);
        let tools = self.prepared.as_ref().map_or(&[][..], |prepared| &prepared.tools);
        let polls = slot.def_in(tools).is_some_and(|def| def.polling);
        if polls || spec.longest_cycle == 0 {
            return None;
        }
        let new = Fresh::of(log, position, at, slot)?;
        if !outcome.is_error() && self.history.completes_row(&new) {
            let evidence = Evidence::Tool { name: Arc::from(call.name.as_str()), code: None };
            return Some(Stop::new(StopReason::RedundantToolLoop, evidence));
        }
        if !finished.ran {
            return None;
        }
        let tools = self.cycles.continues(spec.longest_cycle, &new)?;
        Some(Stop::new(StopReason::RedundantToolLoop, Evidence::Loop { tools }))
    }

    /// The first limit that is reached: time, cost, tokens. Iterations and tool calls are looked at where one begins.
    pub(super) fn reached_limit(&self, spec: &TurnSpec, cx: &Cx<'_>) -> Option<(StopReason, Reached)> {
        if let Some(reached) = self.overdue(spec, cx) {
            return Some((StopReason::TimeoutReached, reached));
        }
        cx.sh.budgets.spent().map(|reached| (StopReason::BudgetReached, reached))
    }

    /// The evidence that the time is over.
    pub(super) fn overdue(&self, spec: &TurnSpec, cx: &Cx<'_>) -> Option<Reached> {
        let deadline = cx.sh.budgets.deadline().filter(|deadline| cx.now >= *deadline)?;
        let own = spec.limits.elapsed.map_or(u64::MAX, |span| span.0);
        let ceiling = own.min(deadline.since(self.started_at).0);
        Some(Reached::new(Limit::Elapsed, cx.now.since(self.started_at).0, ceiling))
    }
}
