//! Guardrails: the prompt before anything sees it, the answer before anything believes it.
//!
//! What is being looked at is nowhere else yet: a prompt that is refused, or whose turn ends first, is in no
//! transcript, and neither is such an answer.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spec::TurnSpec;
use super::state::TurnState;
use crate::event::EventKind;
use crate::ids::GateName;
use crate::machine::PortSet;
use crate::machine::{Cx, Pending};
use crate::message::{Message, ModelOutput};
use crate::outcome::{End, Evidence, Fault, FaultSource, GuardStage, Stop, StopReason};
use crate::port::{GuardedAnswer, Inspection, OnGuardrailError};

/// What guardrails are looking at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Guarding {
    stage: GuardStage,
    outstanding: u32,
    /// The answer; `None` for the prompt.
    pub(super) answer: Option<Arc<GuardedAnswer>>,
}

fn names(ports: &PortSet, stage: GuardStage) -> &[GateName] {
    match stage {
        GuardStage::Input => &ports.input_guardrails,
        GuardStage::Output => &ports.output_guardrails,
    }
}

/// Whether it comes from outside: the machine's own guidance needs no guard.
fn is_said(message: &Message) -> bool {
    !matches!(message, Message::User(said) if said.origin.as_deref() == Some("hook"))
}

impl TurnState {
    /// Whether the prompt has to be looked at first; then it is asked about.
    pub(super) fn guards_prompt(&mut self, cx: &mut Cx<'_>) -> bool {
        let wanted = !cx.ports.input_guardrails.is_empty()
            && !self.prompt_passed
            && self.prompt.iter().any(|message| is_said(message));
        if wanted {
            self.guard(cx, GuardStage::Input, None);
        }
        wanted
    }

    /// Whether an answer has to be looked at first; then it is asked about.
    pub(super) fn guards_answer(&mut self, cx: &mut Cx<'_>, answer: &Arc<Message>) -> bool {
        if self.is_stopping() {
            return false;
        }
        let text = match answer.as_assistant().map(|message| message.output()) {
            Some(ModelOutput::FinalAnswer) => answer.joined_text(),
            Some(ModelOutput::Clarification { question }) => question,
            Some(
                ModelOutput::ToolRequest
                | ModelOutput::ApprovalRequest(_)
                | ModelOutput::Refusal { .. }
                | ModelOutput::Invalid(_),
            )
            | None => return false,
        };
        let answer = GuardedAnswer::new(text, self.agent_id(), Some(Arc::clone(answer)));
        self.guard(cx, GuardStage::Output, Some(Arc::new(answer)));
        true
    }

    /// Whether the text of tools that end the turn has to be looked at first; then it is asked about.
    pub(super) fn guards_text(&mut self, cx: &mut Cx<'_>, text: &str) -> bool {
        if cx.ports.output_guardrails.is_empty() {
            return false;
        }
        let answer = GuardedAnswer::new(text, self.agent_id(), None);
        self.guard(cx, GuardStage::Output, Some(Arc::new(answer)));
        true
    }

    fn guard(&mut self, cx: &mut Cx<'_>, stage: GuardStage, answer: Option<Arc<GuardedAnswer>>) {
        let outstanding = u32::try_from(names(cx.ports, stage).len()).unwrap_or(u32::MAX);
        self.guarding = Some(Box::new(Guarding { stage, outstanding, answer }));
        for guardrail in 0..outstanding {
            self.issue(cx, Pending::Guard(stage, guardrail));
        }
    }

    pub(super) fn on_guarded(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        (stage, guardrail): (GuardStage, u32),
        result: Result<Inspection, Fault>,
    ) -> Option<End> {
        let name =
            names(cx.ports, stage).get(guardrail as usize).cloned().unwrap_or_else(|| "guardrail".into());
        let found = result.unwrap_or_else(|fault| {
            let failed = format!("the guardrail failed: {}", fault.message);
            match cx.ports.guardrails.on_error {
                OnGuardrailError::Trip => Inspection::trip(failed),
                OnGuardrailError::Pass => {
                    let fault = Fault::new(
                        FaultSource::Guardrail,
                        Arc::clone(&fault.code),
                        format!("`{name}`: {failed}"),
                    );
                    cx.event(|| EventKind::PartFailed { fault });
                    Inspection::pass()
                }
            }
        });
        let Inspection { triggered, reason, metadata, thin_evidence } = found;
        let (guardrail, told) = (name.clone(), reason.as_deref().map(Arc::from));
        cx.event(|| EventKind::GuardrailDecided {
            guardrail,
            stage: Cow::Borrowed(stage.as_str()),
            decision: Cow::Borrowed(if triggered { "triggered" } else { "pass" }),
            reason: told,
            metadata,
        });
        if triggered {
            let stop = if let Some(thin) = thin_evidence {
                Stop::new(StopReason::EvidenceDensityViolation, Evidence::Density(thin))
            } else {
                let evidence = Evidence::Guardrail { guardrail: name, stage, reason };
                Stop::new(StopReason::GuardrailTriggered, evidence)
            };
            self.stop.get_or_insert(stop);
            self.abort(cx);
        }
        if self.is_stopping() {
            return self.settle(spec, cx);
        }
        self.guard_on(spec, cx)
    }

    /// Goes on when all guardrails have passed.
    fn guard_on(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> Option<End> {
        let guarding = self.guarding.as_mut()?;
        guarding.outstanding = guarding.outstanding.saturating_sub(1);
        if guarding.outstanding > 0 {
            return None;
        }
        let passed = self.guarding.take()?;
        let Some(answer) = passed.answer else {
            self.prompt_passed = true;
            return self.append_prompt(spec, cx);
        };
        if let Some(message) = &answer.message {
            return self.believe(spec, cx, Arc::clone(message));
        }
        self.answer = Some(answer.text.clone());
        self.complete(spec, cx)
    }

    /// The turn stops while something is being looked at: an answer is dropped.
    pub(super) fn stop_guarding(&mut self, cx: &mut Cx<'_>) {
        let Some(guarding) = self.guarding.take() else { return };
        if let Some(message) = guarding.answer.as_ref().and_then(|answer| answer.message.as_ref()) {
            self.tell_answer(cx, message);
        }
    }

    /// The turn ends: a prompt that guardrails have not let pass is dropped.
    pub(super) fn drop_unguarded_prompt(&mut self, cx: &Cx<'_>) {
        if !cx.ports.input_guardrails.is_empty() && !self.prompt_passed {
            self.prompt.retain(|message| !is_said(message));
        }
    }
}
