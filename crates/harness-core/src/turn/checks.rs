//! What checks say, whatever they look at.

use std::ops::ControlFlow;

use super::stage::{Step, stop};
use super::state::TurnCx;
use crate::decide::{Answered, CheckDecision, CheckVerdict, Point, Subject};
use crate::event::EventKind;
use crate::ids::GateName;
use crate::machine::{Op, Pending};
use crate::outcome::{Evidence, GuardStage, Question, StopReason, ToolEvidence};

/// What follows what a check has said.
pub(super) enum Checked {
    /// The next check is asked.
    Asking,
    /// Every check accepts.
    Accepted,
    /// The model reads this, and answers again.
    Guidance(String),
}

impl TurnCx<'_> {
    /// Asks the next check of `point`, from a place on. Whether there is one.
    pub(super) fn ask_check(&mut self, point: Point, from: u32, subject: &Subject) -> bool {
        let Some(check) = self.cx.ports.next_check(point, from) else { return false };
        let subject = Box::new(subject.clone());
        self.cx.perform(Pending::Check(point, check), Op::Check { check, subject });
        true
    }

    /// A check has judged, or failed to: the next one is asked, or the turn stops.
    pub(super) fn on_check(
        &mut self,
        (point, check): (Point, u32),
        subject: &mut Subject,
        asked: Answered<CheckDecision>,
    ) -> Step<Checked> {
        let (name, verdict) = self.take_check((point, check), subject, asked);
        match verdict {
            CheckVerdict::Accept | CheckVerdict::Waive { .. } => {}
            CheckVerdict::Amend(text) => subject.amend(text),
            CheckVerdict::Continue { guidance } if is_of_model(subject) => {
                return ControlFlow::Continue(Checked::Guidance(guidance));
            }
            CheckVerdict::Continue { guidance: reason } | CheckVerdict::Refuse { reason } => {
                return stop(StopReason::GuardrailTriggered, guardrail(name, point, reason));
            }
            CheckVerdict::Ask(question) => return self.ask_user(subject, question),
            CheckVerdict::Unfounded(thin) => {
                return stop(StopReason::EvidenceDensityViolation, Evidence::Density(thin));
            }
        }
        let asking = self.ask_check(point, check + 1, subject);
        ControlFlow::Continue(if asking { Checked::Asking } else { Checked::Accepted })
    }

    /// Takes what a check has said, and emits it.
    pub(super) fn take_check(
        &mut self,
        (point, check): (Point, u32),
        subject: &Subject,
        asked: Answered<CheckDecision>,
    ) -> (GateName, CheckVerdict) {
        let call = if let Subject::Result { call, .. } = subject { Some(call.id.clone()) } else { None };
        self.cx.take_check((check, point), call, None, asked)
    }

    /// The turn ends with a question to the user. One about a result is not asked at a limit.
    fn ask_user(&mut self, subject: &Subject, mut question: Question) -> Step<Checked> {
        let about =
            if let Subject::Result { call, outcome, .. } = subject { Some((call, outcome)) } else { None };
        if about.is_some() {
            self.check_limits()?;
        }
        let text = std::mem::take(&mut question.text);
        self.cx.event(|| EventKind::ClarificationRequested { question: text.clone() });
        self.data.answer = Some(text.clone());
        self.data.question = Some(text);
        let evidence = about.map_or(Evidence::None, |(call, outcome)| {
            Evidence::ToolResult(Box::new(ToolEvidence::new(call, outcome.is_error(), question)))
        });
        stop(StopReason::ClarificationRequired, evidence)
    }
}

/// Whether the model can do better: it said what is checked.
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
