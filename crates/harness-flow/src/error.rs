//! How a step can end without an output.

use std::sync::Arc;

use harness_core::limits::Reached;
use harness_core::{CallId, GateName, Json, StopReason, ToolName};

use crate::channel::ChannelError;

/// How a step can end without an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// Its work did not succeed.
    #[error("step `{step}` failed{}: {cause}", if *.retries_exhausted { " at every attempt" } else { "" })]
    StepFailed {
        /// The step.
        step: Arc<str>,
        /// Why.
        cause: String,
        /// Whether it was tried more than once.
        retries_exhausted: bool,
    },
    /// The model declined.
    #[error("the model declined at step `{step}`: {refusal}")]
    ModelRefused {
        /// The step.
        step: Arc<str>,
        /// What it said.
        refusal: String,
    },
    /// The model's answer is not what the step asked for.
    #[error("step `{step}`: the answer cannot be read: {problem}")]
    ModelParse {
        /// The step.
        step: Arc<str>,
        /// The answer.
        raw: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A turn stopped without an answer.
    #[error("step `{step}`: the turn stopped with `{reason}`{}", .message.as_deref().map(|m| format!(": {m}")).unwrap_or_default())]
    TurnStopped {
        /// The step.
        step: Arc<str>,
        /// Why.
        reason: StopReason,
        /// What is known of it.
        message: Option<String>,
    },
    /// Some paths of a parallel step did not succeed.
    #[error("step `{step}`: {} paths succeeded, {} did not: {}", .succeeded.len(), .failed.len(), first(.failed))]
    ForkPartial {
        /// The step.
        step: Arc<str>,
        /// The paths that did, by the ids of their steps, in their order.
        succeeded: Vec<(Arc<str>, Json)>,
        /// The paths that did not; those that never began are cancelled.
        failed: Vec<(Arc<str>, FlowError)>,
    },
    /// It is not wanted any more.
    #[error("cancelled: {reason}")]
    Cancelled {
        /// Why.
        reason: Arc<str>,
    },
    /// It would pass a limit.
    #[error("step `{step}`: the limit of {} {} is reached at {}", .reached.ceiling, .reached.limit, .reached.value)]
    BudgetExceeded {
        /// The step.
        step: Arc<str>,
        /// The limit.
        reached: Reached,
    },
    /// A gate or a person refused a call.
    #[error("step `{step}`: the call of `{tool}` was refused: {message}")]
    Denied {
        /// The step.
        step: Arc<str>,
        /// The tool.
        tool: ToolName,
        /// Why.
        message: String,
    },
    /// A gate ended the execution instead of allowing a call. Nothing tries the step again or skips it.
    #[error("step `{step}`: gate `{gate}` halted the execution at the call of `{tool}`: {reason}")]
    Halted {
        /// The step.
        step: Arc<str>,
        /// The tool.
        tool: ToolName,
        /// The gate.
        gate: GateName,
        /// Why.
        reason: String,
    },
    /// A call waits for a decision. Run the flow again (restored, if need be) when somebody can decide.
    #[error("step `{step}`: the call of `{tool}` waits for approval: {message}")]
    AwaitingApproval {
        /// The step.
        step: Arc<str>,
        /// The tool.
        tool: ToolName,
        /// The call, the same at every attempt.
        call: CallId,
        /// Why it waits.
        message: String,
    },
    /// A call had begun when an earlier process ended, and must not be made twice.
    #[error(
        "step `{step}`: `{tool}` was called before, and it is not known what came of it: find out, then clear \
             the execution or declare the tool idempotent"
    )]
    OutcomeUnknown {
        /// The step.
        step: Arc<str>,
        /// The tool.
        tool: ToolName,
    },
    /// A loop went round more often than it may.
    #[error("loop `{step}` has gone round {most} times and is not done")]
    LoopExhausted {
        /// The step.
        step: Arc<str>,
        /// The bound.
        most: u64,
    },
    /// A channel did not do what was asked of it.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The execution runs already.
    #[error("the execution runs already: wait for its end")]
    Busy,
}

fn first(failed: &[(Arc<str>, FlowError)]) -> String {
    let real = failed.iter().find(|(_, error)| !error.is_cancelled());
    real.or(failed.first()).map_or_else(|| "there is none".to_owned(), |(_, error)| error.to_string())
}

impl FlowError {
    pub(super) fn failed(step: &Arc<str>, cause: impl Into<String>) -> Self {
        Self::StepFailed { step: Arc::clone(step), cause: cause.into(), retries_exhausted: false }
    }

    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::StepFailed { .. } => "step_failed",
            Self::ModelRefused { .. } => "model_refused",
            Self::ModelParse { .. } => "model_parse_error",
            Self::TurnStopped { .. } => "turn_stopped",
            Self::ForkPartial { .. } => "fork_partial",
            Self::Cancelled { .. } => "cancelled",
            Self::BudgetExceeded { .. } => "budget_exceeded",
            Self::Denied { .. } => "steering_denied",
            Self::Halted { .. } => "policy_denied",
            Self::AwaitingApproval { .. } => "awaiting_approval",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::LoopExhausted { .. } => "loop_exhausted",
            Self::Channel(error) => error.kind(),
            Self::Busy => "busy",
        }
    }

    /// Whether it ended because it is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::Channel(ChannelError::Cancelled { .. }))
    }

    /// Whether the same work may succeed when it is tried again at once.
    pub fn may_be_retried(&self) -> bool {
        match self {
            Self::StepFailed { .. }
            | Self::ModelRefused { .. }
            | Self::ModelParse { .. }
            | Self::TurnStopped { .. }
            | Self::ForkPartial { .. }
            | Self::LoopExhausted { .. }
            | Self::Channel(ChannelError::Timeout { .. }) => true,
            Self::Cancelled { .. }
            | Self::BudgetExceeded { .. }
            | Self::Denied { .. }
            | Self::Halted { .. }
            | Self::AwaitingApproval { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Channel(_)
            | Self::Busy => false,
        }
    }

    /// The same failure, after all attempts.
    pub(super) fn exhausted(self) -> Self {
        let Self::StepFailed { step, cause, .. } = self else { return self };
        Self::StepFailed { step, cause, retries_exhausted: true }
    }
}
