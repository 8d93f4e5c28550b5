//! Guardrails: checks of what comes in and of what goes out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BoxFuture;
use crate::decide::DecideCx;
use crate::ids::{AgentId, GateName};
use crate::json::Json;
use crate::message::Message;
use crate::outcome::Fault;
use crate::time::Millis;
use crate::turn::evidence::{SPARSE_EVIDENCE, ThinEvidence};

/// What a guardrail without an answer means: one that faults, panics, or takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnGuardrailError {
    /// It counts as triggered.
    #[default]
    Trip,
    /// It counts as passed, and an event tells of it.
    Pass,
}

/// How guardrails are asked: all at once; the first that is triggered ends the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GuardrailRules {
    /// What one without an answer means. Default triggered.
    pub on_error: OnGuardrailError,
    /// How long one may take; then it has no answer. Default 10 s; `None` leaves it to the turn's deadline.
    pub timeout: Option<Millis>,
}

impl Default for GuardrailRules {
    fn default() -> Self {
        Self { on_error: OnGuardrailError::default(), timeout: Some(Millis(10_000)) }
    }
}

/// What a guardrail found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Inspection {
    /// Whether it refuses what it looked at: the turn ends `guardrail_triggered`.
    pub triggered: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it noted, for the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// What an answer claims beyond its evidence: the turn ends `evidence_density_violation` with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thin_evidence: Option<Box<ThinEvidence>>,
}

impl Inspection {
    /// There is nothing against it.
    pub fn pass() -> Self {
        Self::default()
    }

    /// It is refused.
    pub fn trip(reason: impl Into<String>) -> Self {
        Self { triggered: true, reason: Some(reason.into()), ..Self::default() }
    }

    /// The answer claims more than its evidence holds.
    pub fn thin(found: ThinEvidence) -> Self {
        let reason = Some(SPARSE_EVIDENCE.to_owned());
        Self { triggered: true, reason, metadata: None, thin_evidence: Some(Box::new(found)) }
    }

    /// The same finding with what was noted.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// An answer that a guardrail looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GuardedAnswer {
    /// What the user would read.
    pub text: String,
    /// The agent that gives it.
    pub agent: AgentId,
    /// The model's message; `None` when the text is that of tools which ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<Message>>,
}

impl GuardedAnswer {
    /// An answer of an agent.
    pub fn new(text: impl Into<String>, agent: AgentId, message: Option<Arc<Message>>) -> Self {
        Self { text: text.into(), agent, message }
    }
}

/// Looks at a prompt before it enters the transcript and any model sees it.
///
/// Asked about what a turn begins with: what a user says, not what the machine says to itself, and not what
/// is steered in later. A prompt that is refused stays out of the transcript, so no later turn reads it.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::port::{InputGuardrail, Inspection};
/// use harness_core::decide::DecideCx;
/// use harness_core::{Fault, GateName};
///
/// struct NoCardNumbers;
///
/// impl InputGuardrail for NoCardNumbers {
///     fn name(&self) -> GateName {
///         "no-card-numbers".into()
///     }
///
///     async fn inspect(&self, prompt: &[Arc<Message>], _: &DecideCx) -> Result<Inspection, Fault> {
///         let digits = |message: &Arc<Message>| {
///             message.joined_text().chars().filter(char::is_ascii_digit).count()
///         };
///         if prompt.iter().any(|message| digits(message) >= 16) {
///             return Ok(Inspection::trip("it looks like a card number"));
///         }
///         Ok(Inspection::pass())
///     }
/// }
/// # let _ = NoCardNumbers;
/// ```
pub trait InputGuardrail: Send + Sync {
    /// The guardrail's name in events and results.
    fn name(&self) -> GateName;

    /// Looks at a prompt. `cx.log` is the transcript before it.
    ///
    /// # Errors
    /// A fault counts as refused, and so do a panic and no answer in time, unless
    /// [`GuardrailRules::on_error`] says otherwise.
    fn inspect(
        &self,
        prompt: &[Arc<Message>],
        cx: &DecideCx,
    ) -> impl Future<Output = Result<Inspection, Fault>> + Send;
}

/// The object-safe twin of [`InputGuardrail`].
pub trait DynInputGuardrail: Send + Sync {
    /// [`InputGuardrail::name`].
    fn guardrail_name(&self) -> GateName;

    /// [`InputGuardrail::inspect`], boxed.
    fn inspect_boxed<'a>(
        &'a self,
        prompt: &'a [Arc<Message>],
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<Inspection, Fault>>;
}

impl<G: InputGuardrail> DynInputGuardrail for G {
    fn guardrail_name(&self) -> GateName {
        self.name()
    }

    fn inspect_boxed<'a>(
        &'a self,
        prompt: &'a [Arc<Message>],
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<Inspection, Fault>> {
        Box::pin(self.inspect(prompt, cx))
    }
}

/// Looks at an answer before it is believed: a final answer, a question to the user, the text of tools that
/// end the turn.
///
/// An answer that is refused is in no transcript, no result and no event. But who listens to deltas may have
/// seen pieces of it while it came: show deltas only where that is acceptable, or show the finished answer
/// instead.
pub trait OutputGuardrail: Send + Sync {
    /// The guardrail's name in events and results.
    fn name(&self) -> GateName;

    /// Looks at an answer. `cx.log` is the transcript before it.
    ///
    /// # Errors
    /// As for [`InputGuardrail::inspect`].
    fn inspect(
        &self,
        answer: &GuardedAnswer,
        cx: &DecideCx,
    ) -> impl Future<Output = Result<Inspection, Fault>> + Send;
}

/// The object-safe twin of [`OutputGuardrail`].
pub trait DynOutputGuardrail: Send + Sync {
    /// [`OutputGuardrail::name`].
    fn guardrail_name(&self) -> GateName;

    /// [`OutputGuardrail::inspect`], boxed.
    fn inspect_boxed<'a>(
        &'a self,
        answer: &'a GuardedAnswer,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<Inspection, Fault>>;
}

impl<G: OutputGuardrail> DynOutputGuardrail for G {
    fn guardrail_name(&self) -> GateName {
        self.name()
    }

    fn inspect_boxed<'a>(
        &'a self,
        answer: &'a GuardedAnswer,
        cx: &'a DecideCx,
    ) -> BoxFuture<'a, Result<Inspection, Fault>> {
        Box::pin(self.inspect(answer, cx))
    }
}
