//! Going on behind a model step that broke off, and behind too many rounds of tools (source 002).
//!
//! What a step had said before it broke off stays in the transcript, so that the next request goes on from it. That
//! request ends with one more user message, which stands in no transcript.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::flow::answer_unrun;
use super::spec::TurnSpec;
use super::state::{AfterDrain, TurnState};
use crate::event::EventKind;
use crate::limits::{Limit, Reached};
use crate::machine::Cx;
use crate::message::{AssistantMessage, FinishReason, Message, UserMessage};
use crate::outcome::{End, Evidence, Fault, FaultSource, Stop, StopReason};
use crate::port::{ModelFault, ModelFaultCode};
use crate::transcript::{Plan, Span};

/// How a turn goes on behind model steps that broke off, and behind too many rounds of tools.
///
/// A step broke off when its answer is incomplete (stop reason `length`, `paused` or `contentFilter`), when it is
/// empty, or when the model failed on its way: with the code `provider`, `network`, `timeout` or `protocol`, and
/// without an HTTP status. A refused request is for wrappers that wait and try again. Its usage counts, its calls do
/// not run, and the limits of the turn bound it as they bound every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Recovery {
    /// Steps in a row that may break off and are gone on from; the next one ends the turn `runtime_error`. Default 3.
    pub attempts: u32,
    /// Rounds of tools in one turn; from the next one on each request ends with the message. Default 32.
    pub rounds: u32,
    /// Rounds beyond those; then the turn ends `max_iterations_reached`. Default 3.
    pub rounds_beyond: u32,
    /// What the message says. Default `continue`.
    pub message: String,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { attempts: 3, rounds: 32, rounds_beyond: 3, message: "continue".to_owned() }
    }
}

impl Recovery {
    /// Rounds of tools in one turn at most.
    fn most_rounds(&self) -> u32 {
        self.rounds.saturating_add(self.rounds_beyond)
    }

    fn nudge(&self) -> Arc<Message> {
        Arc::new(Message::User(UserMessage::text(self.message.as_str()).from_origin("hook")))
    }
}

/// What a turn knows of the steps behind it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Recovering {
    /// Steps in a row that broke off.
    attempts: u32,
    /// Rounds of tools.
    rounds: u32,
    /// What the next request ends with.
    nudge: Option<Arc<Message>>,
}

impl Recovering {
    /// The view of the next request, which is `plan`'s and ends with what the model is told.
    #[inline]
    pub(super) fn view(&self, plan: Option<&Plan>) -> Option<Plan> {
        let Some(nudge) = &self.nudge else { return plan.cloned() };
        let whole = [Span::Kept(0..usize::MAX)];
        let spans = plan.map_or(&whole[..], |plan| &plan.spans).iter().cloned();
        Some(Plan { spans: spans.chain([Span::Made(Arc::from([Arc::clone(nudge)]))]).collect() })
    }
}

impl TurnState {
    /// An iteration begins: says what its request ends with, or that there were too many rounds.
    pub(super) fn prepare_recovery(&mut self, recovery: &Recovery, cx: &mut Cx<'_>) -> Result<(), Reached> {
        let (rounds, most) = (self.recovering.rounds, recovery.most_rounds());
        if rounds >= most {
            let (value, ceiling) = (u64::from(rounds), u64::from(most));
            return Err(Reached::new(Limit::Iterations, value, ceiling));
        }
        let beyond = rounds >= recovery.rounds;
        if beyond && self.recovering.attempts == 0 {
            let attempt = rounds - recovery.rounds + 1;
            tell(cx, Cow::Borrowed("tool_rounds"), attempt, recovery.rounds_beyond);
        }
        let goes_on = beyond || self.recovering.attempts > 0;
        self.recovering.nudge = goes_on.then(|| recovery.nudge());
        Ok(())
    }

    /// Whether the turn goes on behind this fault.
    pub(super) fn recovers_from(&self, spec: &TurnSpec, fault: &ModelFault) -> bool {
        let Some(recovery) = &spec.recovery else { return false };
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
        on_its_way && self.recovering.attempts < recovery.attempts && !self.is_stopping()
    }

    /// Goes on behind a step that broke off.
    pub(super) fn recover(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Option<End> {
        self.recovering.attempts = self.recovering.attempts.saturating_add(1);
        let most = spec.recovery.as_ref().map_or(0, |recovery| recovery.attempts);
        tell(cx, reason.into(), self.recovering.attempts, most);
        self.drain(spec, cx, AfterDrain::Iterate)
    }

    /// Looks at the answer that is the last message of the transcript: breaks with what follows when it broke off.
    pub(super) fn check_whole(
        &mut self,
        recovery: &Recovery,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
    ) -> ControlFlow<Option<End>> {
        let Some(answer) = cx.log.last().cloned() else { return ControlFlow::Continue(()) };
        let Some(message) = answer.as_assistant() else { return ControlFlow::Continue(()) };
        let Some((code, problem)) = broken(message) else {
            self.recovering.attempts = 0;
            self.recovering.rounds += u32::from(message.asks_for_tools());
            return ControlFlow::Continue(());
        };
        answer_unrun(cx, &answer, "the answer that asked for it is incomplete");
        if self.recovering.attempts < recovery.attempts {
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

fn tell(cx: &mut Cx<'_>, reason: Cow<'static, str>, attempt: u32, most: u32) {
    cx.event(|| EventKind::ModelStepContinued { reason, attempt, most });
}
