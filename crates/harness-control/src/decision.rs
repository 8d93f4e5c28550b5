//! What is decided when a turn is over.

use serde::{Deserialize, Serialize};

use super::feedback::{Feedback, FeedbackKind};
use crate::contract::GapReport;

macro_rules! codes {
    ($( $(#[doc = $doc:literal])+ $name:ident = $wire:literal => $stops:literal; )*) => {
        /// What was decided when a turn was over.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum StopCode {
            $( $(#[doc = $doc])+ #[serde(rename = $wire)] $name, )*
        }

        impl StopCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$name => $wire, )* }
            }

            /// What it means, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $( Self::$name => concat!($($doc),+).trim_ascii(), )* }
            }

            /// Whether the run stops.
            pub fn stops(self) -> bool {
                match self { $( Self::$name => $stops, )* }
            }
        }
    };
}

codes! {
    /// Tools were called and the signal was not: the run goes on without a word.
    AgentWorking = "agent_working" => false;
    /// No tool was called: the model is told to go on.
    ContinuationPrompt = "continuation_prompt" => false;
    /// The signal is missing.
    WorkCompleteNotCalled = "work_complete_not_called" => false;
    /// The signal is still missing, and strict automation does not accept that.
    WorkCompleteRequiredStrict = "work_complete_required_strict" => false;
    /// The contract is not met.
    ContractNotSatisfied = "contract_not_satisfied" => false;
    /// The model's own report is not good enough (strict automation).
    AcceptabilityNotMet = "acceptability_not_met" => false;
    /// An audit failed, and nothing has answered it.
    ControlInvariantViolation = "control_invariant_violation" => false;
    /// Work items are left.
    WorkItemsIncomplete = "work_items_incomplete" => false;
    /// A check of the application refused the end.
    AgentStopHookBlocked = "agent_stop_hook_blocked" => false;
    /// Nothing changed any more; the model is told once.
    StallNudged = "stall_nudged" => false;
    /// Every gate accepted the end, or an interactive run waived the signal.
    AgentDone = "agent_done" => true;
    /// The permitted turns are used up.
    MaxTurns = "max_turns" => true;
    /// Permitted calls, tokens, money or time are used up.
    Budget = "budget" => true;
    /// The transcript no longer fits the model's context window.
    ContextOverflow = "context_overflow" => true;
    /// Nothing changed any more.
    Stalled = "stalled" => true;
    /// The backend that runs the turn stopped before its end and can go on.
    BackendDeferred = "backend_deferred" => true;
    /// The user, or somebody who approves, has to say something first.
    AwaitingInput = "awaiting_input" => true;
    /// The turn failed.
    Failed = "failed" => true;
    /// The run was cancelled.
    Cancelled = "cancelled" => true;
}

impl std::fmt::Display for StopCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// It claims that the work is done.
    Done {
        /// Whether by the signal.
        signal: bool,
    },
    /// It called tools and gave no signal: the work goes on.
    Working {
        /// Whether it did more than look at the work items.
        productive: bool,
    },
    /// It called no tool and gave no signal, and prompts to go on are left.
    Silent,
    /// It ended in a way that ends the run: a failure, a cancellation, a question, a limit of the run.
    Ended(StopCode),
}

/// What was decided when a turn was over, and on what that rests. There is exactly one for each turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StopDecision {
    /// What.
    pub code: StopCode,
    /// Whether the run stops.
    pub stops: bool,
    /// The turn, from 1.
    pub turn: u32,
    /// Turns at most.
    pub max_turns: u32,
    /// Ends without the signal in a row, this one included; absent when that is not the matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How many of those are rejected before an interactive run accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Whether the signal was waived.
    #[serde(default)]
    pub waived: bool,
    /// The first gate that is not satisfied, when the run stops without being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unmet: Option<FeedbackKind>,
    /// Whether the contract is met; absent when there is none, or when it was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_verified: Option<bool>,
    /// Whether the work items are complete; absent when that is not required, or was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_items_verified: Option<bool>,
    /// What of the contract is not met, for `contract_not_satisfied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapReport>,
    /// Turns in a row that left the same behind, when that is the matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_turns: Option<u32>,
    /// What the model is told at the beginning of the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

impl StopDecision {
    /// A decision with nothing beside it.
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
