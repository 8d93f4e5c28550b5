//! Between turns: the transcript itself is made shorter, when the compactor says so.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RunPhase, RunSpec, RunState};
use crate::machine::compaction::{charge, emit_start, or_failed, take_permanent};
use crate::machine::{Cx, Effect, Input, Op, Pending, Phase as _, Reply, Standing, Start};
use crate::outcome::{End, Fault, FaultSource};
use crate::port::{CompactReason, Progress};
use crate::time::Time;

/// A turn that waits for the compactor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Waiting {
    start: Box<Start>,
    /// When the compactor was asked; `None` while the run is at rest.
    #[serde(skip)]
    asked: Option<Time>,
    /// Who cancelled meanwhile: the turn begins, and ends at once.
    #[serde(skip)]
    cancelled: Option<Arc<str>>,
    #[serde(skip)]
    aborted: bool,
}

impl Waiting {
    /// When the compactor is cut off.
    pub(super) fn wake_at(&self, deadline: Option<Time>) -> Option<Time> {
        deadline.filter(|_| self.asked.is_some() && !self.aborted)
    }

    /// It goes on in another process.
    pub(super) fn resume(&mut self, start: Start) {
        self.start.prompt.extend(start.prompt);
        self.start.open_calls = start.open_calls;
    }

    /// What the turn begins with.
    pub(super) fn into_start(self) -> Start {
        *self.start
    }
}

impl RunState {
    /// A turn begins next: when all that was is stored, and the state is saved.
    pub(super) fn begin_turn(&mut self, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        self.phase = RunPhase::Between;
        let start = Box::new(start);
        self.waiting = Some(Box::new(Waiting { start, asked: None, cancelled: None, aborted: false }));
        cx.rest();
        None
    }

    /// Asks the compactor where that is wanted, else begins the turn.
    pub(super) fn shorten_or_go_on(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let waiting = self.waiting.as_mut()?;
        if waiting.cancelled.is_some() || !may_shorten(spec, cx, &waiting.start) {
            return self.go_on_waiting(spec, cx);
        }
        waiting.asked = Some(cx.now);
        let op = self.shorten_op(cx);
        cx.perform(Pending::Shorten, op);
        None
    }

    fn shorten_op(&self, cx: &Cx<'_>) -> Op {
        let Standing { prepared, .. } = self.turn.standing(cx);
        let elapsed = cx.now.since(self.started_at);
        let progress = Progress::new(cx.sh.iteration, self.usage.tool_calls, elapsed, cx.sh.budgets.left());
        Op::Compact {
            reason: CompactReason::Request,
            plan: cx.sh.view.plan.clone(),
            measured: cx.sh.view.measured.clone(),
            standing: Box::new(Standing { prepared, progress }),
        }
    }

    /// Takes an input while the compactor is waited for.
    pub(super) fn wait(
        &mut self,
        spec: &RunSpec,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        let waiting = self.waiting.as_mut()?;
        match input {
            Input::Reply(_, reply) if pending == Some(Pending::Shorten) => {
                return self.on_shortened(spec, cx, reply);
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

    fn on_shortened(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, reply: Reply) -> Option<End> {
        let waiting = self.waiting.as_ref()?;
        let result = if let Reply::Compacted(result) = reply {
            result
        } else {
            let text = "it gave no answer; the transcript was left as it is";
            Err(Fault::new(FaultSource::Compactor, "interrupted", text))
        };
        let (since, may) = (waiting.asked.unwrap_or(cx.now), may_shorten(spec, cx, &waiting.start));
        let mut done = *or_failed(result);
        done.usage = charge(&mut self.usage, cx, std::mem::take(&mut done.usage));
        if !may {
            done.plan = None;
        }
        if done.plan.is_some() && done.note.is_some() {
            emit_start(cx, &CompactReason::Request);
        }
        take_permanent(cx, done, since);
        self.go_on_waiting(spec, cx)
    }

    fn go_on_waiting(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let Waiting { start, cancelled, .. } = *self.waiting.take()?;
        match (self.start_turn(spec, cx, *start), cancelled) {
            (None, Some(by)) => self.step(spec, cx, None, Input::Cancel { by }),
            (end, _) => end,
        }
    }
}

impl Waiting {
    fn abort(&mut self, cx: &mut Cx<'_>) {
        if self.asked.is_some() && !std::mem::replace(&mut self.aborted, true) {
            cx.emit(Effect::AbortAll);
        }
    }
}

/// Whether the transcript may be made shorter now: all of it is stored, and nobody refers to its positions.
fn may_shorten(spec: &RunSpec, cx: &Cx<'_>, start: &Start) -> bool {
    spec.compact_between_turns
        && cx.ports.compactor
        && !cx.log.is_empty()
        && cx.sh.persist_failed.is_none()
        && cx.is_all_stored()
        && start.continuation.is_none()
        && !cx.log.has_open_calls()
}
