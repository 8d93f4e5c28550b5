//! Report at the end of a controlled run.

use harness_core::{End, GateName};
use serde::{Deserialize, Serialize};

use super::decision::{StopCode, StopDecision};
use crate::contract::{Coverage, GapReport};
use crate::work::{Deliverable, ItemId, ItemStatus};

/// Status of a controlled run at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Every gate accepted, or an interactive run waived the signal.
    Done,
    /// A limit was reached.
    Exhausted,
    /// The run made no progress.
    Stalled,
    /// The run waits for the user's answer or an approval.
    AwaitingInput,
    /// A turn failed.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunStatus {
    /// Status after a decision. A decision that does not stop the run counts as exhausted.
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

    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Last judgement of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum GateJudgement {
    /// The gate accepted the end.
    Accepted,
    /// The gate was not satisfied, and the run ended nevertheless (interactive only).
    Waived,
    /// The gate was not satisfied.
    Refused,
    /// An earlier gate refused, or the turn did not claim that the work is done.
    NotAsked,
}

impl GateJudgement {
    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Judgement of a gate on the end, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateReport {
    /// Name of the gate: `signal`, `contract`, `acceptability`, `control_invariant`, `work_items`, or that of a
    /// check of the application.
    pub gate: GateName,
    /// Judgement of the gate.
    pub judgement: GateJudgement,
    /// Human-readable reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Numbers of the events it is based on, or a word such as `file_check`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl GateReport {
    /// Creates a report without reason and evidence.
    pub fn new(gate: impl Into<GateName>, judgement: GateJudgement) -> Self {
        Self { gate: gate.into(), judgement, why: None, evidence: Vec::new() }
    }
}

/// Report of the model with its completion signal: the arguments of `work_complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompletionReport {
    /// Summary of the work.
    pub summary: String,
    /// Deliverables in the model's words.
    pub deliverables: Vec<String>,
    /// Open questions.
    pub open_questions: Vec<String>,
    /// Confidence from 0 to 1, if reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

// The confidence is read from JSON, which has no NaN.
impl Eq for CompletionReport {}

/// Summary of the work items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ItemsSummary {
    /// Number of items.
    pub total: usize,
    /// Number of items that are done.
    pub done: usize,
    /// Number of skipped items.
    pub skipped: usize,
    /// Incomplete items, unfinished ones first.
    pub open: Vec<OpenItem>,
}

/// Incomplete work item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OpenItem {
    /// Id of the item.
    pub id: ItemId,
    /// Title of the item.
    pub title: String,
    /// Status of the item.
    pub status: ItemStatus,
    /// Whether it is closed and needs a revision.
    #[serde(default)]
    pub to_revise: bool,
}

/// Report at the end of a controlled run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ControlReport {
    /// Status of the run.
    pub status: RunStatus,
    /// Last decision.
    pub decision: StopDecision,
    /// Judgement of each gate, in order.
    pub gates: Vec<GateReport>,
    /// Coverage of the contract, with evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Gaps of the contract, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<GapReport>,
    /// Summary of the work items, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemsSummary>,
    /// Deliverables in the order of the items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliverables: Vec<Deliverable>,
    /// Report of the model with its signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionReport>,
    /// Consecutive turns with the same result, including the last; 1 after progress.
    #[serde(default)]
    pub same_turns: u32,
    /// Text of the last answer with text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl ControlReport {
    /// Reads the report of a run; `None` for turns, and for runs with a different control.
    pub fn of(end: &End) -> Option<Self> {
        end.control.as_ref()?.to().ok()
    }
}
