//! What a result means for the turn.

use std::sync::Arc;

use super::slot::Finished;
use super::spec::{OnTrouble, Redundancy, TurnSpec};
use super::state::TurnState;
use crate::event::{EventKind, ResultNote};
use crate::limits::{Amount, Limit, Reached};
use crate::machine::Cx;
use crate::message::ToolCall;
use crate::outcome::{Evidence, Stop, StopReason};

impl TurnState {
    /// Judges the result that was just appended: faults, errors, loops, limits, in this order.
    pub(super) fn judge_result(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        slot: u32,
        call: &Arc<ToolCall>,
        finished: &Finished,
    ) {
        let answer_at = self.batch.as_ref().map_or(0, |batch| batch.answer_at);
        let at = usize::try_from(answer_at).unwrap_or(usize::MAX).saturating_add(1 + slot as usize);
        let polls = self.batch.as_ref().and_then(|batch| self.def_of(batch.slot(slot)?));
        let polls = polls.is_some_and(|def| def.polling);
        let repairing = self.batch.as_ref().is_some_and(|batch| batch.repairs);
        if finished.outcome.is_error() {
            self.history.clear();
            if let (Some(fault), OnTrouble::EndTurn) = (&finished.fault, spec.on_tool_fault) {
                self.stop = Some(Stop::new(StopReason::RuntimeError, Evidence::Fault(fault.clone())));
                return;
            }
            let lasting = finished.fault.is_none() && finished.ran && !finished.outcome.is_retryable();
            if lasting && !repairing && spec.on_tool_error == OnTrouble::EndTurn {
                let evidence = Evidence::Tool {
                    name: Arc::from(call.name.as_str()),
                    code: finished.outcome.error.as_ref().map(|error| Arc::from(error.code.as_str())),
                };
                self.stop = Some(Stop::new(StopReason::ToolErrorUnrecoverable, evidence));
                return;
            }
        } else if finished.note != Some(ResultNote::RuntimePolicy) {
            self.note_success(spec, slot, at, call, finished);
            if !polls && self.history.completes_row(spec.redundancy, cx.log, at, call) {
                let evidence = Evidence::Tool { name: Arc::from(call.name.as_str()), code: None };
                let reason = StopReason::RedundantToolLoop;
                cx.event(|| EventKind::LimitReached { reason, reached: None });
                self.stop = Some(Stop::new(reason, evidence));
                return;
            }
        }
        if finished.ran
            && !polls
            && spec.redundancy != Redundancy::Off
            && let Some(tools) = self.cycles.goes_on(spec.longest_cycle, cx.log, at, call)
        {
            let reason = StopReason::RedundantToolLoop;
            cx.event(|| EventKind::LimitReached { reason, reached: None });
            self.stop = Some(Stop::new(reason, Evidence::Loop { tools }));
            return;
        }
        if let Some((reason, reached)) = self.reached_limit(spec, cx) {
            cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
            self.stop = Some(Stop::new(reason, Evidence::Limit(reached)));
        }
    }

    /// The first limit that is reached, in source 001's order: tool calls, time, cost, tokens. (Iterations
    /// are looked at where one begins.)
    pub(super) fn reached_limit(&self, spec: &TurnSpec, cx: &Cx<'_>) -> Option<(StopReason, Reached)> {
        if spec.stops_with_last_call() {
            let one = Amount { tool_calls: 1, ..Amount::NONE };
            if let Some(reached) = cx.sh.budgets.would_reach(one) {
                return Some((StopReason::MaxToolCallsReached, reached));
            }
        }
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
        Some(Reached { limit: Limit::Elapsed, value: cx.now.since(self.started_at).0, ceiling })
    }
}
