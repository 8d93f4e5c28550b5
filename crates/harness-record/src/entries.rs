//! What a run record lists.
//!
//! Every entry has `seq`, the number of the event it was made from (the total order of what happened), a
//! `timestamp`, and `turn`: the running number of the model request, from 1. (Where records
//! say "turn", the rest of this workspace says "iteration".)

use harness_core::message::Usage;
use harness_core::{AgentId, CallId, Fault, GateName, Json, ModelName, ToolName};
use serde::{Deserialize, Serialize};

/// The instructions of one model request: their hash always, their text when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptSnapshot {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request, from 1.
    pub turn: u32,
    /// The agent.
    pub agent_name: AgentId,
    /// The model that it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// SHA-256 of the text in hexadecimal; empty when there is no text.
    pub prompt_hash: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
}

/// What one model request was made of, as hashes (SHA-256 in hexadecimal, of canonical JSON text).
///
/// | hash | of |
/// |---|---|
/// | `requestHash` | `{messages, model, modelSettings, systemPrompt, tools}` |
/// | `systemPromptHash` | the instructions as a JSON string |
/// | `messagesHash` | the view, message by message |
/// | `toolsHash` | `[{description, name, parameters}]` in the order in which they are offered |
/// | `modelSettingsHash` | the settings, `{}` when there are none |
///
/// The *view* is what the model was sent: the transcript, or what the last plan of layers or compactor
/// showed of it. A message counts with what a model can see of it, as history items: `{content, role,
/// type: "message"}` (the joined text when there are only text blocks, the blocks otherwise), one
/// `{arguments, callId, name, type: "tool_call_item"}` per call, `{callId, output, type:
/// "tool_call_output_item"}` for a result. An absent model is `"[undefined]"`, a tool without a schema has
/// the parameters `{}`. The tools are those that the agent has, also in a closing step without tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestFingerprint {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request, from 1.
    pub turn: u32,
    /// The agent.
    pub agent_name: AgentId,
    /// The provider, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// The model that the agent wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The version of this crate.
    pub runtime_version: String,
    /// `request-fingerprint.v1`.
    pub fingerprint_schema_version: String,
    /// Of the whole request.
    pub request_hash: String,
    /// Of the instructions.
    pub system_prompt_hash: String,
    /// Of the messages.
    pub messages_hash: String,
    /// Of the tools.
    pub tools_hash: String,
    /// Of the settings.
    pub model_settings_hash: String,
    /// Messages of the view.
    pub message_count: u64,
    /// Tools and open handoffs.
    pub tool_count: u64,
}

/// One model call and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelCallEntry {
    /// The event that began it.
    pub seq: u64,
    /// When it began.
    pub timestamp: String,
    /// The model request, from 1.
    pub turn: u32,
    /// The agent.
    pub agent_name: AgentId,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// How long it took.
    pub duration_ms: u64,
    /// What the answer asked of the turn (`final_answer`, `tool_request`, …); absent without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_type: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The position of its answer, or of what there was of one, in `items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// One call of a tool and how it ended. Arguments and output stand in `items`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallEntry {
    /// The event that ended it.
    pub seq: u64,
    /// When it ended.
    pub timestamp: String,
    /// The model request that asked for it, from 1.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: ToolName,
    /// The agent that asked.
    pub agent_name: AgentId,
    /// SHA-256 of the canonical text of the arguments that were used, before any redaction.
    pub args_hash: String,
    /// `success`, `failed`, `cancelled` or `timeout`.
    pub status: String,
    /// The code of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Whether it ever ran; a call that was denied or cut off before its start did not.
    pub ran: bool,
    /// Attempts that were made; 0 when it never ran.
    pub attempts: u32,
    /// How long it took, from the start of its first attempt.
    pub duration_ms: u64,
}

/// A move to another agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HandoffEntry {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request that asked for it, from 1.
    pub turn: u32,
    /// The call that asked for it.
    pub call_id: CallId,
    /// The agent so far.
    pub from: AgentId,
    /// The agent from then on.
    pub to: AgentId,
}

/// What a policy decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// `tool` or `handoff`.
    pub kind: String,
    /// The tool's name, or the name of the agent that takes over.
    pub name: String,
}

/// What a policy decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyDecision {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request that asked for the call, from 1.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// `allow`, `deny` or `require_approval`.
    pub decision: String,
    /// Why, as a stable word.
    pub reason: String,
    /// What the model was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// `throw` or `tool_result`; never with `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<String>,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// What it is about.
    pub resource: Resource,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The proposal that was decided about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal_hash: Option<String>,
    /// The policy's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What a gate other than a policy decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateDecision {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request that asked for the call, from 1.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// The gate.
    pub gate: GateName,
    /// `allow`, `rewrite`, `hold` or `deny`.
    pub verdict: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a guardrail decided about a prompt or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GuardrailDecision {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request, from 1; 0 for a prompt before the first.
    pub turn: u32,
    /// The guardrail.
    pub guardrail_name: GateName,
    /// `input` or `output`.
    pub stage: String,
    /// `pass` or `triggered`.
    pub decision: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The guardrail's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What somebody decided about a held call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalEntry {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The model request that asked for the call, from 1.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// `granted`, `edited`, `denied` or `later`.
    pub decision: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a check said of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StopJudgement {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The last model request, from 1.
    pub turn: u32,
    /// The check.
    pub gate: GateName,
    /// `accept`, `waive`, `continue`, `ask` or `refuse`.
    pub judgement: String,
    /// Why, or the guidance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitEntry {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The last model request, from 1.
    pub turn: u32,
    /// The stop reason that it leads to.
    pub stop_reason: String,
    /// What was limited; absent for loop detection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The value at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
}

/// Anything else worth knowing: a repair, a part that failed, a message that came in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Note {
    /// The event.
    pub seq: u64,
    /// When.
    pub timestamp: String,
    /// The last model request; 0 before the first.
    pub turn: u32,
    /// The event's wire name.
    pub kind: String,
    /// What happened, for people.
    pub text: String,
}
