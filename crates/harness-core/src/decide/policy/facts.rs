//! What is recorded of a decision.

use serde::Serialize;

use super::decision::{PolicyDecision, PolicyVerdict, ResultMode};
use crate::canonical;
use crate::decide::DecideCx;
use crate::ids::{AgentId, CallId, RunId, ToolName};
use crate::json::Json;
use crate::port::ProposedCall;
use crate::time::{Time, iso};

/// The tool, or the agent that is handed over to.
#[derive(Serialize)]
struct Resource<'a> {
    kind: &'a str,
    name: &'a str,
}

/// The facts of a policy's decision.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyFacts<'a> {
    decision: PolicyVerdict,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_reason: Option<&'a str>,
    /// What became of it; never for allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_mode: Option<ResultMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<&'a str>,
    resource: Resource<'a>,
    agent_name: &'a AgentId,
    #[serde(skip_serializing_if = "Option::is_none", with = "iso::option")]
    expires_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Json>,
    proposal_hash: &'a str,
    /// The proposal itself, when it needs approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_proposal: Option<SuspendedProposal<'a>>,
}

/// A proposal that waits for approval, as a host stores it. Of its last eight fields a tool has four and a handoff the
/// other four.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SuspendedProposal<'a> {
    #[serde(with = "iso")]
    timestamp: Time,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a RunId>,
    /// The model call of the turn that asked for it, from 1.
    turn: u32,
    call_id: &'a CallId,
    agent_name: &'a AgentId,
    proposal_hash: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", with = "iso::option")]
    expires_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a ToolName>,
    /// The arguments as the model wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parsed_arguments: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args_canonical_json: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_agent_name: Option<&'a AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_agent_name: Option<&'a AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_payload: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_canonical_json: Option<&'a str>,
}

/// The facts of a decision about a call, as its event carries them.
pub(super) fn of(proposed: &ProposedCall, decision: &PolicyDecision, cx: &DecideCx) -> Option<Json> {
    let (kind, name) = proposed.resource();
    let arguments = canonical::text(&proposed.call.arguments);
    let hash = proposal_hash(proposed, &arguments);
    let waits = decision.decision == PolicyVerdict::RequireApproval;
    let refused = decision.decision != PolicyVerdict::Allow;
    Json::of(&PolicyFacts {
        decision: decision.decision,
        reason: &decision.reason,
        public_reason: decision.public_reason.as_deref(),
        result_mode: refused.then(|| decision.result_mode.unwrap_or_default()),
        policy_version: decision.policy_version.as_deref(),
        resource: Resource { kind, name },
        agent_name: &proposed.agent,
        expires_at: decision.expires_at,
        metadata: decision.metadata.as_ref(),
        proposal_hash: &hash,
        suspended_proposal: waits.then(|| suspended(proposed, decision, (&arguments, &hash), cx)),
    })
    .ok()
}

fn suspended<'a>(
    proposed: &'a ProposedCall,
    decision: &'a PolicyDecision,
    (arguments, hash): (&'a str, &'a str),
    cx: &'a DecideCx,
) -> SuspendedProposal<'a> {
    let (call, to) = (&*proposed.call, proposed.handoff_to());
    let of_tool = to.is_none();
    SuspendedProposal {
        timestamp: cx.now,
        kind: proposed.resource().0,
        run_id: cx.origin.run.as_ref(),
        turn: proposed.iteration,
        call_id: &call.id,
        agent_name: &proposed.agent,
        proposal_hash: hash,
        reason: &decision.reason,
        public_reason: decision.public_reason.as_deref(),
        policy_version: decision.policy_version.as_deref(),
        expires_at: decision.expires_at,
        metadata: decision.metadata.as_ref(),
        tool_name: of_tool.then_some(&call.name),
        raw_arguments: of_tool
            .then(|| call.raw_arguments.as_deref().unwrap_or_else(|| call.arguments.text())),
        parsed_arguments: of_tool.then_some(&call.arguments),
        args_canonical_json: of_tool.then_some(arguments),
        from_agent_name: to.map(|_| &proposed.agent),
        to_agent_name: to,
        handoff_payload: to.map(|_| &call.arguments),
        payload_canonical_json: to.map(|_| arguments),
    }
}

/// What names a proposal: SHA-256 over the canonical text of its agent, its tool or the agent that is handed over to, and
/// its arguments.
fn proposal_hash(proposed: &ProposedCall, arguments: &str) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct OfTool<'a> {
        kind: &'a str,
        agent_name: &'a AgentId,
        tool_name: &'a ToolName,
        args_canonical_json: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct OfHandoff<'a> {
        kind: &'a str,
        from_agent_name: &'a AgentId,
        to_agent_name: &'a AgentId,
        payload_canonical_json: &'a str,
    }
    let (kind, _) = proposed.resource();
    let text = match proposed.handoff_to() {
        None => canonical::text_of(&OfTool {
            kind,
            agent_name: &proposed.agent,
            tool_name: &proposed.call.name,
            args_canonical_json: arguments,
        }),
        Some(to) => canonical::text_of(&OfHandoff {
            kind,
            from_agent_name: &proposed.agent,
            to_agent_name: to,
            payload_canonical_json: arguments,
        }),
    };
    // Plain structs of texts always have a JSON form.
    canonical::sha256_hex(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::ToolCall;
    use crate::tool::ToolDef;

    #[track_caller]
    fn check(def: ToolDef, expected: &str) {
        let arguments = Json::parse(r#"{ "cents": 5.0 }"#).expect("JSON");
        let call = Arc::new(ToolCall::new("c1", def.name.clone(), arguments));
        let arguments = canonical::text(&call.arguments);
        let hash = proposal_hash(&ProposedCall::new(call, def, "desk".into(), 1), &arguments);
        assert_eq!(hash, canonical::sha256_hex(expected));
    }

    #[test]
    fn proposals_are_named_by_the_canonical_text_of_what_they_ask() {
        check(
            ToolDef::new("pay", ""),
            r#"{"agentName":"desk","argsCanonicalJson":"{\"cents\":5}","kind":"tool","toolName":"pay"}"#,
        );
        check(
            ToolDef::handoff("to_expert", "", "expert".into()),
            r#"{"fromAgentName":"desk","kind":"handoff","payloadCanonicalJson":"{\"cents\":5}","toAgentName":"expert"}"#,
        );
    }
}
