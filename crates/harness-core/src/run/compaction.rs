//! Between turns: the transcript itself is made shorter, when the compactor says so.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RunPhase, RunSpec, RunState};
use crate::event::EventKind;
use crate::machine::{Boundary, Cx, Effect, Input, Op, Pending, Reply, Standing, Start};
use crate::outcome::{End, Fault, FaultSource};
use crate::port::{CompactReason, Progress};
use crate::time::Time;
use crate::turn::{charge, emit_start, or_failed, take_permanent};

/// A turn that waits for the compactor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Waiting {
    start: Box<Start>,
    since: Time,
    /// Whether the compactor was asked. Before that nothing happens in this moment, so that what was decided is
    /// stored, and the state saved, before anything follows from it.
    #[serde(default)]
    asked: bool,
    /// Who cancelled meanwhile: the turn begins, and ends at once.
    cancelled: Option<Arc<str>>,
    aborted: bool,
}

impl Waiting {
    /// When it is over: at once, or when the compactor is cut off.
    pub(super) fn wake_at(&self, deadline: Option<Time>) -> Option<Time> {
        if self.asked { deadline.filter(|_| !self.aborted) } else { Some(self.since) }
    }

    /// It goes on in another process.
    pub(super) fn resume(&mut self, now: Time, start: Start) {
        (self.since, self.aborted, self.cancelled) = (now, false, None);
        self.start.prompt.extend(start.prompt);
        self.start.open_calls = start.open_calls;
    }

    /// What the turn begins with.
    pub(super) fn into_start(self) -> Start {
        *self.start
    }
}

impl RunState {
    /// Begins a turn, with a shorter transcript where that is wanted.
    pub(super) fn begin_turn(&mut self, spec: &RunSpec, cx: &mut Cx<'_>, start: Start) -> Option<End> {
        if cx.sh.turn == 1 && !may_shorten(spec, cx, &start) {
            return self.start_turn(spec, cx, start);
        }
        self.phase = RunPhase::Compact;
        let start = Box::new(start);
        let waiting = Waiting { start, since: cx.now, asked: false, cancelled: None, aborted: false };
        self.waiting = Some(Box::new(waiting));
        if cx.sh.turn == 1 { self.shorten_or_go_on(spec, cx) } else { None }
    }

    /// Asks the compactor where that is wanted, else goes on.
    fn shorten_or_go_on(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let waiting = self.waiting.as_mut()?;
        if waiting.cancelled.is_some() || !may_shorten(spec, cx, &waiting.start) {
            return self.go_on(spec, cx);
        }
        (waiting.asked, waiting.since) = (true, cx.now);
        let op = self.shorten_op(cx);
        cx.perform(Pending::Shorten, op);
        None
    }

    pub(super) fn shorten_op(&self, cx: &Cx<'_>) -> Op {
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
            Input::Wake if !waiting.asked => return self.shorten_or_go_on(spec, cx),
            Input::Wake => waiting.abort(cx),
            Input::Cancel { by } => {
                waiting.cancelled.get_or_insert(by);
                waiting.abort(cx);
            }
            Input::PersistFailed { message, messages_from, unperformed } => {
                if let Some(from) = messages_from {
                    cx.sh.persisted = cx.sh.persisted.min(from);
                }
                cx.event(|| EventKind::PersistFailed { message: message.clone() });
                cx.sh.persist_failed = Some(message);
                if !unperformed.is_empty() {
                    cx.sh.pending.clear();
                    return self.go_on(spec, cx);
                }
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
        let (since, may) = (waiting.since, may_shorten(spec, cx, &waiting.start));
        let mut done = *or_failed(result);
        done.usage = charge(&mut self.usage, cx, std::mem::take(&mut done.usage));
        if !may {
            done.plan = None;
        }
        if done.plan.is_some() && done.note.is_some() {
            emit_start(cx, &CompactReason::Request);
        }
        take_permanent(cx, done, since);
        self.go_on(spec, cx)
    }

    fn go_on(&mut self, spec: &RunSpec, cx: &mut Cx<'_>) -> Option<End> {
        let Waiting { start, cancelled, .. } = *self.waiting.take()?;
        if cx.sh.turn > 1 {
            self.boundary(cx, RunPhase::Compact, Boundary::Compact);
        }
        let end = self.start_turn(spec, cx, *start);
        match (end, cancelled) {
            (None, Some(by)) => {
                let end = self.in_turn(spec, cx, |turn, cx| turn.cancel(&spec.turn, cx, by))?;
                self.decide(spec, cx, end)
            }
            (end, _) => end,
        }
    }
}

impl Waiting {
    fn abort(&mut self, cx: &mut Cx<'_>) {
        if self.asked && !std::mem::replace(&mut self.aborted, true) {
            cx.fx.push(Effect::AbortAll);
        }
    }
}

/// Whether the transcript may be made shorter now: all of it is stored, and nobody refers to its positions.
fn may_shorten(spec: &RunSpec, cx: &Cx<'_>, start: &Start) -> bool {
    spec.compact_between_turns
        && cx.ports.compactor
        && !cx.log.is_empty()
        && cx.sh.persist_failed.is_none()
        && cx.sh.persisted == cx.log.len()
        && start.continuation.is_none()
        && !cx.log.has_open_calls()
}
