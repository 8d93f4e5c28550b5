//! Going on behind a model step that broke off.
//!
//! What a step had said before it broke off stays in the transcript, so that the next request goes on from it. That
//! request ends with one more user message, which stands in no transcript.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::flow::answer_unrun;
use super::spec::TurnSpec;
use super::state::{AfterDrain, TurnState};
use crate::event::EventKind;
use crate::machine::Cx;
use crate::message::{AssistantMessage, FinishReason, Message, UserMessage};
use crate::outcome::{End, Evidence, Fault, FaultSource, Stop, StopReason};
use crate::port::{ModelFault, ModelFaultCode};
use crate::transcript::{Plan, Span};

/// What the request behind a step that broke off ends with.
const CONTINUE: &str = "continue";

/// What a turn knows of the steps behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovering {
    /// Steps in a row that broke off.
    attempts: u32,
    /// What the next request ends with.
    nudge: Option<Arc<Message>>,
}

impl Recovering {
    /// The view of the next request, which is `plan`'s and ends with what the model is told.
    pub(super) fn view(&self, plan: Option<&Plan>) -> Option<Plan> {
        let Some(nudge) = &self.nudge else { return plan.cloned() };
        let whole = [Span::Kept(0..usize::MAX)];
        let spans = plan.map_or(&whole[..], |plan| &plan.spans).iter().cloned();
        Some(Plan { spans: spans.chain([Span::Made(Arc::from([Arc::clone(nudge)]))]).collect() })
    }
}

impl TurnState {
    /// An iteration begins: says what its request ends with.
    pub(super) fn prepare_recovery(&mut self) {
        let nudge = || Arc::new(Message::User(UserMessage::text(CONTINUE).from_origin("hook")));
        self.recovering.nudge = (self.recovering.attempts > 0).then(nudge);
    }

    /// Whether the turn goes on behind this fault.
    pub(super) fn recovers_from(&self, spec: &TurnSpec, fault: &ModelFault) -> bool {
        let on_its_way = match fault.code {
            ModelFaultCode::Provider
            | ModelFaultCode::Network
            | ModelFaultCode::Timeout
            | ModelFaultCode::Protocol => fault.http_status.is_none(),
            ModelFaultCode::AuthFailed
            | ModelFaultCode::CreditsExhausted
            | ModelFaultCode::RateLimited
            | ModelFaultCode::ModelNotFound
            | ModelFaultCode::InvalidRequest
            | ModelFaultCode::ContextLengthExceeded
            | ModelFaultCode::Recording
            | ModelFaultCode::Configuration
            | ModelFaultCode::Cancelled
            | ModelFaultCode::Deferred
            | ModelFaultCode::BudgetReached
            | ModelFaultCode::Unknown => false,
        };
        on_its_way && self.recovering.attempts < spec.continue_broken
    }

    /// Goes on behind a step that broke off.
    pub(super) fn recover(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Option<End> {
        self.recovering.attempts = self.recovering.attempts.saturating_add(1);
        let (reason, attempt, most) = (reason.into(), self.recovering.attempts, spec.continue_broken);
        cx.event(|| EventKind::ModelStepContinued { reason, attempt, most });
        self.drain(spec, cx, AfterDrain::Iterate)
    }

    /// Looks at the answer that is the last message of the transcript: breaks with what follows when it broke off.
    pub(super) fn check_whole(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>) -> ControlFlow<Option<End>> {
        let Some(answer) = cx.log.last().cloned() else { return ControlFlow::Continue(()) };
        let Some(message) = answer.as_assistant() else { return ControlFlow::Continue(()) };
        let Some((code, problem)) = broken(message) else {
            self.recovering.attempts = 0;
            return ControlFlow::Continue(());
        };
        answer_unrun(cx, &answer, "the answer that asked for it is incomplete");
        if self.recovering.attempts < spec.continue_broken {
            return ControlFlow::Break(self.recover(spec, cx, code));
        }
        let evidence = Evidence::Fault(Fault::new(FaultSource::Model, code, problem));
        ControlFlow::Break(self.stop_now(spec, cx, Stop::new(StopReason::RuntimeError, evidence)))
    }
}

/// Takes an answer that broke off into the transcript; its calls are answered (law 1).
pub(super) fn append_partial(cx: &mut Cx<'_>, partial: Arc<Message>, why: &str) {
    let partial = super::call_ids::unique(cx.log, partial);
    cx.append_one(Arc::clone(&partial));
    answer_unrun(cx, &partial, why);
}

/// What had come of an answer whose model failed, as a message to go on from: one that is marked as failed is left out
/// of requests. `None` when it says nothing.
pub(super) fn kept_partial(mut partial: AssistantMessage) -> Option<Arc<Message>> {
    if matches!(partial.stop_reason, FinishReason::Error | FinishReason::Aborted) {
        partial.stop_reason = FinishReason::Other("incomplete".to_owned());
    }
    (!partial.content.is_empty()).then(|| Arc::new(Message::Assistant(partial)))
}

/// Why an answer is no whole one.
fn broken(answer: &AssistantMessage) -> Option<(&'static str, String)> {
    let incomplete =
        || Some(("incomplete_answer", format!("the answer is incomplete: {}", answer.stop_reason.as_str())));
    match answer.stop_reason {
        FinishReason::Length | FinishReason::Paused | FinishReason::ContentFilter => incomplete(),
        FinishReason::Stop | FinishReason::ToolUse => {
            let says_nothing = answer.content.iter().all(|block| block.as_text() == Some(""));
            says_nothing.then(|| ("empty_answer", "the answer is empty".to_owned()))
        }
        FinishReason::Error | FinishReason::Aborted | FinishReason::Refusal | FinishReason::Other(_) => None,
    }
}
