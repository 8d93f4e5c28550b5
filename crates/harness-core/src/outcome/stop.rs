//! Why a turn or a run ended: outcomes, stop reasons and their evidence.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AskReason, Question};
use crate::fault::Fault;
use crate::ids::{CallId, GateName, ToolName};
use crate::json::Json;
use crate::limits::{Limit, Reached};
use crate::message::{ApprovalRequest, Invalid, ToolCall};

/// How a turn or a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer was finalized, and every check of the end accepted it.
    Completed,
    /// The user has to answer a question first.
    NeedsClarification,
    /// Somebody has to approve something first.
    AwaitingApproval,
    /// Something ran out; the work can be taken up again.
    Deferred,
    /// It did not work; see the stop reason.
    Failed,
}

impl Outcome {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NeedsClarification => "needs_clarification",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Deferred => "deferred",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! stop_reasons {
    ($( $(#[doc = $doc:literal])+ $name:ident = $wire:literal => $outcome:ident, $evidence:literal; )*) => {
        /// Exactly why a turn or a run ended. The outcome follows from it, so the two cannot disagree.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum StopReason {
            $( $(#[doc = $doc])+ #[serde(rename = $wire)] $name, )*
        }

        impl StopReason {
            /// Every reason, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$name => $wire, )* }
            }

            /// The outcome that belongs to it.
            pub fn outcome(self) -> Outcome {
                match self { $( Self::$name => Outcome::$outcome, )* }
            }

            /// What it means, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $( Self::$name => concat!($($doc),+).trim_ascii(), )* }
            }

            /// What [`Stop::evidence`] holds for it.
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
    /// The model, or a hook, asked the user something.
    ClarificationRequired = "clarification_required" => NeedsClarification, "the transcript, or the tool result because of which a hook asks";
    /// Something waits for approval.
    ApprovalRequired = "approval_required" => AwaitingApproval, "the model's request, or the held calls";
    /// The permitted model calls are used up.
    MaxIterationsReached = "max_iterations_reached" => Deferred, "limit, value, ceiling";
    /// The permitted tool calls are used up.
    MaxToolCallsReached = "max_tool_calls_reached" => Deferred, "limit, value, ceiling";
    /// The permitted time is over.
    TimeoutReached = "timeout_reached" => Deferred, "limit, value, ceiling";
    /// The permitted money or tokens are used up.
    BudgetReached = "budget_reached" => Deferred, "limit, value, ceiling";
    /// The transcript no longer fits the model's context window.
    ContextOverflow = "context_overflow" => Deferred, "the model's fault, or limit, value, ceiling";
    /// The permitted turns of a run are used up.
    MaxTurnsReached = "max_turns_reached" => Deferred, "limit, value, ceiling";
    /// The run made no progress any more; new guidance can take it up again.
    Stalled = "stalled" => Deferred, "the transcript";
    /// The backend that runs the turn stopped before its end and can go on.
    BackendDeferred = "backend_deferred" => Deferred, "the backend's word, as a fault of the model";
    /// One tool gave the same result again and again.
    RedundantToolLoop = "redundant_tool_loop" => Failed, "the tool, or the tools of the cycle";
    /// The model asked for a tool that it was not offered.
    ToolUnavailable = "tool_unavailable" => Failed, "the tool";
    /// A tool failed, and the turn was told not to go on then.
    ToolErrorUnrecoverable = "tool_error_unrecoverable" => Failed, "the tool and the code of its error";
    /// The model declined.
    ModelRefused = "model_refused" => Failed, "the transcript";
    /// The model gave nothing usable too often.
    ModelInvalidResponse = "model_invalid_response" => Failed, "the invalid output";
    /// A part of the system failed; the evidence says which.
    RuntimeError = "runtime_error" => Failed, "the fault and the part that it came from";
    /// The answer claims more than its evidence holds.
    EvidenceDensityViolation = "evidence_density_violation" => Failed, "the claims and the length of the evidence";
    /// A policy refused a call in a way that ends the work.
    PolicyDenied = "policy_denied" => Failed, "the gate, the call, and why";
    /// A guardrail refused the prompt or the answer.
    GuardrailTriggered = "guardrail_triggered" => Failed, "the guardrail, what it looked at, and why";
    /// It was cancelled.
    Cancelled = "cancelled" => Failed, "who cancelled";
    /// The machine contradicted itself; the evidence holds what it knows. Please report it.
    InternalInvariant = "internal_invariant" => Failed, "what the machine knows";
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a guardrail looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardStage {
    /// The prompt.
    Input,
    /// The answer, or an output of no use.
    Output,
    /// The result of a call.
    Result,
}

impl GuardStage {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Result => "result",
        }
    }
}

impl fmt::Display for GuardStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An answer that claims more than its evidence holds.
///
/// ```
/// use harness_core::decide::CheckVerdict;
/// use harness_core::outcome::ThinEvidence;
///
/// let thin = ThinEvidence { tool_call_count: 1, output_chars: 12, claim_markers: vec!["date".to_owned()] };
/// let verdict = CheckVerdict::Unfounded(Box::new(thin));
/// # assert_eq!(verdict.as_str(), "unfounded");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinEvidence {
    /// The tool results that there were.
    pub tool_call_count: usize,
    /// Their length in UTF-16 units.
    pub output_chars: usize,
    /// The kinds of claims in a fixed order: `markdown_table`, `numbered_list`, `sha_like`, `date`, `owner_repo`.
    pub claim_markers: Vec<String>,
}

/// What a stop reason rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Evidence {
    /// The transcript alone.
    #[default]
    None,
    /// A limit: which, at which value, its ceiling.
    Limit(Reached),
    /// The model's invalid output.
    Invalid(Invalid),
    /// A tool, and the code of its error where it gave one.
    Tool {
        /// The tool.
        name: Arc<str>,
        /// The code of its error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Arc<str>>,
    },
    /// A part that failed.
    Fault(Fault),
    /// What waits for approval.
    Approval(ApprovalRequest),
    /// Calls that wait for approval, by id.
    Held(Vec<ApprovalRequest>),
    /// A gate that ended the work, and the call that it was asked about.
    Gate {
        /// The gate.
        gate: GateName,
        /// The call.
        call: CallId,
        /// What it calls.
        tool: ToolName,
        /// Why.
        reason: String,
    },
    /// A guardrail that was triggered.
    Guardrail {
        /// The guardrail.
        guardrail: GateName,
        /// What it looked at.
        stage: GuardStage,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The calls of a cycle that went round and round, in order.
    Loop {
        /// The tools.
        tools: Vec<Arc<str>>,
    },
    /// The claims of an answer for which there is too little evidence.
    Density(Box<ThinEvidence>),
    /// The result because of which the user is asked.
    ToolResult(Box<ToolEvidence>),
    /// Who cancelled.
    Cancelled {
        /// The canceller's word.
        by: Arc<str>,
    },
}

/// The result of a tool because of which the user is asked something.
///
/// ```
/// use harness_core::Evidence;
/// use harness_core::outcome::ToolEvidence;
///
/// fn asked_because_of(evidence: &Evidence) -> Option<&ToolEvidence> {
///     if let Evidence::ToolResult(result) = evidence { Some(result) } else { None }
/// }
/// # let _ = asked_because_of;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolEvidence {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool_name: ToolName,
    /// `success` or `error`.
    pub status: Cow<'static, str>,
    /// Why the user is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AskReason>,
    /// The host's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolEvidence {
    pub(crate) fn new(call: &ToolCall, is_error: bool, question: Question) -> Self {
        Self {
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            status: Cow::Borrowed(if is_error { "error" } else { "success" }),
            reason: question.reason,
            metadata: question.metadata,
        }
    }
}

impl Evidence {
    /// What stopped the work, in one sentence, where a gate or guardrail did.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Guardrail { guardrail, stage, reason } => {
                let which = match stage {
                    GuardStage::Input => "Input",
                    GuardStage::Output => "Output",
                    GuardStage::Result => "Result",
                };
                let reason = reason.as_ref().map(|reason| format!(" Reason: {reason}")).unwrap_or_default();
                Some(format!("{which} guardrail \"{guardrail}\" triggered.{reason}"))
            }
            Self::Gate { gate, tool, reason, .. } => {
                Some(format!("Gate \"{gate}\" refused \"{tool}\": {reason}"))
            }
            Self::None
            | Self::Limit(_)
            | Self::Invalid(_)
            | Self::Tool { .. }
            | Self::Fault(_)
            | Self::Approval(_)
            | Self::Held(_)
            | Self::Density(_)
            | Self::ToolResult(_)
            | Self::Loop { .. }
            | Self::Cancelled { .. } => None,
        }
    }
}

/// A stop reason with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stop {
    /// Exactly why.
    pub reason: StopReason,
    /// What that rests on.
    #[serde(default)]
    pub evidence: Evidence,
}

impl Stop {
    /// A stop with its evidence.
    pub fn new(reason: StopReason, evidence: Evidence) -> Self {
        Self { reason, evidence }
    }

    /// The outcome that belongs to the reason.
    pub fn outcome(&self) -> Outcome {
        self.reason.outcome()
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
