//! What the end of a controlled run reports.

use harness_core::{End, GateName};
use serde::{Deserialize, Serialize};

use super::decision::{StopCode, StopDecision};
use crate::contract::{Coverage, GapReport};
use crate::work::{Deliverable, ItemId, ItemStatus};

/// How a controlled run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Every gate accepted, or an interactive run waived the signal.
    Done,
    /// A limit was reached.
    Exhausted,
    /// Nothing changed any more.
    Stalled,
    /// The user, or somebody who approves, has to say something first.
    AwaitingInput,
    /// A turn failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// The status that follows from a decision. One that does not stop the run counts as cut off.
    pub fn of(code: StopCode) -> Self {
        match code {
            StopCode::AgentDone => Self::Done,
            StopCode::Stalled => Self::Stalled,
            StopCode::AwaitingInput => Self::AwaitingInput,
            StopCode::Failed => Self::Failed,
            StopCode::Cancelled => Self::Cancelled,
            StopCode::MaxTurns
            | StopCode::Budget
            | StopCode::ContextOverflow
            | StopCode::BackendDeferred
            | StopCode::AgentWorking
            | StopCode::ContinuationPrompt
            | StopCode::WorkCompleteNotCalled
            | StopCode::WorkCompleteRequiredStrict
            | StopCode::ContractNotSatisfied
            | StopCode::AcceptabilityNotMet
            | StopCode::ControlInvariantViolation
            | StopCode::WorkItemsIncomplete
            | StopCode::AgentStopHookBlocked
            | StopCode::StallNudged => Self::Exhausted,
        }
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Exhausted => "exhausted",
            Self::Stalled => "stalled",
            Self::AwaitingInput => "awaiting_input",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a gate said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateJudgement {
    /// It accepted the end.
    Accepted,
    /// It was not satisfied, and the run ended all the same (interactive only).
    Waived,
    /// It was not satisfied.
    Refused,
    /// An earlier gate refused first, or nobody claimed that the work was done.
    NotAsked,
}

impl GateJudgement {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Waived => "waived",
            Self::Refused => "refused",
            Self::NotAsked => "not_asked",
        }
    }
}

/// What one gate said about the end, and on which evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateReport {
    /// The gate: `signal`, `contract`, `acceptability`, `control_invariant`, `work_items`, or the name of a
    /// check of the application.
    pub gate: GateName,
    /// What it said.
    pub judgement: GateJudgement,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The events that it rests on, by their numbers; a word where there is none (`file_check`, …).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl GateReport {
    /// What a gate said, without reason and evidence.
    pub fn new(gate: impl Into<GateName>, judgement: GateJudgement) -> Self {
        Self { gate: gate.into(), judgement, why: None, evidence: Vec::new() }
    }
}

/// What the model reports when it says that the work is done: the arguments of `work_complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompletionReport {
    /// What was done.
    pub summary: String,
    /// What is handed over, in the model's words.
    pub deliverables: Vec<String>,
    /// What is open.
    pub open_questions: Vec<String>,
    /// How sure the model is, 0 to 1; absent when it did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

// The confidence comes out of JSON, which has nothing that differs from itself.
impl Eq for CompletionReport {}

/// Where the work items stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ItemsSummary {
    /// All of them.
    pub total: usize,
    /// Done.
    pub done: usize,
    /// Skipped.
    pub skipped: usize,
    /// What is left, the unfinished first.
    pub open: Vec<OpenItem>,
}

/// A work item that is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OpenItem {
    /// Its name.
    pub id: ItemId,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    pub status: ItemStatus,
    /// Whether it is done, and a revision is asked for.
    #[serde(default)]
    pub to_revise: bool,
}

/// What the end of a controlled run reports beside its stop reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ControlReport {
    /// How it ended.
    pub status: RunStatus,
    /// The last decision.
    pub decision: StopDecision,
    /// What each gate said about the end, in order.
    pub gates: Vec<GateReport>,
    /// What of the contract is met, and on which evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// What of the contract is not met, when something is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<GapReport>,
    /// Where the work items stand, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemsSummary>,
    /// What is handed over, in the order of the items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliverables: Vec<Deliverable>,
    /// What the model reported with its signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionReport>,
    /// Turns in a row, the last one included, that left the same behind; 1 when the last one changed
    /// something.
    #[serde(default)]
    pub same_turns: u32,
    /// The text of the last answer that has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl ControlReport {
    /// What the control of a run reported at its end; `None` for turns, and for runs under another control.
    pub fn of(end: &End) -> Option<Self> {
        end.control.as_ref()?.to().ok()
    }
}
