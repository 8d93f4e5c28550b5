//! What policies decide about, and the hashes that name it.

use std::sync::Arc;

use serde::Serialize;

use crate::canonical;
use crate::ids::{AgentId, ToolName};
use crate::json::Json;
use crate::message::ToolCall;
use crate::port::{GateAsk, ToolDef, ToolKind};

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
    pub(super) fn of(ask: &GateAsk) -> Self {
        let arguments_canonical = canonical::text(&ask.call.arguments);
        Self {
            hash: Self::hash_of(&ask.agent, &ask.call.name, &arguments_canonical),
            agent: ask.agent.clone(),
            tool: ask.call.name.clone(),
            call: Arc::clone(&ask.call),
            def: ask.def.clone(),
            arguments_canonical,
            iteration: ask.iteration,
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
    pub(super) fn of(ask: &GateAsk, to: &AgentId) -> Self {
        let payload_canonical = canonical::text(&ask.call.arguments);
        Self {
            hash: Self::hash_of(&ask.agent, to, &payload_canonical),
            from: ask.agent.clone(),
            to: to.clone(),
            call: Arc::clone(&ask.call),
            payload_canonical,
            iteration: ask.iteration,
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
    call.rare.raw_arguments.as_deref().unwrap_or_else(|| call.arguments.text())
}

/// What an approval of a call is bound to: the tool, its contract and the arguments, as 64 hexadecimal
/// digits.
///
/// The contract is the schema of the arguments, what the tool stands for, and its metadata, which is the
/// place for a version. So an approval does not hold for other arguments, nor for a tool that has changed
/// since.
pub fn call_digest(def: &ToolDef, arguments: &Json) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Bound<'a> {
        tool: &'a ToolName,
        kind: &'a ToolKind,
        input_schema: Option<&'a Json>,
        metadata: Option<&'a Json>,
        arguments: String,
    }
    hash(&Bound {
        tool: &def.name,
        kind: &def.kind,
        input_schema: def.input_schema.as_ref(),
        metadata: def.metadata.as_ref(),
        arguments: canonical::text(arguments),
    })
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

    #[test]
    fn a_digest_changes_with_the_arguments_and_with_the_contract() {
        let json = |text: &str| Json::parse(text).expect("JSON");
        let def = ToolDef::new("pay", "pays").with_schema(json(r#"{"type":"object"}"#));
        let digest = call_digest(&def, &json(r#"{"a":1,"b":2}"#));
        assert_eq!(digest, call_digest(&def, &json(r#"{ "b": 2.0, "a": 1 }"#)), "the same value");
        assert_ne!(digest, call_digest(&def, &json(r#"{"a":1,"b":3}"#)));
        let mut changed = def.clone();
        changed.metadata = Some(json(r#"{"version":2}"#));
        assert_ne!(digest, call_digest(&changed, &json(r#"{"a":1,"b":2}"#)));
        let changed = def.clone().with_schema(json(r#"{"type":"object","required":["a"]}"#));
        assert_ne!(digest, call_digest(&changed, &json(r#"{"a":1,"b":2}"#)));
        let reworded = ToolDef { description: "pays money".into(), ..def };
        assert_eq!(digest, call_digest(&reworded, &json(r#"{"a":1,"b":2}"#)), "wording is no contract");
    }
}
