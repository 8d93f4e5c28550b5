//! Run records.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::outcome::{TotalUsage, Waiver};
use harness_core::{AgentId, Json, ModelName, Outcome, StopReason, ThreadId};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::entries::{
    ApprovalEntry, ControlEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, ModelCallEntry,
    Note, PolicyDecision, PromptSnapshot, RequestFingerprint, StopJudgement, ToolCallEntry, is_zero,
};
use super::prompts::Prompts;
use super::subagents::SubagentRun;
use crate::error::{RecordError, RecordFile};

/// `kind` of a record file.
pub const RECORD_KIND: &str = "harness.run_record";

/// Version of records that are written, and the newest that is read.
pub const RECORD_VERSION: u32 = 1;

/// Coarse status of a run; `outcome` is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// An answer was finalized, and every check accepted the end.
    Completed,
    /// A limit, a question, a pending approval or an error.
    Failed,
    /// In progress: the record is of [`RecordFold::progress`](super::RecordFold::progress), without an end.
    Running,
}

/// Redaction of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RedactionNote {
    /// Paths with replaced values.
    pub paths: Vec<String>,
    /// Whether a custom redactor processed context and items.
    pub custom: bool,
    /// Reason of a failed redaction, after which the record contains no context, items and texts of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Record of one run, made by [`RecordFold`](super::RecordFold): camelCase JSON, `kind` `harness.run_record`, `version`
/// 1. `turn` in an entry is the number of the model request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunRecord {
    /// [`RECORD_KIND`].
    pub kind: String,
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// Id of the run.
    pub run_id: String,
    /// Id of the thread, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// Start time.
    pub started_at: String,
    /// End time.
    pub completed_at: String,
    /// Duration in milliseconds.
    pub elapsed_ms: u64,
    /// Coarse status.
    pub status: RunStatus,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Stop reason.
    pub stop_reason: StopReason,
    /// Evidence of the stop reason.
    pub evidence: Json,
    /// Error code, after an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// Human-readable error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Identity of the configuration.
    pub candidate: Candidate,
    /// Active agent at the end.
    pub agent_name: AgentId,
    /// Name of the provider, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// Last requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// User messages of the prompt, trimmed and joined by blank lines.
    pub question: String,
    /// Answer for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Redacted context at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_snapshot: Option<Json>,
    /// Whether the context was redacted or removed.
    pub context_redacted: bool,
    /// Redaction of the record.
    #[serde(default)]
    pub redaction: RedactionNote,
    /// Messages: earlier ones of the thread, the prompt, and those that the run added.
    pub items: Vec<Arc<Message>>,
    /// Number of `items` before the first model request.
    pub input_item_count: u64,
    /// Number of `items` of earlier runs.
    pub earlier_item_count: u64,
    /// Number of earlier messages that are missing in `items`, because the recorder did not receive them. Hashes do
    /// not cover them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_item_count: u64,
    /// Hash of the instructions of each model request.
    pub prompt_snapshots: Vec<PromptSnapshot>,
    /// Hashes of each model request.
    pub request_fingerprints: Vec<RequestFingerprint>,
    /// What the model received in each request; `None` in records without prompts and after a failed redaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Prompts>,
    /// Model calls.
    pub model_calls: Vec<ModelCallEntry>,
    /// Tool calls in the order of their ends.
    pub tool_calls: Vec<ToolCallEntry>,
    /// Runs of the sub-agents that tool calls started, in the order of their starts; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<SubagentRun>,
    /// Number of further sub-agents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_sub_agents: u64,
    /// Handoffs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffEntry>,
    /// Policy decisions.
    pub policy_decisions: Vec<PolicyDecision>,
    /// Proposals that wait for approval, in the form of the policy gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended_proposals: Vec<Json>,
    /// Guardrail decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrail_decisions: Vec<GuardrailDecision>,
    /// Decisions of other gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_decisions: Vec<GateDecision>,
    /// Decisions of approvers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalEntry>,
    /// Judgements of checks about the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_judgements: Vec<StopJudgement>,
    /// Waivers of checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<Waiver>,
    /// Reached limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<LimitEntry>,
    /// Limits in force, as given by the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Json>,
    /// Reports of the run's control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_events: Vec<ControlEntry>,
    /// Other events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Total usage and cost.
    pub usage: TotalUsage,
    /// Data of the caller; by convention, that of the harness is under `harness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// Header of a record.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    version: Option<u64>,
}

impl RunRecord {
    /// Parses a record; `name` replaces the path in messages.
    ///
    /// # Errors
    /// [`RecordError::Version`] for a newer version, [`RecordError::Invalid`] for an invalid text.
    pub fn from_text(name: impl Into<std::path::PathBuf>, text: &str) -> Result<Self, RecordError> {
        let path = name.into();
        let broken = |reason: String| RecordError::invalid(RecordFile::Record, &path, reason);
        let head: Head = serde_json::from_str(text).map_err(|fault| broken(fault.to_string()))?;
        if head.kind.as_deref() != Some(RECORD_KIND) {
            let said = head.kind.map_or_else(|| "none".to_owned(), |kind| format!("`{kind}`"));
            return Err(broken(format!("expected the `kind` `{RECORD_KIND}`, found {said}")));
        }
        match head.version {
            Some(version) if version > u64::from(RECORD_VERSION) => {
                let (file, supported) = (RecordFile::Record, RECORD_VERSION);
                return Err(RecordError::Version { file, path: path.clone(), found: version, supported });
            }
            Some(_) => {}
            None => return Err(broken("missing `version`".to_owned())),
        }
        serde_json::from_str(text).map_err(|fault| broken(fault.to_string()))
    }

    /// Serializes the record as one line of JSON.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_json(&self) -> Result<Json, serde_json::Error> {
        Json::of(self)
    }

    /// Items of this run, without those of earlier runs.
    pub fn own_items(&self) -> &[Arc<Message>] {
        let from = usize::try_from(self.earlier_item_count).unwrap_or(usize::MAX);
        self.items.get(from..).unwrap_or_default()
    }
}
