//! Feedback of a rejected end.

use serde::{Deserialize, Serialize};

/// Reason for which a run continues although the model wanted to end it: the first message of the next turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
#[strum_discriminants(
    name(FeedbackKind),
    doc = "Kind of [`Feedback`], also the name of an unmet gate.",
    derive(PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "snake_case"),
    strum(serialize_all = "snake_case"),
    non_exhaustive
)]
pub enum Feedback {
    /// The turn called no tool, and the run is not over.
    #[strum_discriminants(doc = "See [`Feedback::Continuation`].")]
    Continuation {
        /// Consecutive turns of this kind, including this one.
        count: u32,
        /// Maximum number of such turns, before one counts as an end.
        max: u32,
    },
    /// The completion signal is missing.
    #[strum_discriminants(doc = "See [`Feedback::WorkCompleteMissing`].")]
    WorkCompleteMissing {
        /// Consecutive rejections, including this one.
        retry: u32,
        /// Maximum number of rejections, before an interactive run accepts.
        max_retries: u32,
    },
    /// The contract is not met.
    #[strum_discriminants(doc = "See [`Feedback::ContractGap`].")]
    ContractGap {
        /// Ids of unmet requirements.
        unmet: Vec<String>,
        /// Questions that were not asked or not answered.
        questions: Vec<String>,
        /// Description of each unmet requirement, with the reason.
        descriptions: Vec<String>,
    },
    /// The model's own report is not acceptable (strict automation).
    #[strum_discriminants(doc = "See [`Feedback::Acceptability`].")]
    Acceptability {
        /// Problems of the report.
        faults: Vec<String>,
    },
    /// An audit failed, and no revision has answered it.
    #[strum_discriminants(doc = "See [`Feedback::ControlInvariant`].")]
    ControlInvariant {
        /// Names of failed checks.
        failed_checks: Vec<String>,
        /// Ids of the items that hold the audits.
        item_ids: Vec<String>,
    },
    /// Work items are incomplete.
    #[strum_discriminants(doc = "See [`Feedback::WorkItemsIncomplete`].")]
    WorkItemsIncomplete {
        /// Ids of the items.
        item_ids: Vec<String>,
    },
    /// A check of the application refused the end.
    #[strum_discriminants(doc = "See [`Feedback::HookBlock`].")]
    HookBlock {
        /// Name of the check.
        gate: String,
        /// Reason of the refusal.
        reason: String,
    },
    /// The run makes no progress.
    #[strum_discriminants(doc = "See [`Feedback::StallNudge`].")]
    StallNudge {
        /// Consecutive turns without progress.
        turns: u32,
    },
}

impl FeedbackKind {
    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Feedback {
    /// Kind of the feedback.
    pub fn kind(&self) -> FeedbackKind {
        self.into()
    }
}
