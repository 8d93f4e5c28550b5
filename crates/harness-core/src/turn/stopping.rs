//! A turn that stops: nothing begins any more, and what still comes is kept.
//!
//! A cancellation and the deadline stop it whatever it does. Until nothing is outstanding its replies come here and not
//! to the stages that asked; then every call gets its result, and the turn ends.

use std::sync::Arc;

use super::batch::not_run_outcome;
use super::call_state::Progress;
use super::flow::{answer_last_unrun, answer_unrun};
use super::spec::TurnSpec;
use super::stage::{Reviewing, Stage};
use super::state::TurnState;
use crate::event::EventKind;
use crate::machine::{Cx, Effect, Pending, Reply};
use crate::message::Message;
use crate::outcome::{End, Evidence, Stop, StopReason};

impl TurnState {
    pub(crate) fn cancel(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, by: Arc<str>) -> Option<End> {
        self.stop(Stop::new(StopReason::Cancelled, Evidence::Cancelled { by }));
        self.abort(cx);
        self.settle(spec, cx)
    }

    /// Tells everything outstanding that it is not wanted any more. Once is enough.
    fn abort(&mut self, cx: &mut Cx<'_>) {
        if let Stage::Stopping { aborted, .. } = &mut self.stage
            && !cx.idle()
            && !std::mem::replace(aborted, true)
        {
            cx.emit(Effect::AbortAll);
        }
    }

    /// The time that was asked for has come: the deadline, or a retry.
    pub(super) fn wake(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        if let Stage::Stopping { aborted: true, .. } = self.stage {
            return None;
        }
        if let Some(reached) = self.overdue(spec, cx) {
            if !self.is_stopping() {
                let reason = StopReason::TimeoutReached;
                cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
                self.stop(Stop::new(reason, Evidence::Limit(reached)));
            }
            self.abort(cx);
            return self.settle(spec, cx);
        }
        if self.is_stopping() {
            return None;
        }
        // A driver whose clock stands still says with the wake-up itself that the time has come.
        let asked = self.batch.as_deref().and_then(super::call_state::Batch::wake_at).unwrap_or(cx.now);
        self.wake_retries(asked.max(cx.now));
        if self.batch.is_some() { self.run_batch(spec, cx) } else { None }
    }

    /// Takes a reply that comes while the turn stops.
    pub(super) fn late(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        pending: Pending,
        reply: Reply,
    ) -> Option<End> {
        match (pending, reply) {
            (Pending::Model, Reply::Model(Ok(answer))) => {
                let answer = self.book_answer(cx, answer);
                self.keep_answer(cx, answer);
            }
            (Pending::Model, Reply::Model(Err(mut fault))) => {
                self.take_model_fault(cx, &mut fault, false);
            }
            (Pending::Model, Reply::Interrupted { partial }) => self.take_cut_answer(cx, partial),
            (Pending::AfterModel, Reply::AfterModel(result)) => {
                cx.tolerate(result);
                if let Some(Reviewing::Layers(answer)) = self.take_reviewing() {
                    self.keep_answer(cx, answer);
                }
            }
            (Pending::Tool(at), Reply::Tool(result)) => return self.on_tool(spec, cx, at, result),
            (Pending::Tool(at), Reply::Interrupted { .. }) => return self.on_tool_cut(spec, cx, at),
            (Pending::Check(point, check), Reply::Check(asked)) => {
                self.take_check(cx, (point, check), *asked);
                self.unwatch();
            }
            (Pending::Prepare, Reply::Prepared(Ok(prepared))) if !self.announced => {
                // The agent is known, so the turn did begin.
                self.prepared = Some(prepared);
                self.announce(cx);
            }
            (Pending::AppendPrompt, Reply::Appended(result)) => self.take_seen_prompt(cx, result),
            (Pending::AppendResults, Reply::Appended(result)) => self.take_seen_results(cx, result),
            (Pending::AppendSteering, Reply::Appended(result)) => self.take_seen_steering(cx, result),
            (Pending::Recall, Reply::Recalled(result)) => self.take_recalled(cx, result),
            (Pending::Compact, Reply::Compacted(result)) => {
                let starts = self.shortening.refused.take().is_none();
                self.take_compaction(cx, starts, result);
            }
            (Pending::LayerStore, Reply::Noted(result)) => {
                cx.tolerate(result);
            }
            (Pending::Drain, Reply::Drained(entries)) => {
                // The queue lets go of them once the input is taken: they come before what waits.
                self.steering.splice(0..0, entries.into_iter().map(|(_, message)| message));
            }
            // What was asked decides nothing any more.
            _ => {}
        }
        self.settle(spec, cx)
    }

    /// Keeps an answer that came too late to be acted on.
    fn keep_answer(&mut self, cx: &mut Cx<'_>, answer: Arc<Message>) {
        if answer.as_assistant().is_some() {
            self.append_answer(cx, answer);
            answer_last_unrun(cx, "the turn had ended");
        }
    }

    /// Goes on stopping: when nothing is outstanding, every call gets its result and the turn ends.
    pub(super) fn settle(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        self.give_up_retries(spec, cx);
        if !cx.idle() {
            return None;
        }
        match self.take_reviewing() {
            Some(Reviewing::Layers(answer)) => {
                cx.append_one(Arc::clone(&answer));
                answer_unrun(cx, &answer, "the turn had ended");
            }
            Some(Reviewing::Learning(answer)) => answer_unrun(cx, &answer, "the turn had ended"),
            Some(Reviewing::Approver(_)) | None => {}
        }
        self.stop_checking(cx);
        self.stop_showing(cx);
        self.abandon_open_calls(spec, cx);
        self.answer_rest(spec, cx);
        self.keep_what_layers_added(cx);
        let Stage::Stopping { stop, .. } = std::mem::replace(&mut self.stage, Stage::Ended) else {
            self.stage = Stage::Working;
            return self.invariant(spec, cx, "the turn was settled without a stop".into());
        };
        self.drop_unchecked_prompt(cx);
        let end = self.end(cx, stop);
        self.close_layers(cx, end)
    }

    /// Gives every call of the batch that has no result one that says why. Parked calls keep waiting.
    fn answer_rest(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) {
        let Stage::Stopping { stop, .. } = &self.stage else { return };
        let parking = stop.reason == StopReason::ApprovalRequired;
        let why = format!("the turn ended first ({})", stop.reason);
        let open: Vec<u32> = self
            .batch
            .iter()
            .flat_map(|batch| batch.slots.iter().enumerate())
            .filter(|(_, slot)| match slot.progress {
                Progress::Finished(_) => false,
                Progress::Parked => !parking,
                Progress::New
                | Progress::Asking
                | Progress::Ready
                | Progress::Running
                | Progress::Waiting(_) => true,
            })
            .filter_map(|(at, _)| u32::try_from(at).ok())
            .collect();
        for at in open {
            self.answer_call(spec, cx, at, not_run_outcome(&why));
        }
        self.flush(spec, cx, false);
    }
}
