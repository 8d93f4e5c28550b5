//! Governance events of a record.

use harness_core::{AgentId, CallId, Json, canonical};
use serde::Serialize;

use super::entries::{GuardrailDecision, PolicyDecision};
use super::run_record::{RunRecord, RunStatus};

const SCHEMA: &str = "aioc.governance_event.v0";

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information.
    Info,
    /// A denied or pending action.
    Warn,
    /// A failed run.
    Error,
}

/// Subject of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Subject {
    /// `run`, `tool`, `handoff` or `guardrail`.
    pub kind: String,
    /// Name of the tool, agent or guardrail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of the model request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Hash of the proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal_hash: Option<String>,
    /// Hash of a tool call's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<String>,
    /// Hash of a handoff's payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<String>,
}

/// Policy decision of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GovernancePolicy {
    /// `allow`, `deny` or `require_approval`.
    pub decision: String,
    /// Reason, as a stable word.
    pub reason: String,
    /// Message for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// `throw` or `tool_result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<String>,
    /// Version of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Expiry time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// Hashes of an event's model request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trace {
    /// Hash of the instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// Hash of the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
}

/// Governance event, in the form `aioc.governance_event.v0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GovernanceEvent {
    /// `aioc.governance_event.v0`.
    pub schema_version: String,
    /// SHA-256 of `schema|type|runId|subject` in hexadecimal, equal for equal records.
    pub id: String,
    /// `aioc.run.completed`, `aioc.policy.denied`, …
    pub r#type: String,
    /// Severity of the event.
    pub severity: Severity,
    /// Time of the event.
    pub occurred_at: String,
    /// Id of the run.
    pub run_id: String,
    /// Active agent at the end.
    pub agent_name: AgentId,
    /// Name of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// Name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Status of the run, in the terminal event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Subject of the event.
    pub subject: Subject,
    /// Decision of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<GovernancePolicy>,
    /// Hashes of the model request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// Error text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Data of run, policy or guardrail, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// Derives the governance events of a record: the end of the run, policy decisions, then guardrail decisions. `metadata`
/// adds the data of run, policies and guardrails.
pub fn governance_events(record: &RunRecord, metadata: bool) -> Vec<GovernanceEvent> {
    let maker = Maker { record, metadata };
    let policies = record.policy_decisions.iter().map(|decision| maker.policy(decision));
    let guardrails = record.guardrail_decisions.iter().map(|decision| maker.guardrail(decision));
    std::iter::once(maker.terminal()).chain(policies).chain(guardrails).collect()
}

struct Maker<'a> {
    record: &'a RunRecord,
    metadata: bool,
}

impl Maker<'_> {
    fn event(
        &self,
        r#type: &str,
        key: &str,
        severity: Severity,
        at: &str,
        subject: Subject,
    ) -> GovernanceEvent {
        let record = self.record;
        GovernanceEvent {
            schema_version: SCHEMA.to_owned(),
            id: canonical::sha256_hex(format!("{SCHEMA}|{type}|{}|{key}", record.run_id)),
            r#type: r#type.to_owned(),
            severity,
            occurred_at: at.to_owned(),
            run_id: record.run_id.clone(),
            agent_name: record.agent_name.clone(),
            provider_name: record.provider_name.clone(),
            model: record.model.as_ref().map(ToString::to_string),
            status: None,
            trace: subject.turn.and_then(|turn| self.trace(turn)),
            subject,
            policy: None,
            error_name: None,
            error_message: None,
            metadata: None,
        }
    }

    fn trace(&self, turn: u32) -> Option<Trace> {
        let prompt = self.record.prompt_snapshots.iter().find(|prompt| prompt.turn == turn);
        let request = self.record.request_fingerprints.iter().find(|request| request.turn == turn);
        (prompt.is_some() || request.is_some()).then(|| Trace {
            prompt_hash: prompt.map(|prompt| prompt.prompt_hash.clone()),
            request_hash: request.map(|request| request.request_hash.clone()),
        })
    }

    fn metadata(&self, metadata: Option<&Json>) -> Option<Json> {
        metadata.filter(|_| self.metadata).cloned()
    }

    fn terminal(&self) -> GovernanceEvent {
        let record = self.record;
        let (name, severity) = match record.status {
            RunStatus::Completed => ("aioc.run.completed", Severity::Info),
            RunStatus::Failed => ("aioc.run.failed", Severity::Error),
            RunStatus::Running => ("aioc.run.started", Severity::Info),
        };
        let subject = Subject { kind: "run".to_owned(), ..Subject::default() };
        let event = self.event(name, "run", severity, &record.completed_at, subject);
        GovernanceEvent {
            status: Some(record.status),
            error_name: record.error_name.clone(),
            error_message: record.error_message.clone(),
            metadata: self.metadata(record.metadata.as_ref()),
            ..event
        }
    }

    fn policy(&self, decision: &PolicyDecision) -> GovernanceEvent {
        let (turn, call) = (decision.turn, &decision.call_id);
        let key = format!("policy:{turn}:{call}:{}", decision.decision);
        let (name, severity, key) = match decision.decision.as_str() {
            "allow" => ("aioc.policy.allowed", Severity::Info, key),
            "require_approval" => {
                let hash = decision.proposal_hash.as_deref().unwrap_or("unknown");
                ("aioc.approval.required", Severity::Warn, format!("approval:{turn}:{call}:{hash}"))
            }
            _ => ("aioc.policy.denied", Severity::Warn, key),
        };
        let ended = self.record.tool_calls.iter().find(|entry| entry.call_id == *call && entry.turn == turn);
        let hash = ended.map(|entry| entry.args_hash.clone());
        let is_handoff = decision.resource.kind == "handoff";
        let subject = Subject {
            kind: decision.resource.kind.clone(),
            name: Some(decision.resource.name.clone()),
            turn: Some(turn),
            call_id: Some(call.clone()),
            proposal_hash: decision.proposal_hash.clone(),
            args_hash: hash.clone().filter(|_| !is_handoff),
            payload_hash: hash.filter(|_| is_handoff),
        };
        let event = self.event(name, &key, severity, &decision.timestamp, subject);
        GovernanceEvent {
            policy: Some(GovernancePolicy {
                decision: decision.decision.clone(),
                reason: decision.reason.clone(),
                public_reason: decision.public_reason.clone(),
                result_mode: decision.result_mode.clone(),
                policy_version: decision.policy_version.clone(),
                expires_at: decision.expires_at.clone(),
            }),
            metadata: self.metadata(decision.metadata.as_ref()),
            ..event
        }
    }

    fn guardrail(&self, decision: &GuardrailDecision) -> GovernanceEvent {
        let (turn, guardrail) = (decision.turn, &decision.guardrail_name);
        let (name, severity) = match decision.decision.as_str() {
            "pass" => ("aioc.guardrail.passed", Severity::Info),
            _ => ("aioc.guardrail.triggered", Severity::Warn),
        };
        let key = format!("guardrail:{turn}:{guardrail}:{}", decision.decision);
        let subject = Subject {
            kind: "guardrail".to_owned(),
            name: Some(guardrail.to_string()),
            turn: Some(turn),
            ..Subject::default()
        };
        let event = self.event(name, &key, severity, &decision.timestamp, subject);
        GovernanceEvent { metadata: self.metadata(decision.metadata.as_ref()), ..event }
    }
}
