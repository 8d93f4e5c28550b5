//! What policies decide about, and the hashes that name it.

use std::sync::Arc;

use serde::Serialize;

use crate::canonical;
use crate::ids::{AgentId, ToolName};
use crate::message::ToolCall;
use crate::port::ProposedCall;
use crate::tool::ToolDef;

/// An agent wants to call a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolProposal {
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The call, with the arguments that would be executed.
    pub call: Arc<ToolCall>,
    /// The tool's definition.
    pub def: ToolDef,
    /// The canonical text of the arguments.
    pub arguments_canonical: String,
    /// What names this proposal: agent, tool and arguments; see [`ToolProposal::hash_of`].
    pub hash: String,
    /// The iteration, from 1.
    pub iteration: u32,
}

impl ToolProposal {
    pub(super) fn of(proposed: &ProposedCall) -> Self {
        let arguments_canonical = canonical::text(&proposed.call.arguments);
        Self {
            hash: Self::hash_of(&proposed.agent, &proposed.call.name, &arguments_canonical),
            agent: proposed.agent.clone(),
            tool: proposed.call.name.clone(),
            call: Arc::clone(&proposed.call),
            def: proposed.def.clone(),
            arguments_canonical,
            iteration: proposed.iteration,
        }
    }

    /// The hash of a proposal: SHA-256 over the canonical text of
    /// `{kind: "tool", agentName, toolName, argsCanonicalJson}`, 64 hexadecimal digits.
    pub fn hash_of(agent: &AgentId, tool: &ToolName, arguments_canonical: &str) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Named<'a> {
            kind: &'a str,
            agent_name: &'a AgentId,
            tool_name: &'a ToolName,
            args_canonical_json: &'a str,
        }
        hash(&Named {
            kind: "tool",
            agent_name: agent,
            tool_name: tool,
            args_canonical_json: arguments_canonical,
        })
    }

    /// The arguments as the model wrote them.
    pub fn raw_arguments(&self) -> &str {
        raw_arguments(&self.call)
    }
}

/// An agent wants to hand over to another.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandoffProposal {
    /// The agent so far.
    pub from: AgentId,
    /// The agent from then on.
    pub to: AgentId,
    /// The call by which it does, with the payload as arguments.
    pub call: Arc<ToolCall>,
    /// The canonical text of the payload.
    pub payload_canonical: String,
    /// What names this proposal: both agents and the payload; see [`HandoffProposal::hash_of`].
    pub hash: String,
    /// The iteration, from 1.
    pub iteration: u32,
}

impl HandoffProposal {
    pub(super) fn of(proposed: &ProposedCall, to: &AgentId) -> Self {
        let payload_canonical = canonical::text(&proposed.call.arguments);
        Self {
            hash: Self::hash_of(&proposed.agent, to, &payload_canonical),
            from: proposed.agent.clone(),
            to: to.clone(),
            call: Arc::clone(&proposed.call),
            payload_canonical,
            iteration: proposed.iteration,
        }
    }

    /// The hash of a proposal: SHA-256 over the canonical text of
    /// `{kind: "handoff", fromAgentName, toAgentName, payloadCanonicalJson}`, 64 hexadecimal digits.
    pub fn hash_of(from: &AgentId, to: &AgentId, payload_canonical: &str) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Named<'a> {
            kind: &'a str,
            from_agent_name: &'a AgentId,
            to_agent_name: &'a AgentId,
            payload_canonical_json: &'a str,
        }
        hash(&Named {
            kind: "handoff",
            from_agent_name: from,
            to_agent_name: to,
            payload_canonical_json: payload_canonical,
        })
    }
}

pub(super) fn raw_arguments(call: &ToolCall) -> &str {
    call.raw_arguments.as_deref().unwrap_or_else(|| call.arguments.text())
}

/// Plain structs of texts always have a JSON form.
fn hash(value: &impl Serialize) -> String {
    canonical::sha256_hex(canonical::text_of(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_named_by_the_canonical_text_of_what_they_ask() {
        let tool = ToolProposal::hash_of(&"desk".into(), &"pay".into(), r#"{"cents":5}"#);
        let text =
            r#"{"agentName":"desk","argsCanonicalJson":"{\"cents\":5}","kind":"tool","toolName":"pay"}"#;
        assert_eq!(tool, canonical::sha256_hex(text));
        let handoff = HandoffProposal::hash_of(&"desk".into(), &"expert".into(), "{}");
        let text =
            r#"{"fromAgentName":"desk","kind":"handoff","payloadCanonicalJson":"{}","toAgentName":"expert"}"#;
        assert_eq!(handoff, canonical::sha256_hex(text));
    }
}
