//! Errors of steps.

use std::sync::Arc;

use harness_core::limits::Reached;
use harness_core::{CallId, GateName, Json, StopReason, ToolName};

use crate::channel::ChannelError;

/// Error of a step: why it ended without an output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum FlowError {
    /// The work of the step failed.
    #[error("step `{step}` failed{}: {cause}", if *.retries_exhausted { " at every attempt" } else { "" })]
    StepFailed {
        /// Id of the step.
        step: Arc<str>,
        /// Cause of the failure.
        cause: String,
        /// Whether a retry policy made further attempts.
        retries_exhausted: bool,
    },
    /// The model refused.
    #[error("the model refused at step `{step}`: {refusal}")]
    ModelRefused {
        /// Id of the step.
        step: Arc<str>,
        /// Text of the refusal.
        refusal: String,
    },
    /// The model's answer does not have the required form.
    #[error("step `{step}`: invalid model answer: {problem}")]
    #[strum(serialize = "model_parse_error")]
    ModelParse {
        /// Id of the step.
        step: Arc<str>,
        /// Text of the answer.
        raw: String,
        /// Problem found in it.
        problem: String,
    },
    /// A turn stopped without an answer.
    #[error("step `{step}`: the turn stopped with `{reason}`{}", .message.as_deref().map(|m| format!(": {m}")).unwrap_or_default())]
    TurnStopped {
        /// Id of the step.
        step: Arc<str>,
        /// Stop reason of the turn.
        reason: StopReason,
        /// Details, if there are any.
        message: Option<String>,
    },
    /// Some paths of a parallel step failed.
    #[error("step `{step}`: {} paths succeeded, {} failed: {}", .succeeded.len(), .failed.len(), first(.failed))]
    ForkPartial {
        /// Id of the step.
        step: Arc<str>,
        /// Outputs of successful paths by step id, in order.
        succeeded: Vec<(Arc<str>, Json)>,
        /// Errors of the other paths; a path that was not started is cancelled.
        failed: Vec<(Arc<str>, FlowError)>,
    },
    /// The step was cancelled.
    #[error("cancelled: {reason}")]
    Cancelled {
        /// Reason of the cancellation.
        reason: Arc<str>,
    },
    /// The step would exceed a limit.
    #[error("step `{step}`: the limit of {} {} is reached at {}", .reached.ceiling, .reached.limit, .reached.value)]
    BudgetExceeded {
        /// Id of the step.
        step: Arc<str>,
        /// Limit and value.
        reached: Reached,
    },
    /// A gate or the approver denied a call.
    #[error("step `{step}`: the call of `{tool}` was denied: {message}")]
    #[strum(serialize = "steering_denied")]
    Denied {
        /// Id of the step.
        step: Arc<str>,
        /// Name of the tool.
        tool: ToolName,
        /// Reason of the denial.
        message: String,
    },
    /// A gate halted the execution at a call. The step is neither retried nor skipped.
    #[error("step `{step}`: gate `{gate}` halted the execution at the call of `{tool}`: {reason}")]
    #[strum(serialize = "policy_denied")]
    Halted {
        /// Id of the step.
        step: Arc<str>,
        /// Name of the tool.
        tool: ToolName,
        /// Name of the gate.
        gate: GateName,
        /// Reason of the halt.
        reason: String,
    },
    /// A call needs a decision. Run the flow again, restored if necessary, when an approver is available.
    #[error("step `{step}`: the call of `{tool}` waits for approval: {message}")]
    AwaitingApproval {
        /// Id of the step.
        step: Arc<str>,
        /// Name of the tool.
        tool: ToolName,
        /// Id of the call, equal for every attempt.
        call: CallId,
        /// Reason of the hold.
        message: String,
    },
    /// An earlier process started a call that must not be repeated, and did not record its result.
    #[error(
        "step `{step}`: an earlier process called `{tool}` and did not record the result: check the effect, then \
             clear the execution or declare the tool idempotent"
    )]
    OutcomeUnknown {
        /// Id of the step.
        step: Arc<str>,
        /// Name of the tool.
        tool: ToolName,
    },
    /// A loop reached its round limit.
    #[error("loop `{step}` reached its limit of {most} rounds")]
    LoopExhausted {
        /// Id of the step.
        step: Arc<str>,
        /// Maximum number of rounds.
        most: u64,
    },
    /// A channel operation failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The execution is already running.
    #[error("the execution is already running: wait for its end")]
    Busy,
}

fn first(failed: &[(Arc<str>, FlowError)]) -> String {
    let real = failed.iter().find(|(_, error)| !error.is_cancelled());
    real.or(failed.first()).map_or_else(|| "no path".to_owned(), |(_, error)| error.to_string())
}

impl FlowError {
    pub(super) fn failed(step: &Arc<str>, cause: impl Into<String>) -> Self {
        Self::StepFailed { step: Arc::clone(step), cause: cause.into(), retries_exhausted: false }
    }

    /// Stable code.
    pub fn kind(&self) -> &'static str {
        if let Self::Channel(error) = self { error.kind() } else { self.into() }
    }

    /// Whether the step was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled { .. } | Self::Channel(ChannelError::Cancelled { .. }))
    }

    /// Whether an immediate retry may succeed.
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

    /// Marks the failure as that of all attempts.
    pub(super) fn exhausted(self) -> Self {
        let Self::StepFailed { step, cause, .. } = self else { return self };
        Self::StepFailed { step, cause, retries_exhausted: true }
    }
}
