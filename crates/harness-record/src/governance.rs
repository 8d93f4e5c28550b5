//! Events for auditors, from a record.

use harness_core::{AgentId, CallId, Json, canonical};
use serde::Serialize;

use super::entries::{GuardrailDecision, PolicyDecision};
use super::run_record::{RunRecord, RunStatus};

const SCHEMA: &str = "aioc.governance_event.v0";

/// How much attention an event wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// None.
    Info,
    /// Something was refused, or waits for somebody.
    Warn,
    /// The run failed.
    Error,
}

/// What an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Subject {
    /// `run`, `tool`, `handoff` or `guardrail`.
    pub kind: String,
    /// The tool, the agent or the guardrail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model request, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal_hash: Option<String>,
    /// The arguments of a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<String>,
    /// The payload of a handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<String>,
}

/// What a policy decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GovernancePolicy {
    /// `allow`, `deny` or `require_approval`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// What the model was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// `throw` or `tool_result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<String>,
    /// The version of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// The hashes of the model request that an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trace {
    /// Of the instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// Of the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
}

/// One event, in the form `aioc.governance_event.v0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GovernanceEvent {
    /// `aioc.governance_event.v0`.
    pub schema_version: String,
    /// SHA-256 of `schema|type|runId|subject` in hexadecimal: the same record gives the same ids.
    pub id: String,
    /// `aioc.run.completed`, `aioc.policy.denied`, …
    pub r#type: String,
    /// How much attention it wants.
    pub severity: Severity,
    /// When it happened.
    pub occurred_at: String,
    /// The run.
    pub run_id: String,
    /// The agent that was active at the end.
    pub agent_name: AgentId,
    /// The provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the run ended; of the terminal event alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// What it is about.
    pub subject: Subject,
    /// What a policy decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<GovernancePolicy>,
    /// The model request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The code of what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_name: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The data of run, policy or guardrail; only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What the events hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GovernanceOptions {
    /// Whether metadata is included. Default no.
    pub metadata: bool,
}

impl GovernanceOptions {
    /// The same options with metadata.
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        self.metadata = true;
        self
    }
}

/// The events of a record: how the run ended, then each policy decision, then each guardrail decision.
pub fn governance_events(record: &RunRecord, options: GovernanceOptions) -> Vec<GovernanceEvent> {
    let maker = Maker { record, options };
    let policies = record.policy_decisions.iter().map(|decision| maker.policy(decision));
    let guardrails = record.guardrail_decisions.iter().map(|decision| maker.guardrail(decision));
    std::iter::once(maker.terminal()).chain(policies).chain(guardrails).collect()
}

struct Maker<'a> {
    record: &'a RunRecord,
    options: GovernanceOptions,
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
        metadata.filter(|_| self.options.metadata).cloned()
    }

    fn terminal(&self) -> GovernanceEvent {
        let record = self.record;
        let (name, severity) = match record.status {
            RunStatus::Completed => ("aioc.run.completed", Severity::Info),
            RunStatus::Failed => ("aioc.run.failed", Severity::Error),
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
