//! What is recorded of a decision, and what a model or an approver is told of it.

use serde::{Deserialize, Serialize};

use super::decision::{PolicyDecision, PolicyVerdict, ResultMode};
use super::proposal::{HandoffProposal, ToolProposal, raw_arguments};
use crate::decide::DecideCx;
use crate::ids::{AgentId, CallId, RunId};
use crate::json::Json;
use crate::message::ToolCall;
use crate::time::{Time, iso};

/// What a policy decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A tool.
    Tool,
    /// A move to another agent.
    Handoff,
}

/// The tool, or the agent that is handed over to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Which of the two.
    pub kind: ResourceKind,
    /// Its name.
    pub name: String,
}

/// The facts of a policy's decision: what the event of a [`gate::policy`](crate::decide::gate::policy) carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyFacts {
    /// What was decided.
    pub decision: PolicyVerdict,
    /// Why.
    pub reason: String,
    /// What a model or a user may be told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// What became of it; never for allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_mode: Option<ResultMode>,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// About what.
    pub resource: Resource,
    /// The agent that proposed it.
    pub agent_name: AgentId,
    /// The decision's end.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// The policy's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// What names the proposal.
    pub proposal_hash: String,
    /// The proposal itself, when it needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_proposal: Option<Box<SuspendedProposal>>,
}

/// A proposal that waits for approval, as a host stores it. Of its last eight fields a tool has four and
/// a handoff the other four.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SuspendedProposal {
    /// When it was made.
    #[serde(with = "iso")]
    pub timestamp: Time,
    /// A tool or a handoff.
    pub kind: ResourceKind,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The model call of the turn that asked for it, from 1.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// The agent that asked.
    pub agent_name: AgentId,
    /// What names it.
    pub proposal_hash: String,
    /// Why approval is needed.
    pub reason: String,
    /// What a model or a user may be told of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Until when a request for approval is worth something.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// The policy's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The arguments as the model wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_arguments: Option<String>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsed_arguments: Option<Json>,
    /// Their canonical text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_canonical_json: Option<String>,
    /// The agent that hands over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent_name: Option<AgentId>,
    /// The agent that is handed over to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent_name: Option<AgentId>,
    /// What is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_payload: Option<Json>,
    /// Its canonical text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_canonical_json: Option<String>,
}

/// What an approval request begins with: enough to show it, and to grant exactly this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestSeed {
    /// What names the proposal.
    pub proposal_hash: String,
    /// A tool or a handoff.
    pub kind: ResourceKind,
    /// Why approval is needed.
    pub reason: String,
    /// What a user may be told of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_reason: Option<String>,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// Until when the request is worth something.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iso::option")]
    pub expires_at: Option<Time>,
    /// The tool, or the agent that is handed over to.
    pub resource_name: String,
    /// The canonical text of the arguments or of the payload.
    pub canonical_payload_json: String,
}

impl From<&SuspendedProposal> for RequestSeed {
    fn from(proposal: &SuspendedProposal) -> Self {
        let (name, payload) = match proposal.kind {
            ResourceKind::Tool => (proposal.tool_name.clone(), proposal.args_canonical_json.clone()),
            ResourceKind::Handoff => (
                proposal.to_agent_name.as_ref().map(|agent| agent.as_str().to_owned()),
                proposal.payload_canonical_json.clone(),
            ),
        };
        Self {
            proposal_hash: proposal.proposal_hash.clone(),
            kind: proposal.kind,
            reason: proposal.reason.clone(),
            public_reason: proposal.public_reason.clone(),
            policy_version: proposal.policy_version.clone(),
            expires_at: proposal.expires_at,
            resource_name: name.unwrap_or_default(),
            canonical_payload_json: payload.unwrap_or_default(),
        }
    }
}

/// What a model reads of a call that a policy did not allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Envelope {
    /// `denied` or `approval_required`.
    pub status: String,
    /// The reason.
    pub code: String,
    /// What may be told of it.
    pub public_reason: String,
    /// Nothing.
    pub data: Option<Json>,
}

impl Envelope {
    pub(super) fn of(decision: &PolicyDecision) -> Self {
        let (status, usual) = match decision.decision {
            PolicyVerdict::RequireApproval => ("approval_required", "Action requires approval."),
            PolicyVerdict::Allow | PolicyVerdict::Deny => ("denied", "Action not allowed."),
        };
        let told = decision.public_reason.as_deref().map(str::trim).filter(|text| !text.is_empty());
        Self {
            status: status.to_owned(),
            code: decision.reason.clone(),
            public_reason: told.unwrap_or(usual).to_owned(),
            data: None,
        }
    }

    pub(super) fn text(&self) -> String {
        Json::of(self).map_or_else(|_| self.public_reason.clone(), |json| json.text().to_owned())
    }
}

/// One of the two proposals.
#[derive(Clone, Copy)]
pub(super) enum Proposed<'a> {
    Tool(&'a ToolProposal),
    Handoff(&'a HandoffProposal),
}

impl Proposed<'_> {
    pub(super) fn facts(self, decision: &PolicyDecision, cx: &DecideCx) -> PolicyFacts {
        let (kind, name) = match self {
            Self::Tool(proposal) => (ResourceKind::Tool, proposal.tool.as_str()),
            Self::Handoff(proposal) => (ResourceKind::Handoff, proposal.to.as_str()),
        };
        let waits = decision.decision == PolicyVerdict::RequireApproval;
        let refused = decision.decision != PolicyVerdict::Allow;
        PolicyFacts {
            decision: decision.decision,
            reason: decision.reason.clone(),
            public_reason: decision.public_reason.clone(),
            result_mode: refused.then(|| decision.result_mode.unwrap_or_default()),
            policy_version: decision.policy_version.clone(),
            resource: Resource { kind, name: name.to_owned() },
            agent_name: self.agent().clone(),
            expires_at: decision.expires_at,
            metadata: decision.metadata.clone(),
            proposal_hash: self.hash().to_owned(),
            suspended_proposal: waits.then(|| Box::new(self.suspended(kind, decision, cx))),
        }
    }

    pub(super) fn hash(&self) -> &str {
        match self {
            Self::Tool(proposal) => &proposal.hash,
            Self::Handoff(proposal) => &proposal.hash,
        }
    }

    fn agent(&self) -> &AgentId {
        match self {
            Self::Tool(proposal) => &proposal.agent,
            Self::Handoff(proposal) => &proposal.from,
        }
    }

    fn call(&self) -> (&ToolCall, u32) {
        match self {
            Self::Tool(proposal) => (&proposal.call, proposal.iteration),
            Self::Handoff(proposal) => (&proposal.call, proposal.iteration),
        }
    }

    fn suspended(self, kind: ResourceKind, decision: &PolicyDecision, cx: &DecideCx) -> SuspendedProposal {
        let (call, turn) = self.call();
        let mut suspended = SuspendedProposal {
            timestamp: cx.now,
            kind,
            run_id: cx.origin.run.clone(),
            turn,
            call_id: call.id.clone(),
            agent_name: self.agent().clone(),
            proposal_hash: self.hash().to_owned(),
            reason: decision.reason.clone(),
            public_reason: decision.public_reason.clone(),
            policy_version: decision.policy_version.clone(),
            expires_at: decision.expires_at,
            metadata: decision.metadata.clone(),
            tool_name: None,
            raw_arguments: None,
            parsed_arguments: None,
            args_canonical_json: None,
            from_agent_name: None,
            to_agent_name: None,
            handoff_payload: None,
            payload_canonical_json: None,
        };
        match self {
            Self::Tool(proposal) => {
                suspended.tool_name = Some(proposal.tool.as_str().to_owned());
                suspended.raw_arguments = Some(raw_arguments(call).to_owned());
                suspended.parsed_arguments = Some(call.arguments.clone());
                suspended.args_canonical_json = Some(proposal.arguments_canonical.clone());
            }
            Self::Handoff(proposal) => {
                suspended.from_agent_name = Some(proposal.from.clone());
                suspended.to_agent_name = Some(proposal.to.clone());
                suspended.handoff_payload = Some(call.arguments.clone());
                suspended.payload_canonical_json = Some(proposal.payload_canonical.clone());
            }
        }
        suspended
    }
}
