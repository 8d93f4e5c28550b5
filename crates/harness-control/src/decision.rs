//! Stop decisions.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use super::feedback::{Feedback, FeedbackKind};
use crate::contract::GapReport;

/// Decision after a turn.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    Display,
    EnumMessage,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum StopCode {
    /// Tools were called and the signal was not: the run continues without feedback.
    AgentWorking,
    /// No tool was called: the model is prompted to continue.
    ContinuationPrompt,
    /// The signal is missing.
    WorkCompleteNotCalled,
    /// The signal is still missing, and strict automation does not accept that.
    WorkCompleteRequiredStrict,
    /// The contract is not met.
    ContractNotSatisfied,
    /// The model's own report is not acceptable (strict automation).
    AcceptabilityNotMet,
    /// An audit failed, and no revision has answered it.
    ControlInvariantViolation,
    /// Work items are incomplete.
    WorkItemsIncomplete,
    /// A check of the application refused the end.
    AgentStopHookBlocked,
    /// The run makes no progress; the model is warned once.
    StallNudged,
    /// Every gate accepted the end, or an interactive run waived the signal.
    AgentDone,
    /// The turn limit is reached.
    MaxTurns,
    /// A limit on calls, tokens, cost or time is reached.
    Budget,
    /// The transcript no longer fits the model's context window.
    ContextOverflow,
    /// The run makes no progress.
    Stalled,
    /// The backend that runs the turn stopped before its end and can resume.
    BackendDeferred,
    /// The run waits for the user's answer or an approval.
    AwaitingInput,
    /// The turn failed.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl StopCode {
    /// Every code.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Meaning in one sentence.
    pub fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Whether the run stops.
    pub fn stops(self) -> bool {
        match self {
            Self::AgentDone
            | Self::MaxTurns
            | Self::Budget
            | Self::ContextOverflow
            | Self::Stalled
            | Self::BackendDeferred
            | Self::AwaitingInput
            | Self::Failed
            | Self::Cancelled => true,
            Self::AgentWorking
            | Self::ContinuationPrompt
            | Self::WorkCompleteNotCalled
            | Self::WorkCompleteRequiredStrict
            | Self::ContractNotSatisfied
            | Self::AcceptabilityNotMet
            | Self::ControlInvariantViolation
            | Self::WorkItemsIncomplete
            | Self::AgentStopHookBlocked
            | Self::StallNudged => false,
        }
    }
}

/// Outcome of a turn, as the stop decision sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The turn claims that the work is done.
    Done {
        /// Whether it called the signal.
        signal: bool,
    },
    /// The turn called tools without the signal.
    Working {
        /// Whether a tool did more than read the work items.
        productive: bool,
    },
    /// The turn called no tool, and continuation prompts are left.
    Silent,
    /// The turn ended the run: an error, a cancellation, a question, a limit of the run.
    Ended(StopCode),
}

/// Decision after a turn, with its reasons. Every turn has exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StopDecision {
    /// Code of the decision.
    pub code: StopCode,
    /// Whether the run stops.
    pub stops: bool,
    /// Number of the turn, starting at 1.
    pub turn: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Consecutive ends without the signal, including this one, if that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Rejections before an interactive run accepts such an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Whether the signal was waived.
    #[serde(default)]
    pub waived: bool,
    /// First unmet gate, when the run stops without being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unmet: Option<FeedbackKind>,
    /// Whether the contract is met; absent without a contract, or when it was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_verified: Option<bool>,
    /// Whether the work items are complete; absent when not required, or not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_items_verified: Option<bool>,
    /// Gaps of the contract, for `contract_not_satisfied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapReport>,
    /// Consecutive turns without progress, if that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_turns: Option<u32>,
    /// Feedback to the model at the start of the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

impl StopDecision {
    /// Creates a decision without details.
    pub fn new(code: StopCode, turn: u32, max_turns: u32) -> Self {
        Self {
            code,
            stops: code.stops(),
            turn,
            max_turns,
            retries: None,
            max_retries: None,
            waived: false,
            first_unmet: None,
            contract_verified: None,
            work_items_verified: None,
            gaps: None,
            stall_turns: None,
            feedback: None,
        }
    }
}
