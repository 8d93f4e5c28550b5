//! The record of one run, and its form as a file.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::outcome::{TotalUsage, Waiver};
use harness_core::{AgentId, Json, ModelName, Outcome, StopReason};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::entries::{
    ApprovalEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, ModelCallEntry, Note,
    PolicyDecision, PromptSnapshot, RequestFingerprint, StopJudgement, ToolCallEntry,
};
use crate::error::RecordError;

/// The `kind` of a record file.
pub const RECORD_KIND: &str = "harness.run_record";

/// The version that is written, and the newest that is read.
pub const RECORD_VERSION: u32 = 1;

/// How a run ended, in two words. `outcome` says it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// An answer was finalized and every check of the end accepted it.
    Completed,
    /// Anything else: a limit, a question, a pending approval, a fault.
    Failed,
}

/// What was taken out of a record before it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RedactionNote {
    /// The paths whose values were replaced.
    pub paths: Vec<String>,
    /// Whether a redactor of the caller's own looked at context and items.
    pub custom: bool,
    /// Why redaction failed. Then the record holds no context, no items and no other text of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The record of one run. Made by [`RecordFold`](super::RecordFold); camelCase JSON, `kind`
/// `harness.run_record`, `version` 1.
///
/// It is data: what a candidate did, not a handle on it. `turn` in an entry is the running number of the model
/// request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunRecord {
    /// [`RECORD_KIND`].
    pub kind: String,
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// The run.
    pub run_id: String,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub completed_at: String,
    /// From start to end.
    pub elapsed_ms: u64,
    /// How it ended, in two words.
    pub status: RunStatus,
    /// How it ended.
    pub outcome: Outcome,
    /// Exactly why.
    pub stop_reason: StopReason,
    /// What that rests on.
    pub evidence: Json,
    /// The code of what went wrong, when something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// What went wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What was run.
    pub candidate: Candidate,
    /// The agent that was active at the end.
    pub agent_name: AgentId,
    /// The provider, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// The model that was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// What the user said: the user messages of the prompt, trimmed, joined by blank lines.
    pub question: String,
    /// The text for the user at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// The context as it was at the start, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_snapshot: Option<Json>,
    /// Whether something was taken out of the context, or the whole of it.
    pub context_redacted: bool,
    /// What was taken out.
    #[serde(default)]
    pub redaction: RedactionNote,
    /// The messages: earlier ones of the conversation, the prompt, and all that the run added.
    pub items: Vec<Arc<Message>>,
    /// How many of `items` there were before the first model request.
    pub input_item_count: u64,
    /// How many of them belong to earlier runs.
    pub earlier_item_count: u64,
    /// Earlier messages of the conversation that are not in `items`, because whoever made the record did not
    /// have them. The hashes of messages do not cover them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_item_count: u64,
    /// The instructions of each model request.
    pub prompt_snapshots: Vec<PromptSnapshot>,
    /// Each model request as hashes.
    pub request_fingerprints: Vec<RequestFingerprint>,
    /// The model calls.
    pub model_calls: Vec<ModelCallEntry>,
    /// The tool calls, in the order in which they ended.
    pub tool_calls: Vec<ToolCallEntry>,
    /// The moves to other agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffEntry>,
    /// What policies decided.
    pub policy_decisions: Vec<PolicyDecision>,
    /// Proposals that wait for approval, as the policy gate gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended_proposals: Vec<Json>,
    /// What guardrails decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrail_decisions: Vec<GuardrailDecision>,
    /// What other gates decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_decisions: Vec<GateDecision>,
    /// What people decided about held calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalEntry>,
    /// What checks of the end judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_judgements: Vec<StopJudgement>,
    /// Checks of the end that waived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<Waiver>,
    /// Limits that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<LimitEntry>,
    /// The limits that were in force, as the caller gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Json>,
    /// Anything else that happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// What was used in total, money included.
    pub usage: TotalUsage,
    /// The caller's own data; by convention the harness' is under `harness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What of a record is read first.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    version: Option<u64>,
}

impl RunRecord {
    /// Reads a record; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`RecordError::RecordVersion`] for one of a newer version, [`RecordError::Record`] for a text that is no record.
    pub fn from_text(name: impl Into<std::path::PathBuf>, text: &str) -> Result<Self, RecordError> {
        let path = name.into();
        let broken = |reason: String| RecordError::Record { path: path.clone(), reason };
        let head: Head = serde_json::from_str(text).map_err(|fault| broken(fault.to_string()))?;
        if head.kind.as_deref() != Some(RECORD_KIND) {
            let said = head.kind.map_or_else(|| "absent".to_owned(), |kind| format!("`{kind}`"));
            return Err(broken(format!("its `kind` is {said}, `{RECORD_KIND}` was expected")));
        }
        match head.version {
            Some(version) if version > u64::from(RECORD_VERSION) => {
                let supported = RECORD_VERSION;
                return Err(RecordError::RecordVersion { path: path.clone(), found: version, supported });
            }
            Some(_) => {}
            None => return Err(broken("it has no `version`".to_owned())),
        }
        serde_json::from_str(text).map_err(|fault| broken(fault.to_string()))
    }

    /// The record as one line of JSON.
    ///
    /// # Errors
    /// None in practice; the signature is that of serialization.
    pub fn to_json(&self) -> Result<Json, serde_json::Error> {
        Json::of(self)
    }

    /// The question and answer items of the run itself: those after the earlier runs of the conversation.
    pub fn own_items(&self) -> &[Arc<Message>] {
        let from = usize::try_from(self.earlier_item_count).unwrap_or(usize::MAX);
        self.items.get(from..).unwrap_or_default()
    }
}
