//! What a rejected end tells the model.

use serde::{Deserialize, Serialize};

/// Why the run goes on although the model was about to end it. Told once: as the message that begins the
/// next turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Feedback {
    /// The turn called no tool, and the run is not over.
    Continuation {
        /// Such turns in a row, this one included.
        count: u32,
        /// Such turns at most, before one counts as an end.
        max: u32,
    },
    /// The completion signal is missing.
    WorkCompleteMissing {
        /// Rejections in a row, this one included.
        retry: u32,
        /// Rejections at most, before an interactive run accepts.
        max_retries: u32,
    },
    /// The contract is not met.
    ContractGap {
        /// The requirements that are not met.
        unmet: Vec<String>,
        /// Questions that were not asked, or not answered.
        questions: Vec<String>,
        /// What each requirement is, and why it is not met.
        descriptions: Vec<String>,
    },
    /// The model's own report is not good enough (strict automation).
    Acceptability {
        /// What is not.
        faults: Vec<String>,
    },
    /// An audit failed, and nothing has answered it.
    ControlInvariant {
        /// The checks that failed.
        failed_checks: Vec<String>,
        /// The items that hold the audits.
        item_ids: Vec<String>,
    },
    /// Work items are left.
    WorkItemsIncomplete {
        /// Which.
        item_ids: Vec<String>,
    },
    /// A check of the application refused the end.
    HookBlock {
        /// Which gate.
        gate: String,
        /// Why.
        reason: String,
    },
    /// Nothing changes any more.
    StallNudge {
        /// Turns in a row that left the same behind.
        turns: u32,
    },
}

/// The kinds of [`Feedback`]; as the name of what is not met, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FeedbackKind {
    /// See [`Feedback::Continuation`].
    Continuation,
    /// See [`Feedback::WorkCompleteMissing`].
    WorkCompleteMissing,
    /// See [`Feedback::ContractGap`].
    ContractGap,
    /// See [`Feedback::Acceptability`].
    Acceptability,
    /// See [`Feedback::ControlInvariant`].
    ControlInvariant,
    /// See [`Feedback::WorkItemsIncomplete`].
    WorkItemsIncomplete,
    /// See [`Feedback::HookBlock`].
    HookBlock,
    /// See [`Feedback::StallNudge`].
    StallNudge,
}

impl FeedbackKind {
    /// All of them.
    pub(crate) const ALL: &[Self] = &[
        Self::Continuation,
        Self::WorkCompleteMissing,
        Self::ContractGap,
        Self::Acceptability,
        Self::ControlInvariant,
        Self::WorkItemsIncomplete,
        Self::HookBlock,
        Self::StallNudge,
    ];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continuation => "continuation",
            Self::WorkCompleteMissing => "work_complete_missing",
            Self::ContractGap => "contract_gap",
            Self::Acceptability => "acceptability",
            Self::ControlInvariant => "control_invariant",
            Self::WorkItemsIncomplete => "work_items_incomplete",
            Self::HookBlock => "hook_block",
            Self::StallNudge => "stall_nudge",
        }
    }
}

impl Feedback {
    /// Its kind.
    pub fn kind(&self) -> FeedbackKind {
        match self {
            Self::Continuation { .. } => FeedbackKind::Continuation,
            Self::WorkCompleteMissing { .. } => FeedbackKind::WorkCompleteMissing,
            Self::ContractGap { .. } => FeedbackKind::ContractGap,
            Self::Acceptability { .. } => FeedbackKind::Acceptability,
            Self::ControlInvariant { .. } => FeedbackKind::ControlInvariant,
            Self::WorkItemsIncomplete { .. } => FeedbackKind::WorkItemsIncomplete,
            Self::HookBlock { .. } => FeedbackKind::HookBlock,
            Self::StallNudge { .. } => FeedbackKind::StallNudge,
        }
    }
}
