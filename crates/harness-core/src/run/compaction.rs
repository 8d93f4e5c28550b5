//! Between turns: the compactor may shorten the transcript itself.

use std::sync::Arc;

use super::{RunSpec, RunStage, RunState};
use crate::machine::compaction::{charge, emit_start, or_failed, take_permanent};
use crate::machine::{AgentProgress, Cx, Effect, Input, Op, Pending, Phase as _, Reply, Start};
use crate::outcome::{End, Fault, FaultSource};
use crate::port::{CompactReason, Progress};
use crate::time::Time;
use crate::turn::TurnState;

/// A turn that waits for the run's rest, and for the compactor.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) start: Box<Start>,
    /// When the compactor was started; `None` while the run rests.
    since: Option<Time>,
    /// The part that cancelled meanwhile: the turn starts, and ends at once.
    cancelled: Option<Arc<str>>,
    aborted: bool,
}

impl Waiting {
    pub(super) fn new(start: Start) -> Self {
        Self { start: Box::new(start), since: None, cancelled: None, aborted: false }
    }

    /// When the compactor is cut off.
    pub(super) fn wake_at(&self, deadline: Option<Time>) -> Option<Time> {
        deadline.filter(|_| self.since.is_some() && !self.aborted)
    }

    fn abort(&mut self, cx: &mut Cx<'_>) {
        if self.since.is_some() && !std::mem::replace(&mut self.aborted, true) {
            cx.emit(Effect::AbortAll);
        }
    }
}

impl RunState {
    /// Rests before the next turn.
    pub(super) fn rest_before(&mut self, cx: &mut Cx<'_>, start: Start) {
        self.stage = RunStage::Between(Box::new(Waiting::new(start)));
        cx.rest();
    }

    /// Starts the compactor if the transcript may be shortened, else the turn.
    pub(super) fn compact_or_start(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let AgentProgress { prepared, .. } = self.turn.standing(cx);
        let RunStage::Between(waiting) = &mut self.stage else { return None };
        if waiting.cancelled.is_some() || !may_compact(spec, cx, &waiting.start) {
            return self.start_waiting(spec, cx);
        }
        waiting.since = Some(cx.now);
        let elapsed = cx.now.since(self.started_at);
        let progress = Progress {
            iteration: cx.sh.iteration,
            tool_calls: self.usage.tool_calls,
            elapsed,
            left: cx.sh.budgets.left(),
        };
        let op = Op::Compact {
            reason: CompactReason::Request,
            plan: cx.sh.view.plan.clone(),
            measured: cx.sh.view.measured.clone(),
            standing: Box::new(AgentProgress { prepared, progress }),
        };
        cx.perform(Pending::Shorten, op);
        None
    }

    /// Takes an input while the run rests, or while the compactor runs.
    pub(super) fn wait(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        let RunStage::Between(waiting) = &mut self.stage else { return None };
        match input {
            Input::Reply(_, reply) if pending == Some(Pending::Shorten) => {
                return self.on_compacted(spec, cx, reply);
            }
            Input::Reply(..) | Input::Start(_) | Input::PartFailed(_) | Input::Spent(_) => {}
            Input::Wake => waiting.abort(cx),
            Input::Cancel { by } => {
                waiting.cancelled.get_or_insert(by);
                waiting.abort(cx);
            }
        }
        None
    }

    fn on_compacted(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, reply: Reply) -> Option<End> {
        let RunStage::Between(waiting) = &self.stage else { return None };
        let result = if let Reply::Compacted(result) = reply {
            result
        } else {
            let text = "the compactor did not reply; the transcript is unchanged";
            Err(Fault::new(FaultSource::Compactor, "interrupted", text))
        };
        let (since, may) = (waiting.since.unwrap_or(cx.now), may_compact(spec, cx, &waiting.start));
        let mut done = *or_failed(result);
        done.usage = charge(&mut self.usage, cx, std::mem::take(&mut done.usage));
        if !may {
            done.plan = None;
        }
        if done.plan.is_some() && done.note.is_some() {
            emit_start(cx, &CompactReason::Request);
        }
        // A failed one is an event, and the turn begins with the transcript as it is.
        let _ = take_permanent(cx, done, since);
        self.start_waiting(spec, cx)
    }

    fn start_waiting(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let RunStage::Between(waiting) = std::mem::take(&mut self.stage) else { return None };
        let Waiting { start, cancelled, .. } = *waiting;
        let end = self.start_turn(spec, cx, TurnState::default(), *start);
        match (end, cancelled) {
            (None, Some(by)) => self.step(spec, cx, None, Input::Cancel { by }),
            (end, _) => end,
        }
    }
}

/// Whether the transcript may be shortened now: all of it is stored, and nothing refers to its positions.
fn may_compact(spec: &RunSpec, cx: &Cx<'_>, start: &Start) -> bool {
    spec.compact_between_turns
        && cx.ports.compactor
        && !cx.log.is_empty()
        && cx.sh.persist_failed.is_none()
        && cx.is_all_stored()
        && start.continuation.is_none()
        && !cx.log.has_open_calls()
}
