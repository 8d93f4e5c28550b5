//! Outcomes and stop reasons of turns and runs.

use serde::{Deserialize, Serialize};

use super::Evidence;
use crate::limits::{Limit, Reached};

crate::wire_enum! {
    /// Outcome of a turn or a run.
    pub enum Outcome {
        /// Finished with an answer that every check of the end accepted.
        Completed = "completed",
        /// A question to the user is pending.
        NeedsClarification = "needs_clarification",
        /// An approval is pending.
        AwaitingApproval = "awaiting_approval",
        /// Stopped by a limit; the work can be resumed.
        Deferred = "deferred",
        /// Failed; see the stop reason.
        Failed = "failed",
    }
}

/// Treatment of a check of the end that does not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// After the permitted nudges the end is accepted, and the result reports it.
    #[default]
    Interactive,
    /// The run continues until the check accepts or a limit is reached.
    StrictAutomation,
}

macro_rules! stop_reasons {
    ($( $(#[doc = $doc:literal])+ $name:ident = $wire:literal => $outcome:ident, $evidence:literal; )*) => {
        crate::wire_enum! {
            /// Reason of the end of a turn or a run. It determines the outcome, so the two cannot disagree.
            #[non_exhaustive]
            pub enum StopReason { $( $(#[doc = $doc])+ $name = $wire, )* }
        }

        impl StopReason {
            /// Returns the outcome of the reason.
            pub fn outcome(self) -> Outcome {
                match self { $( Self::$name => Outcome::$outcome, )* }
            }

            /// Describes the reason in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $( Self::$name => concat!($($doc),+).trim_ascii(), )* }
            }

            /// Describes the content of [`Stop::evidence`].
            pub fn evidence(self) -> &'static str {
                match self { $( Self::$name => $evidence, )* }
            }
        }
    };
}

stop_reasons! {
    /// The model gave its answer.
    AnswerFinalized = "answer_finalized" => Completed, "the transcript";
    /// The answer was accepted although a completion signal was missing (interactive mode only).
    CompletionWaived = "completion_waived" => Completed, "the waivers of the end";
    /// The model or a check asked the user a question.
    ClarificationRequired = "clarification_required" => NeedsClarification, "the transcript, or the tool result that raised the question";
    /// An approval is pending.
    ApprovalRequired = "approval_required" => AwaitingApproval, "the model's request, or the held calls";
    /// The limit of model calls was reached.
    MaxIterationsReached = "max_iterations_reached" => Deferred, "limit, value, ceiling";
    /// The limit of tool calls was reached.
    MaxToolCallsReached = "max_tool_calls_reached" => Deferred, "limit, value, ceiling";
    /// The time limit was reached.
    TimeoutReached = "timeout_reached" => Deferred, "limit, value, ceiling";
    /// The limit of cost or tokens was reached.
    BudgetReached = "budget_reached" => Deferred, "limit, value, ceiling, or the model's error for a budget of more than the run";
    /// The transcript exceeds the model's context window.
    ContextOverflow = "context_overflow" => Deferred, "the model's error, or limit, value, ceiling";
    /// The limit of turns was reached.
    MaxTurnsReached = "max_turns_reached" => Deferred, "limit, value, ceiling";
    /// The run made no progress; it can be resumed with new guidance.
    Stalled = "stalled" => Deferred, "the transcript";
    /// The backend that runs the turn stopped early and can continue.
    BackendDeferred = "backend_deferred" => Deferred, "the backend's message, as an error of the model";
    /// Equal tool calls gave equal results repeatedly.
    RedundantToolLoop = "redundant_tool_loop" => Failed, "the tool, or the tools of the cycle";
    /// The model called an unknown tool.
    ToolUnavailable = "tool_unavailable" => Failed, "the tool";
    /// A tool failed, and the settings end the turn then.
    ToolErrorUnrecoverable = "tool_error_unrecoverable" => Failed, "the tool and its error code";
    /// The model refused.
    ModelRefused = "model_refused" => Failed, "the transcript";
    /// The model gave too many invalid responses.
    ModelInvalidResponse = "model_invalid_response" => Failed, "the invalid response";
    /// No answer matched the output schema.
    InvalidOutput = "invalid_output" => Failed, "the last mismatch";
    /// A part of the system failed; the evidence names it.
    RuntimeError = "runtime_error" => Failed, "the error and its part";
    /// The answer claims more than its evidence supports.
    EvidenceDensityViolation = "evidence_density_violation" => Failed, "the claims and the length of the evidence";
    /// A policy denied a call and ended the run.
    PolicyDenied = "policy_denied" => Failed, "the gate, the call, and the reason";
    /// A guardrail rejected the prompt or the answer.
    GuardrailTriggered = "guardrail_triggered" => Failed, "the guardrail, its subject, and the reason";
    /// The run was cancelled.
    Cancelled = "cancelled" => Failed, "the canceller";
    /// The machine contradicted itself. Please report it.
    InternalInvariant = "internal_invariant" => Failed, "the state of the machine";
}

impl StopReason {
    /// Returns a sentence for the user. With `can_retry` it announces a retry of the product, where that may help, instead
    /// of advice.
    pub fn user_message(self, can_retry: bool) -> &'static str {
        match (self, can_retry) {
            (Self::AnswerFinalized, _) => "That is my answer; I have nothing to add.",
            (Self::CompletionWaived, _) => {
                "That is my answer, but I could not confirm that every part of the work is done."
            }
            (Self::ClarificationRequired, _) => "I need a little more detail before I can continue.",
            (Self::ApprovalRequired, _) => "I need your approval before I can continue.",
            (Self::MaxIterationsReached | Self::MaxToolCallsReached, false) => {
                "I used up my steps before I was done. Please rephrase the request or split it into smaller parts."
            }
            (Self::MaxIterationsReached | Self::MaxToolCallsReached, true) => {
                "I used up my steps before I was done. I will try again another way."
            }
            (Self::TimeoutReached, false) => "This took too long. Please ask for something narrower.",
            (Self::TimeoutReached, true) => "This took too long. I will try again.",
            (Self::BudgetReached, _) => "The budget is used up, so I had to stop.",
            (Self::ContextOverflow, _) => {
                "Our conversation has become too long for me to continue. Please start a new one, or ask me to shorten it."
            }
            (Self::MaxTurnsReached, _) => {
                "I reached the limit of rounds for this. Ask me to continue if I should."
            }
            (Self::Stalled, _) => "I am not getting any further with this. A hint from you would help.",
            (Self::BackendDeferred, _) => "I had to stop early. I can continue from here.",
            (Self::RedundantToolLoop, false) => {
                "I kept making the same calls without learning anything new. Please rephrase what you need."
            }
            (Self::RedundantToolLoop, true) => {
                "I kept making the same calls without learning anything new. I will try again another way."
            }
            (Self::ToolUnavailable, _) => {
                "A tool that I need is not available just now. Please try again shortly."
            }
            (Self::ToolErrorUnrecoverable, _) => "A tool that I need failed. Please try again shortly.",
            (Self::ModelRefused, _) => "I cannot help with this request.",
            (Self::ModelInvalidResponse | Self::InvalidOutput, false) => {
                "I could not produce a usable reply. Please rephrase the request."
            }
            (Self::ModelInvalidResponse | Self::InvalidOutput, true) => {
                "I could not produce a usable reply. I will try again."
            }
            (Self::RuntimeError, _) => "Something went wrong on my side. Please try again shortly.",
            (Self::EvidenceDensityViolation, _) => {
                "I found too little to answer this reliably. Please be more specific about what you want to know."
            }
            (Self::PolicyDenied, _) => "I am not allowed to do what this would need.",
            (Self::GuardrailTriggered, _) => "This request or its answer is not allowed here.",
            (Self::Cancelled, _) => "This request was cancelled.",
            (Self::InternalInvariant, _) => {
                "Something went wrong inside the program. Please report it, and try again."
            }
        }
    }
}

/// Stop reason with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Stop {
    /// Stop reason.
    pub reason: StopReason,
    /// Evidence for the reason.
    #[serde(default)]
    pub evidence: Evidence,
}

impl Stop {
    /// Creates a stop.
    pub fn new(reason: StopReason, evidence: Evidence) -> Self {
        Self { reason, evidence }
    }

    /// Returns the outcome of the reason.
    pub fn outcome(&self) -> Outcome {
        self.reason.outcome()
    }

    /// Whether a budget that several runs share is used up, such as that of a user: no further call is answered. A limit
    /// of the run itself has [`Evidence::Limit`].
    ///
    /// ```
    /// use harness_core::{Evidence, Fault, FaultSource, Stop, StopReason};
    ///
    /// let refused = Fault::new(FaultSource::Model, "budget_reached", "the budget `users` is used up");
    /// assert!(Stop::new(StopReason::BudgetReached, Evidence::Fault(refused)).is_over_shared_budget());
    /// assert!(!Stop::from(StopReason::BudgetReached).is_over_shared_budget());
    /// ```
    pub fn is_over_shared_budget(&self) -> bool {
        self.reason == StopReason::BudgetReached && matches!(self.evidence, Evidence::Fault(_))
    }
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Self { reason, evidence: Evidence::None }
    }
}

impl From<Reached> for Stop {
    fn from(reached: Reached) -> Self {
        Self { reason: reached.limit.into(), evidence: Evidence::Limit(reached) }
    }
}

impl From<Limit> for StopReason {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Iterations => Self::MaxIterationsReached,
            Limit::ToolCalls => Self::MaxToolCallsReached,
            Limit::Elapsed => Self::TimeoutReached,
            Limit::Tokens | Limit::Cost => Self::BudgetReached,
            Limit::Turns => Self::MaxTurnsReached,
            Limit::Context => Self::ContextOverflow,
        }
    }
}
