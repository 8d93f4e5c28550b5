//! Facts of a policy's decision, for records.

use serde_json::json;

use super::decision::{PolicyDecision, PolicyVerdict};
use crate::canonical;
use crate::decide::DecideCx;
use crate::json::Json;
use crate::object::JsonObject;
use crate::port::ProposedCall;
use crate::time::Time;

/// Returns the facts of a decision, for its event.
pub(super) fn of(proposed: &ProposedCall, decision: &PolicyDecision, cx: &DecideCx) -> Json {
    let (kind, name) = proposed.resource();
    let arguments = canonical::text(&proposed.call.arguments);
    let hash = proposal_hash(proposed, &arguments);
    let refused = decision.decision != PolicyVerdict::Allow;
    let waits = decision.decision == PolicyVerdict::RequireApproval;
    JsonObject::default()
        .with("decision", Some(decision.decision))
        .with("reason", Some(&decision.reason))
        .with("publicReason", decision.public_reason.as_ref())
        .with("resultMode", refused.then(|| decision.result_mode.unwrap_or_default()))
        .with("policyVersion", decision.policy_version.as_ref())
        .with(
            "resource",
            Some(JsonObject::default().with("kind", Some(kind)).with("name", Some(name)).json()),
        )
        .with("agentName", Some(&proposed.agent))
        .with("expiresAt", decision.expires_at.map(Time::iso))
        .with("metadata", decision.metadata.as_ref())
        .with("proposalHash", Some(&hash))
        .with("suspendedProposal", waits.then(|| suspended(proposed, decision, (&arguments, &hash), cx)))
        .json()
}

/// Returns the proposal that waits for approval. The last eight fields are those of a tool or of a handoff.
fn suspended(
    proposed: &ProposedCall,
    decision: &PolicyDecision,
    (arguments, hash): (&str, &str),
    cx: &DecideCx,
) -> Json {
    let (call, to) = (&*proposed.call, proposed.handoff_to());
    let of_tool = to.is_none();
    let raw = || call.raw_arguments.as_deref().unwrap_or_else(|| call.arguments.text());
    JsonObject::default()
        .with("timestamp", Some(cx.now.iso()))
        .with("kind", Some(proposed.resource().0))
        .with("runId", cx.origin.run.as_ref())
        .with("turn", Some(proposed.iteration))
        .with("callId", Some(&call.id))
        .with("agentName", Some(&proposed.agent))
        .with("proposalHash", Some(hash))
        .with("reason", Some(&decision.reason))
        .with("publicReason", decision.public_reason.as_ref())
        .with("policyVersion", decision.policy_version.as_ref())
        .with("expiresAt", decision.expires_at.map(Time::iso))
        .with("metadata", decision.metadata.as_ref())
        .with("toolName", of_tool.then_some(&call.name))
        .with("rawArguments", of_tool.then(raw))
        .with("parsedArguments", of_tool.then_some(&call.arguments))
        .with("argsCanonicalJson", of_tool.then_some(arguments))
        .with("fromAgentName", to.map(|_| &proposed.agent))
        .with("toAgentName", to)
        .with("handoffPayload", to.map(|_| &call.arguments))
        .with("payloadCanonicalJson", to.map(|_| arguments))
        .json()
}

/// Returns the hash of a proposal: its agent, the tool or the agent of the handoff, and the canonical arguments.
fn proposal_hash(proposed: &ProposedCall, arguments: &str) -> String {
    let (kind, name) = proposed.resource();
    let bound = if proposed.handoff_to().is_none() {
        let agent = &proposed.agent;
        json!({ "kind": kind, "agentName": agent, "toolName": name, "argsCanonicalJson": arguments })
    } else {
        json!({
            "kind": kind,
            "fromAgentName": &proposed.agent,
            "toAgentName": name,
            "payloadCanonicalJson": arguments,
        })
    };
    canonical::hash(&bound.into())
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
    fn proposal_hash_covers_agent_resource_and_arguments() {
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
