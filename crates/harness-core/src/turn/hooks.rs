//! What the host's hooks see, and what their answers mean.

use std::sync::Arc;

use super::call_state::Progress as Stage;
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::EventKind;
use crate::machine::{Cx, Effect, HookPoint, Input, Op, Pending, Reply};
use crate::message::{AssistantMessage, Message};
use crate::outcome::{End, Evidence, Fault, Question, Stop, StopReason, ToolEvidence};
use crate::port::{HookAsk, Progress};
use crate::time::Millis;

/// How long the hook of the end may take when the turn's own time is nearly over.
const FINISH_TIME: Millis = Millis(2_000);

impl TurnState {
    /// The operation of a hook.
    pub(super) fn hook_op(&self, cx: &Cx<'_>, point: HookPoint) -> Option<Op> {
        let seen = |at: u32| {
            let slot = self.batch.as_ref()?.slot(at)?;
            let Stage::Finished(finished) = &slot.progress else { return None };
            Some((Arc::clone(&slot.call), Arc::clone(&finished.outcome)))
        };
        let ask = match point {
            HookPoint::Result(at) => seen(at).map(|(call, outcome)| HookAsk::Result { call, outcome })?,
            HookPoint::ToolError(at) => {
                seen(at).map(|(call, outcome)| HookAsk::ToolError { call, outcome })?
            }
            HookPoint::Invalid => HookAsk::InvalidOutput(*self.unusable.clone()?),
            HookPoint::Finished => HookAsk::Finished(Arc::clone(self.ended.as_ref()?)),
        };
        let elapsed = cx.now.since(self.started_at);
        let progress = Progress::new(cx.sh.iteration, self.usage.tool_calls, elapsed, cx.sh.budgets.left());
        Some(Op::Hook { ask: Box::new(ask), progress, from: self.began })
    }

    /// Shows a result that is in the transcript to the hooks that want it. Whether there is one.
    pub(super) fn ask_hooks(&mut self, cx: &mut Cx<'_>, at: u32) -> bool {
        let hooks = cx.ports.hooks;
        let Some(batch) = &mut self.batch else { return false };
        let Some(Stage::Finished(finished)) = batch.slot(at).map(|slot| &slot.progress) else { return false };
        let is_error = finished.outcome.is_error();
        if !finished.ran || !hooks.sees_result(is_error) {
            return false;
        }
        let point =
            if is_error && hooks.tool_errors { HookPoint::ToolError(at) } else { HookPoint::Result(at) };
        batch.watched = Some(at);
        self.issue(cx, Pending::Hook(point));
        true
    }

    pub(super) fn on_hooked(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        point: HookPoint,
        result: Result<Option<Box<Question>>, Fault>,
    ) -> Option<End> {
        match point {
            HookPoint::Invalid => {
                let invalid = self.unusable.take()?;
                if self.is_stopping() {
                    return self.settle(spec, cx);
                }
                cx.tolerate(result);
                self.after_invalid(spec, cx, *invalid)
            }
            HookPoint::Result(at) | HookPoint::ToolError(at) => {
                if let Some(batch) = &mut self.batch {
                    batch.watched = None;
                }
                if self.is_stopping() {
                    return self.settle(spec, cx);
                }
                let question = cx.tolerate(result).flatten();
                self.after_hook(spec, cx, point, question);
                let waits = self.batch.as_ref().is_some_and(|batch| batch.watched == Some(at));
                if waits {
                    return None;
                }
                self.flush(spec, cx, false);
                self.run_batch(spec, cx)
            }
            HookPoint::Finished => self.finish_hooked(cx),
        }
    }

    /// The next hook of the result, the question that it gave, or what the result means without one.
    fn after_hook(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        point: HookPoint,
        question: Option<Box<Question>>,
    ) {
        let at = match point {
            HookPoint::ToolError(at) if cx.ports.hooks.results => {
                if let Some(batch) = &mut self.batch {
                    batch.watched = Some(at);
                }
                return self.issue(cx, Pending::Hook(HookPoint::Result(at)));
            }
            HookPoint::ToolError(at) | HookPoint::Result(at) => at,
            HookPoint::Invalid | HookPoint::Finished => return,
        };
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        let Stage::Finished(finished) = &slot.progress else { return };
        let (call, is_error) = (Arc::clone(&slot.call), finished.outcome.is_error());
        match question.filter(|question| !question.text.trim().is_empty()) {
            None => self.judge_result(spec, cx, at),
            Some(mut question) => {
                if let Some((reason, reached)) = self.reached_limit(spec, cx) {
                    cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
                    self.stop = Some(Stop::new(reason, Evidence::Limit(reached)));
                    return;
                }
                let text = std::mem::take(&mut question.text).trim().to_owned();
                cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
                self.answer = Some(text.clone());
                self.question = Some(text);
                let evidence = ToolEvidence::new(&call, is_error, *question);
                let evidence = Evidence::ToolResult(Box::new(evidence));
                self.stop = Some(Stop::new(StopReason::ClarificationRequired, evidence));
            }
        }
    }

    /// The question of a hook, as the assistant's: the transcript that is taken up again shows what was asked.
    pub(super) fn append_question(&mut self, cx: &mut Cx<'_>) {
        if let Some(question) = self.question.take() {
            let mut message = AssistantMessage::clarification(&question);
            message.agent.clone_from(&self.agent);
            cx.append_one(Arc::new(Message::Assistant(message)));
        }
    }

    /// Shows the end to the hook that wants it; gives it at once when there is none.
    pub(super) fn emit_end(&mut self, cx: &mut Cx<'_>, end: End) -> Option<End> {
        if !cx.ports.hooks.finished {
            return Some(end);
        }
        let soonest = cx.now.after(FINISH_TIME);
        self.finish_by = self.turn_deadline.map_or(soonest, |deadline| deadline.max(soonest));
        self.aborted = false;
        self.ended = Some(Arc::new(end));
        self.issue(cx, Pending::Hook(HookPoint::Finished));
        None
    }

    /// Goes on while the layers take note of the end.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_>, pending: Option<Pending>, input: Input) -> Option<End> {
        if !self.leaving.as_mut()?.step(cx, pending, input) {
            return None;
        }
        let end = self.leaving.take()?.into_end(cx);
        self.announce_end(cx, end)
    }

    /// What still comes while the hook of the end is waited for: nothing of it changes the end.
    pub(super) fn after_end(
        &mut self,
        cx: &mut Cx<'_>,
        pending: Option<Pending>,
        input: Input,
    ) -> Option<End> {
        match input {
            Input::Reply(_, reply) => {
                let Some(Pending::Hook(HookPoint::Finished)) = pending else { return None };
                if let Reply::Hooked(result) = reply {
                    cx.tolerate(result);
                }
                self.finish_hooked(cx)
            }
            Input::Wake | Input::Cancel { .. } => {
                if !self.aborted {
                    self.aborted = true;
                    cx.fx.push(Effect::AbortAll);
                }
                None
            }
            Input::PersistFailed { message, messages_from, .. } => {
                if let Some(from) = messages_from {
                    cx.sh.persisted = cx.sh.persisted.min(from);
                }
                cx.sh.persist_failed = Some(message);
                cx.sh.pending.clear();
                self.finish_hooked(cx)
            }
            Input::Start(_) | Input::PartFailed(_) | Input::Hooked(_) | Input::Spent(_) => None,
        }
    }

    fn finish_hooked(&mut self, cx: &mut Cx<'_>) -> Option<End> {
        let mut end = Arc::unwrap_or_clone(self.ended.take()?);
        end.persist_failed.clone_from(&cx.sh.persist_failed);
        Some(end)
    }
}
