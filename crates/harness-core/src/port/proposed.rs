//! Proposed calls: what gates, approvers and people decide about.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::ids::{AgentId, ApprovalId, CallDigest, CallId, RunId, ToolName};
use crate::json::Json;
use crate::message::{ApprovalRequest, ToolCall};
use crate::origin::Origin;
use crate::tool::{ToolDef, ToolKind};

/// Hexadecimal digits of a digest that name an approval.
const ID_DIGITS: usize = 16;

/// A call that an agent proposes, with the arguments that would be executed.
///
/// Gates decide about it, and so does whoever approves it: at a terminal, in an editor, over HTTP. An approval
/// is a contract about exactly this: its [digest](Self::digest) covers the run, the call, the tool with its
/// contract and the arguments, so a decision never applies to another call.
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
#[non_exhaustive]
pub struct ProposedCall {
    /// The call, with the arguments as rewritten by earlier gates.
    pub call: Arc<ToolCall>,
    /// The tool's definition; its kind tells a handoff from a function, its class whether a repeat is safe.
    pub def: ToolDef,
    /// The agent that proposes it.
    pub agent: AgentId,
    /// The iteration.
    pub iteration: u32,
    /// The work that it belongs to: its run, and the parent call when a sub-agent proposes it.
    #[serde(default)]
    pub origin: Arc<Origin>,
    /// Why it is held; empty while gates decide.
    #[serde(default)]
    pub reason: String,
}

impl ProposedCall {
    /// A call that nothing holds, of work without an origin.
    pub fn new(call: Arc<ToolCall>, def: ToolDef, agent: AgentId, iteration: u32) -> Self {
        Self { call, def, agent, iteration, origin: Arc::default(), reason: String::new() }
    }

    /// The same call in the work of `origin`.
    #[must_use]
    pub fn in_work_of(self, origin: Arc<Origin>) -> Self {
        Self { origin, ..self }
    }

    /// The same call, held for `reason`.
    #[must_use]
    pub fn held(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The agent that a handoff leads to; `None` for the call of a tool.
    pub fn handoff_to(&self) -> Option<&AgentId> {
        match &self.def.kind {
            ToolKind::Handoff(agent) => Some(agent),
            ToolKind::Function => None,
        }
    }

    /// What a policy decides about: `tool` or `handoff`, and its name.
    pub(crate) fn resource(&self) -> (&'static str, &str) {
        self.handoff_to().map_or(("tool", self.call.name.as_str()), |agent| ("handoff", agent.as_str()))
    }

    /// Binds a decision to this call; computed from the fields each time.
    pub fn digest(&self) -> CallDigest {
        CallDigest::of(self.origin.run.as_ref(), &self.call.id, &self.def, &self.call.arguments)
    }

    /// Names the question whether this call may run.
    pub fn id(&self) -> ApprovalId {
        self.digest().approval()
    }

    /// The question as events carry it.
    pub(crate) fn request(&self) -> ApprovalRequest {
        ApprovalRequest::of_call(&self.call, self.reason.clone())
    }
}

impl CallDigest {
    /// The digest of a call in a run.
    ///
    /// SHA-256 over the run, the call, and the tool with its contract and arguments. The contract is the
    /// schema of the arguments, the kind of the tool, and its metadata, which may hold a version. The arguments
    /// count as the exact text, since equal numbers of the canonical form may differ beyond the precision of a
    /// double.
    pub fn of(run: Option<&RunId>, call: &CallId, def: &ToolDef, arguments: &Json) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Bound<'a> {
            run: Option<&'a RunId>,
            call: &'a CallId,
            tool: &'a ToolName,
            kind: &'a ToolKind,
            input_schema: Option<&'a Json>,
            metadata: Option<&'a Json>,
            arguments: &'a str,
        }
        let bound = Bound {
            run,
            call,
            tool: &def.name,
            kind: &def.kind,
            input_schema: def.input_schema.as_ref(),
            metadata: def.metadata.as_ref(),
            arguments: arguments.text(),
        };
        // A plain struct of texts always has a JSON form.
        canonical::sha256_hex(canonical::text_of(&bound).unwrap_or_default()).into()
    }

    /// The id of an approval of a call with this digest.
    pub fn approval(&self) -> ApprovalId {
        let digits: String = self.as_str().chars().take(ID_DIGITS).collect();
        format!("apr-{digits}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).expect("JSON")
    }

    fn digest(run: &str, call: &str, def: &ToolDef, arguments: &str) -> CallDigest {
        CallDigest::of(Some(&run.into()), &call.into(), def, &json(arguments))
    }

    #[test]
    fn digest_changes_with_run_call_arguments_and_contract() {
        let def = ToolDef::new("pay", "pays").with_schema(json(r#"{"type":"object"}"#));
        let here = digest("r1", "c1", &def, r#"{"a":1,"b":2}"#);
        assert_eq!(here, digest("r1", "c1", &def, r#"{ "a": 1, "b": 2 }"#), "white space is no difference");
        assert_ne!(here, digest("r2", "c1", &def, r#"{"a":1,"b":2}"#));
        assert_ne!(here, digest("r1", "c2", &def, r#"{"a":1,"b":2}"#));
        assert_ne!(here, digest("r1", "c1", &def, r#"{"a":1,"b":3}"#));
        let mut changed = def.clone();
        changed.metadata = Some(json(r#"{"version":2}"#));
        assert_ne!(here, digest("r1", "c1", &changed, r#"{"a":1,"b":2}"#));
        let changed = def.clone().with_schema(json(r#"{"type":"object","required":["a"]}"#));
        assert_ne!(here, digest("r1", "c1", &changed, r#"{"a":1,"b":2}"#));
        let reworded = ToolDef { description: "pays money".into(), ..def };
        assert_eq!(here, digest("r1", "c1", &reworded, r#"{"a":1,"b":2}"#), "wording is no contract");
    }

    #[test]
    fn digest_tells_amounts_apart_that_are_one_double() {
        let def = ToolDef::new("pay", "pays");
        let amount = |text| digest("r1", "c1", &def, text);
        assert_ne!(amount(r#"{"n":9007199254740993}"#), amount(r#"{"n":9007199254740992}"#));
        assert_ne!(amount(r#"{"n":1,"n":2}"#), amount(r#"{"n":2}"#));
    }

    #[test]
    fn proposed_call_survives_its_json_form() {
        let call = Arc::new(ToolCall::new("c1", "pay", json(r#"{"n":1.10}"#)));
        let origin = Origin { run: Some("r1".into()), ..Origin::default() };
        let proposed = ProposedCall::new(call, ToolDef::new("pay", "pays"), "main".into(), 2)
            .in_work_of(Arc::new(origin))
            .held("above 50");
        let read: ProposedCall = Json::of(&proposed).expect("JSON").to().expect("a proposed call");
        assert_eq!((read.id(), read.digest()), (proposed.id(), proposed.digest()));
        assert_eq!(read, proposed);
    }
}
