//! What checks see of results and of outputs of no use, and what their answers mean.

use std::sync::Arc;

use super::call_state::Progress as Stage;
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::decide::{Point, Subject};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::machine::Cx;
use crate::message::{AssistantMessage, Invalid, Message};
use crate::outcome::{End, Evidence, GuardStage, Question, Stop, StopReason, ToolEvidence};
use crate::port::Progress;

impl TurnState {
    /// Shows a result that is in the transcript to the checks of results. Whether there is one.
    pub(super) fn checks_result(&mut self, cx: &mut Cx<'_>, at: u32) -> bool {
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return false };
        let Stage::Finished(finished) = &slot.progress else { return false };
        if !finished.ran || cx.ports.next_check(Point::Result, 0).is_none() {
            return false;
        }
        let (call, outcome) = (Arc::clone(&slot.call), Arc::clone(&finished.outcome));
        let progress = self.progress(cx);
        if let Some(batch) = &mut self.batch {
            batch.watched = Some(at);
        }
        self.check(cx, Point::Result, || Some(Subject::Result { call, outcome, progress }))
    }

    /// Shows an output of no use to the checks of those. Whether there is one.
    pub(super) fn checks_invalid(&mut self, cx: &mut Cx<'_>, invalid: &Invalid) -> bool {
        let progress = self.progress(cx);
        self.check(cx, Point::Invalid, || {
            Some(Subject::Invalid { invalid: Box::new(invalid.clone()), progress })
        })
    }

    fn progress(&self, cx: &Cx<'_>) -> Progress {
        let elapsed = cx.now.since(self.started_at);
        Progress::new(cx.sh.iteration, self.usage.tool_calls, elapsed, cx.sh.budgets.left())
    }

    /// No check looks at a result any more; gives its place.
    pub(super) fn unwatch(&mut self) -> Option<u32> {
        let at = self.batch.as_mut()?.watched.take()?;
        self.checking = None;
        Some(at)
    }

    /// Every check accepts a result: what it means of itself.
    pub(super) fn result_accepted(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let at = self.unwatch()?;
        self.judge_result(spec, cx, at);
        self.flush(spec, cx, false);
        self.run_batch(spec, cx)
    }

    /// A check of results ends the turn.
    pub(super) fn result_refused(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        guardrail: GateName,
        reason: String,
    ) -> Option<End> {
        self.unwatch();
        let evidence = Evidence::Guardrail { guardrail, stage: GuardStage::Result, reason: Some(reason) };
        self.stop(Stop::new(StopReason::GuardrailTriggered, evidence));
        self.flush(spec, cx, false);
        self.run_batch(spec, cx)
    }

    /// The user is asked something because of a result, unless a limit is reached.
    pub(super) fn result_asks(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        mut question: Question,
    ) -> Option<End> {
        let slot = self.unwatch().and_then(|at| self.batch.as_ref()?.slot(at))?;
        let Stage::Finished(finished) = &slot.progress else { return None };
        let (call, is_error) = (Arc::clone(&slot.call), finished.outcome.is_error());
        if let Some((reason, reached)) = self.reached_limit(spec, cx) {
            cx.event(|| EventKind::LimitReached { reason, reached: Some(reached) });
            self.stop(Stop::new(reason, Evidence::Limit(reached)));
        } else {
            self.question_asked(cx, std::mem::take(&mut question.text));
            let evidence = ToolEvidence::new(&call, is_error, question);
            let evidence = Evidence::ToolResult(Box::new(evidence));
            self.stop(Stop::new(StopReason::ClarificationRequired, evidence));
        }
        self.flush(spec, cx, false);
        self.run_batch(spec, cx)
    }

    /// Tells a question to the user, which is what the turn answers.
    pub(super) fn question_asked(&mut self, cx: &mut Cx<'_>, text: String) {
        cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
        self.answer = Some(text.clone());
        self.question = Some(text);
    }

    /// The question of a check, as the assistant's: the transcript that is taken up again shows what was asked.
    pub(super) fn append_question(&mut self, cx: &mut Cx<'_>) {
        if let Some(question) = self.question.take() {
            let mut message = AssistantMessage::clarification(&question);
            message.agent.clone_from(&self.agent);
            cx.append_one(Arc::new(Message::Assistant(message)));
        }
    }
}
