//! Entries of a run record.
//!
//! Every entry has `seq`, the number of its event, which orders all entries; a `timestamp`; and `turn`, the number of
//! the model request, starting at 1. (A `turn` of records is an iteration elsewhere.)

use harness_core::message::Usage;
use harness_core::{AgentId, CallId, Fault, GateName, Json, ModelName, ToolName};
use serde::{Deserialize, Serialize};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Instructions of a model request: their hash. Their text is in [`Prompts`](super::Prompts).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptSnapshot {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request, starting at 1.
    pub turn: u32,
    /// Id of the agent.
    pub agent_name: AgentId,
    /// Model of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// SHA-256 of the text in hexadecimal; empty without text.
    pub prompt_hash: String,
    /// Text of the instructions, in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
}

/// Hashes of a model request: SHA-256 in hexadecimal, of canonical JSON text.
///
/// | hash | of |
/// |---|---|
/// | `requestHash` | `{messages, model, modelSettings, systemPrompt, tools}` |
/// | `systemPromptHash` | the instructions as a JSON string |
/// | `messagesHash` | the view, message by message |
/// | `toolsHash` | `[{description, name, parameters}]` in the order in which they are offered |
/// | `modelSettingsHash` | the settings, `{}` when there are none |
///
/// The *view* contains the sent messages: the transcript, or the selection of the last plan of layers or compactor.
/// Each message is converted to history items, with what a model can see of it: `{content, role, type: "message"}`
/// (the joined text if all blocks are text, otherwise the blocks), one `{arguments, callId, name, type:
/// "tool_call_item"}` per call, `{callId, isError?, output, type: "tool_call_output_item"}` for a result. `output` is
/// the content, or the structured data of a result without content. A missing model is `"[undefined]"`, the parameters
/// of a tool without a schema are `{}`. The tools are those of the agent, even in a closing step without tools, and
/// guidance of a run's control is not included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestFingerprint {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request, starting at 1.
    pub turn: u32,
    /// Id of the agent.
    pub agent_name: AgentId,
    /// Name of the provider, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// Model of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Version of this crate.
    pub runtime_version: String,
    /// Version of the form: `request-fingerprint.v2`.
    pub fingerprint_schema_version: String,
    /// Hash of the whole request; the digest of a recording is equal.
    pub request_hash: String,
    /// Hash of the instructions.
    pub system_prompt_hash: String,
    /// Hash of the messages.
    pub messages_hash: String,
    /// Hash of the tools.
    pub tools_hash: String,
    /// Hash of the settings.
    pub model_settings_hash: String,
    /// Number of messages in the view.
    pub message_count: u64,
    /// Number of tools and open handoffs.
    pub tool_count: u64,
}

/// Model call with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelCallEntry {
    /// Number of the start event.
    pub seq: u64,
    /// Start time.
    pub timestamp: String,
    /// Number of the model request, starting at 1.
    pub turn: u32,
    /// Id of the agent.
    pub agent_name: AgentId,
    /// Requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Milliseconds from the request to the first token: text, reasoning or a call. `None` if nothing was streamed, after an
    /// error, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Type of the answer (`final_answer`, `tool_request`, …), if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_type: Option<String>,
    /// Usage of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Index of the complete or partial answer in `items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u64>,
    /// Error in place of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// Tool call with its end. Arguments and output are in `items`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallEntry {
    /// Number of the end event.
    pub seq: u64,
    /// End time.
    pub timestamp: String,
    /// Number of the model request that requested it.
    pub turn: u32,
    /// Id of the call.
    pub call_id: CallId,
    /// Name of the tool.
    pub name: ToolName,
    /// Id of the agent.
    pub agent_name: AgentId,
    /// SHA-256 of the canonical text of the unredacted arguments.
    pub args_hash: String,
    /// `success`, `failed`, `cancelled` or `timeout`.
    pub status: String,
    /// Error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Whether it started; a denied call did not.
    pub ran: bool,
    /// Number of attempts; 0 if it did not start.
    pub attempts: u32,
    /// Duration in milliseconds, from the start of its first attempt.
    pub duration_ms: u64,
}

/// Handoff to another agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HandoffEntry {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request that requested it.
    pub turn: u32,
    /// Id of the call that requested it.
    pub call_id: CallId,
    /// Agent before the handoff.
    pub from: AgentId,
    /// Agent after the handoff.
    pub to: AgentId,
}

/// Resource of a policy decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// `tool` or `handoff`.
    pub kind: String,
    /// Name of the tool, or of the target agent.
    pub name: String,
}

/// Decision of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyDecision {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request that requested the call.
    pub turn: u32,
    /// Id of the call.
    pub call_id: CallId,
    /// `allow`, `deny` or `require_approval`.
    pub decision: String,
    /// Reason, as a stable word.
    pub reason: String,
    /// Message for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// `throw` or `tool_result`; never with `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<String>,
    /// Version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Resource in question.
    pub resource: Resource,
    /// Expiry time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Hash of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal_hash: Option<String>,
    /// Data of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// Decision of a gate that is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateDecision {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request that requested the call.
    pub turn: u32,
    /// Id of the call.
    pub call_id: CallId,
    /// Name of the gate.
    pub gate: GateName,
    /// `allow`, `rewrite`, `hold` or `deny`.
    pub verdict: String,
    /// Reason of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Facts of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Json>,
    /// Duration in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u64,
}

/// Report of the run's control, for example about work items or the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ControlEntry {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the last model request; 0 before the first.
    pub turn: u32,
    /// Report: an object with a `kind`. Guidance is without its text, which is part of the prompts.
    pub event: Json,
}

/// Decision of a guardrail about a prompt, a result or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GuardrailDecision {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request; 0 for a prompt before the first.
    pub turn: u32,
    /// Name of the guardrail.
    pub guardrail_name: GateName,
    /// `input`, `result` or `output`.
    pub stage: String,
    /// `pass` or `triggered`.
    pub decision: String,
    /// Reason of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Data of the guardrail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// Decision of an approver about a held call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalEntry {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the model request that requested the call.
    pub turn: u32,
    /// Id of the call.
    pub call_id: CallId,
    /// `granted`, `edited`, `denied` or `later`.
    pub decision: String,
    /// Reason of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Judgement of a check about the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StopJudgement {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the last model request.
    pub turn: u32,
    /// Name of the check.
    pub gate: GateName,
    /// `accept`, `waive`, `continue`, `ask` or `refuse`.
    pub judgement: String,
    /// Reason, or the guidance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Reached limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitEntry {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the last model request.
    pub turn: u32,
    /// Stop reason of the limit.
    pub stop_reason: String,
    /// Name of the limit; absent for loop detection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Value when the limit was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Maximum value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
}

/// Other event, for example a repair, a failed part or a steering message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Note {
    /// Number of the event.
    pub seq: u64,
    /// Time of the event.
    pub timestamp: String,
    /// Number of the last model request; 0 before the first.
    pub turn: u32,
    /// Wire name of the event.
    pub kind: String,
    /// Human-readable text.
    pub text: String,
}
