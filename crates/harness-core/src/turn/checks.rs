//! Checks at work: the prompt before it is in the transcript, an answer before it counts.

use std::sync::Arc;

use super::flow::{answer_unrun, guidance_message};
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::decide::{Answered, CheckDecision, CheckVerdict, Point, Subject};
use crate::ids::GateName;
use crate::machine::{Cx, Pending};
use crate::message::{Message, ModelOutput};
use crate::outcome::{End, Evidence, GuardStage, Stop, StopReason};

/// What is being checked.
#[derive(Clone, Debug)]
pub(super) struct Checking {
    pub(super) subject: Subject,
}

/// Whether somebody said it: what the turn itself adds to a prompt is not checked.
fn is_said(message: &Message) -> bool {
    !matches!(message, Message::User(said) if said.origin.as_deref() == Some("hook"))
}

impl TurnState {
    /// Asks the checks of prompts, unless they have passed it; gives whether anything was asked.
    pub(super) fn checks_prompt(&mut self, cx: &mut Cx<'_>) -> bool {
        if self.prompt_passed || cx.ports.next_check(Point::Prompt, 0).is_none() {
            return false;
        }
        let prompt = self.prompt.clone();
        self.check(cx, Point::Prompt, || {
            let said: Vec<_> = prompt.into_iter().filter(|message| is_said(message)).collect();
            (!said.is_empty()).then_some(Subject::Prompt(said))
        })
    }

    /// Asks the checks of answers; gives whether anything was asked. Calls and refusals are no answers.
    pub(super) fn checks_answer(&mut self, cx: &mut Cx<'_>, answer: &Arc<Message>) -> bool {
        if cx.ports.next_check(Point::Answer, 0).is_none() {
            return false;
        }
        let agent = self.agent_id();
        self.check(cx, Point::Answer, || {
            let text = match answer.as_assistant().map(|message| message.output()) {
                Some(ModelOutput::FinalAnswer) => answer.joined_text(),
                Some(ModelOutput::Clarification { question }) => question,
                Some(
                    ModelOutput::ToolRequest
                    | ModelOutput::ApprovalRequest(_)
                    | ModelOutput::Refusal { .. }
                    | ModelOutput::Invalid(_),
                )
                | None => return None,
            };
            Some(Subject::Answer { text, agent, message: Some(Arc::clone(answer)) })
        })
    }

    /// Asks the checks of answers about the words of tools that end the turn; gives whether anything was asked.
    pub(super) fn checks_text(&mut self, cx: &mut Cx<'_>, text: &str) -> bool {
        let agent = self.agent_id();
        self.check(cx, Point::Answer, || {
            Some(Subject::Answer { text: text.to_owned(), agent, message: None })
        })
    }

    pub(super) fn check(
        &mut self,
        cx: &mut Cx<'_>,
        point: Point,
        subject: impl FnOnce() -> Option<Subject>,
    ) -> bool {
        let Some(first) = cx.ports.next_check(point, 0) else { return false };
        let Some(subject) = subject() else { return false };
        self.checking = Some(Box::new(Checking { subject }));
        self.issue(cx, Pending::Check(point, first));
        true
    }

    /// A check has judged, or failed to.
    pub(super) fn on_check(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        (point, check): (Point, u32),
        asked: Answered<CheckDecision>,
    ) -> Option<End> {
        let (name, verdict) = self.take_check(cx, (point, check), asked);
        let checking = self.checking.as_mut()?;
        match verdict {
            CheckVerdict::Accept | CheckVerdict::Waive { .. } => {}
            CheckVerdict::Amend(text) => checking.subject.amend(text),
            CheckVerdict::Continue { guidance } => match self.checking.take()?.subject {
                Subject::Answer { message: Some(answer), .. } => {
                    return self.answer_again(spec, cx, &answer, guidance);
                }
                Subject::Invalid { invalid, .. } => {
                    return self.after_invalid(spec, cx, *invalid, Some(guidance));
                }
                subject @ (Subject::Prompt(_)
                | Subject::Answer { .. }
                | Subject::End { .. }
                | Subject::Result { .. }) => {
                    self.checking = Some(Box::new(Checking { subject }));
                    return self.refuse(spec, cx, name, point, guidance);
                }
            },
            CheckVerdict::Ask(question) if point == Point::Result => {
                return self.result_asks(spec, cx, question);
            }
            CheckVerdict::Ask(question) => {
                self.question_asked(cx, question.text);
                return self.stop_now(spec, cx, StopReason::ClarificationRequired.into());
            }
            CheckVerdict::Refuse { reason } if point == Point::Result => {
                return self.result_refused(spec, cx, name, reason);
            }
            CheckVerdict::Refuse { reason } => return self.refuse(spec, cx, name, point, reason),
            CheckVerdict::Unfounded(thin) => {
                self.stop(Stop::new(StopReason::EvidenceDensityViolation, Evidence::Density(thin)));
                return self.settle(spec, cx);
            }
        }
        match cx.ports.next_check(point, check + 1) {
            Some(next) => {
                self.issue(cx, Pending::Check(point, next));
                None
            }
            None => self.accepted(spec, cx),
        }
    }

    /// Takes what a check has said, and tells it.
    pub(super) fn take_check(
        &self,
        cx: &mut Cx<'_>,
        (point, check): (Point, u32),
        asked: Answered<CheckDecision>,
    ) -> (GateName, CheckVerdict) {
        let judged = self.checking.as_ref().map(|checking| &checking.subject);
        let call = if let Some(Subject::Result { call, .. }) = judged { Some(call.id.clone()) } else { None };
        cx.take_check((check, point), call, None, asked)
    }

    fn refuse(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        guardrail: GateName,
        point: Point,
        reason: String,
    ) -> Option<End> {
        let stage = if point == Point::Prompt { GuardStage::Input } else { GuardStage::Output };
        let evidence = Evidence::Guardrail { guardrail, stage, reason: Some(reason) };
        self.stop(Stop::new(StopReason::GuardrailTriggered, evidence));
        self.settle(spec, cx)
    }

    /// The answer is kept and does not count; the model reads why, and answers again.
    pub(super) fn answer_again(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        answer: &Arc<Message>,
        guidance: String,
    ) -> Option<End> {
        self.append_answer(cx, Arc::clone(answer));
        answer_unrun(cx, answer, "the answer was not accepted");
        cx.append_one(guidance_message(guidance));
        self.iterate(spec, cx)
    }

    /// Every check accepts: what was checked counts.
    fn accepted(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        match self.checking.take()?.subject {
            Subject::Prompt(said) => {
                let at = self.prompt.iter().position(|message| is_said(message)).unwrap_or(0);
                self.prompt.retain(|message| !is_said(message));
                self.prompt.splice(at..at, said);
                self.prompt_passed = true;
                self.append_prompt(spec, cx)
            }
            Subject::Answer { message: Some(message), .. } => self.accept_answer(spec, cx, message),
            Subject::Answer { text, message: None, .. } => {
                self.answer = Some(text);
                self.complete(spec, cx)
            }
            Subject::Result { .. } => self.result_accepted(spec, cx),
            Subject::Invalid { invalid, .. } => self.after_invalid(spec, cx, *invalid, None),
            Subject::End { .. } => None,
        }
    }

    /// The turn stops while something is checked: an answer is told of, and comes into no transcript.
    pub(super) fn stop_checking(&mut self, cx: &mut Cx<'_>) {
        let Some(checking) = self.checking.take() else { return };
        if let Subject::Answer { message: Some(message), .. } = &checking.subject {
            self.emit_answer(cx, message);
        }
    }

    /// The turn stops before its prompt has passed: what somebody said comes into no transcript.
    pub(super) fn drop_unchecked_prompt(&mut self, cx: &Cx<'_>) {
        if cx.ports.next_check(Point::Prompt, 0).is_some() && !self.prompt_passed {
            self.prompt.retain(|message| !is_said(message));
        }
    }
}
