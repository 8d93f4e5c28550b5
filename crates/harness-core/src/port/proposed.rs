//! Proposed calls: the subject of gates and approvers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::ids::{AgentId, ApprovalId, CallDigest, CallId, RunId};
use crate::json::Json;
use crate::message::{ApprovalRequest, ToolCall};
use crate::object::JsonObject;
use crate::origin::Origin;
use crate::tool::{ToolDef, ToolKind};

/// Hex digits of a digest in an approval id.
const ID_DIGITS: usize = 16;

/// Call that an agent proposes, with the arguments to execute.
///
/// Its [digest](Self::digest) covers the run, the call, the tool with its contract and the arguments, so that an approval
/// never applies to another call.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::port::ProposedCall;
/// use harness_core::tool::ToolDef;
///
/// let call = |cents: &str| Arc::new(ToolCall::new("c1", "pay", Json::parse(cents).unwrap()));
/// let pay = |cents| ProposedCall::new(call(cents), ToolDef::new("pay", "Pays"), "main".into(), 1);
/// assert_eq!(pay(r#"{"cents":5}"#).digest(), pay(r#"{ "cents": 5 }"#).digest());
/// assert_ne!(pay(r#"{"cents":5}"#).digest(), pay(r#"{"cents":50}"#).digest());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedCall {
    /// Call, with the arguments as rewritten by earlier gates.
    pub call: Arc<ToolCall>,
    /// Definition of the tool or handoff.
    pub def: ToolDef,
    /// Proposing agent.
    pub agent: AgentId,
    /// Iteration.
    pub iteration: u32,
    /// Origin: the run, and the parent call of a sub-agent.
    #[serde(default)]
    pub origin: Arc<Origin>,
    /// Reason why it is held; empty while gates decide.
    #[serde(default)]
    pub reason: String,
}

impl ProposedCall {
    /// Creates a call that is not held, with a default origin.
    pub fn new(call: Arc<ToolCall>, def: ToolDef, agent: AgentId, iteration: u32) -> Self {
        Self { call, def, agent, iteration, origin: Arc::default(), reason: String::new() }
    }

    /// Sets the reason why the call is held.
    #[must_use]
    pub fn held(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// Returns the agent of a handoff; `None` for a tool call.
    pub fn handoff_to(&self) -> Option<&AgentId> {
        match &self.def.kind {
            ToolKind::Handoff(agent) => Some(agent),
            ToolKind::Function => None,
        }
    }

    /// Returns `tool` or `handoff`, and the name of the tool or agent.
    pub(crate) fn resource(&self) -> (&'static str, &str) {
        self.handoff_to().map_or(("tool", self.call.name.as_str()), |agent| ("handoff", agent.as_str()))
    }

    /// Computes the digest that binds a decision to this call.
    pub fn digest(&self) -> CallDigest {
        CallDigest::of(self.origin.run.as_ref(), &self.call.id, &self.def, &self.call.arguments)
    }

    /// Returns the id of the approval request.
    pub fn id(&self) -> ApprovalId {
        self.digest().approval()
    }

    /// Returns the approval request, for events.
    pub(crate) fn request(&self) -> ApprovalRequest {
        ApprovalRequest::of_call(&self.call, self.reason.clone())
    }
}

impl CallDigest {
    /// Computes the SHA-256 of the run, the call, the tool with its contract, and the arguments.
    ///
    /// The contract is the argument schema, the kind, and the metadata, which may contain a version. Arguments count as
    /// exact text, because canonical numbers have only the precision of a double.
    pub fn of(run: Option<&RunId>, call: &CallId, def: &ToolDef, arguments: &Json) -> Self {
        // Missing values count as null.
        let bound = JsonObject::default()
            .with("run", Some(run))
            .with("call", Some(call))
            .with("tool", Some(&def.name))
            .with("kind", Some(&def.kind))
            .with("inputSchema", Some(&def.input_schema))
            .with("metadata", Some(&def.metadata))
            .with("arguments", Some(arguments.text()));
        canonical::hash(&bound.json()).into()
    }

    /// Returns the id of the approval request for a call with this digest.
    pub fn approval(&self) -> ApprovalId {
        let digits: String = self.as_str().chars().take(ID_DIGITS).collect();
        format!("apr-{digits}").into()
    }
}
