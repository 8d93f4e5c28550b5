//! Checks of prompts, results and answers.

use std::ops::ControlFlow;

use super::stage::{Step, stop};
use super::state::{TurnCx, invariant};
use crate::decide::{Answered, CheckDecision, CheckVerdict, Point, Subject};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::machine::{Op, Pending};
use crate::outcome::{Evidence, GuardStage, Question, StopReason, ToolEvidence};

/// The step after the decision of a check.
pub(super) enum Checked {
    /// The next check runs.
    Running,
    /// Every check accepted this.
    Accepted(Subject),
    /// The model receives guidance about this, and answers again.
    Guidance(Subject, String),
    /// The answer has the wrong form: the model receives the reason, and answers again within the limit.
    Invalid(Subject, String),
}

impl TurnCx<'_> {
    /// Starts the checks at `point`. Returns whether there is one; only then the subject is made.
    pub(super) fn start_checks(&mut self, point: Point, subject: impl FnOnce(&Self) -> Subject) -> bool {
        if self.cx.ports.next_check(point, 0).is_none() {
            return false;
        }
        let subject = subject(self);
        self.next_check(point, 0, subject).is_none()
    }

    /// Runs the next check at or after `from`. Returns the subject when there is none.
    fn next_check(&mut self, point: Point, from: u32, subject: Subject) -> Option<Subject> {
        let Some(check) = self.cx.ports.next_check(point, from) else { return Some(subject) };
        self.data.checked = Some(Box::new(subject.clone()));
        self.cx.perform(Pending::Check(point, check), Op::Check { check, subject: Box::new(subject) });
        None
    }

    /// Takes the decision of a check, or its failure: the next one runs, or the turn stops.
    pub(super) fn on_check(
        &mut self,
        (point, check): (Point, u32),
        answered: Answered<CheckDecision>,
    ) -> Step<Checked> {
        let (name, verdict) = self.take_check((point, check), answered);
        let guidance = match (verdict, self.data.checked.as_deref_mut()) {
            (CheckVerdict::Accept | CheckVerdict::Waive { .. }, _) | (CheckVerdict::Amend(_), None) => None,
            (CheckVerdict::Amend(text), Some(subject)) => {
                subject.amend(text);
                None
            }
            (CheckVerdict::Continue { guidance }, Some(subject)) if is_of_model(subject) => Some(guidance),
            (CheckVerdict::Continue { guidance: reason } | CheckVerdict::Refuse { reason }, _) => {
                return stop(StopReason::GuardrailTriggered, guardrail(name, point, reason));
            }
            (CheckVerdict::Invalid { reason }, _) => {
                return match self.data.checked.take() {
                    Some(subject) => ControlFlow::Continue(Checked::Invalid(*subject, reason)),
                    None => invariant("a check without a subject replied"),
                };
            }
            (CheckVerdict::Ask(question), _) => return self.ask_user(question),
            (CheckVerdict::Unfounded(thin), _) => {
                return stop(StopReason::EvidenceDensityViolation, Evidence::Density(thin));
            }
        };
        let Some(subject) = self.data.checked.take() else {
            return invariant("a check without a subject replied");
        };
        ControlFlow::Continue(match guidance {
            Some(guidance) => Checked::Guidance(*subject, guidance),
            None => self.next_check(point, check + 1, *subject).map_or(Checked::Running, Checked::Accepted),
        })
    }

    pub(super) fn take_check(
        &mut self,
        (point, check): (Point, u32),
        answered: Answered<CheckDecision>,
    ) -> (GateName, CheckVerdict) {
        let call = match self.data.checked.as_deref() {
            Some(Subject::Result { call, .. }) => Some(call.id.clone()),
            Some(_) | None => None,
        };
        self.cx.take_check((check, point), call, None, answered)
    }

    /// Ends the turn with a question to the user. A limit comes before a question about a result.
    fn ask_user(&mut self, mut question: Question) -> Step<Checked> {
        let subject = self.data.checked.take().map(|subject| *subject);
        if let Some(Subject::Result { .. }) = subject {
            self.check_limits()?;
        }
        let text = std::mem::take(&mut question.text);
        self.cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
        self.data.answer = Some(text.clone());
        self.data.question = Some(text);
        let evidence = if let Some(Subject::Result { call, outcome, .. }) = &subject {
            Evidence::ToolResult(Box::new(ToolEvidence {
                call_id: call.id.clone(),
                tool_name: call.name.clone(),
                status: if outcome.is_error() { "error" } else { "success" }.into(),
                reason: question.reason,
                metadata: question.metadata,
            }))
        } else {
            Evidence::None
        };
        self.data.checked = subject.map(Box::new);
        stop(StopReason::ClarificationRequired, evidence)
    }
}

/// Whether the model wrote the subject, and can answer again.
fn is_of_model(subject: &Subject) -> bool {
    matches!(subject, Subject::Answer { message: Some(_), .. } | Subject::Invalid { .. })
}

fn guardrail(guardrail: GateName, point: Point, reason: String) -> Evidence {
    let stage = match point {
        Point::Prompt => GuardStage::Input,
        Point::Result => GuardStage::Result,
        Point::Answer | Point::Invalid | Point::End | Point::Prepare | Point::Call | Point::Handoff => {
            GuardStage::Output
        }
    };
    Evidence::Guardrail { guardrail, stage, reason: Some(reason) }
}
