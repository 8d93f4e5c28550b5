//! Rules of approved calls.

use harness_core::message::ToolCall;
use harness_core::{Json, ToolName, canonical};
use serde::{Deserialize, Serialize};

/// Calls that are approved without a prompt. JSON form: `{tool_name, arguments?, server_label?}`.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_tools::ApprovalRule;
///
/// let call = |arguments| ToolCall::new("c", "git__log", Json::parse(arguments).unwrap_or_default());
/// let mut rule = ApprovalRule::of_tool("log");
/// rule.server_label = Some("git".to_owned());
/// assert!(rule.covers(&call("{}")));
/// let rule = ApprovalRule::of_call(&call(r#"{"max":3,"from":"main"}"#));
/// assert!(rule.covers(&call(r#"{"from":"main","max":3}"#)));
/// assert!(!rule.covers(&call(r#"{"from":"main","max":30}"#)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRule {
    /// Name of the tool for the model; with a server also its name there.
    pub tool_name: ToolName,
    /// Arguments that the rule covers, in any order of keys; `None` covers all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Server of the tool; `None` covers all tools of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_label: Option<String>,
}

impl ApprovalRule {
    /// Covers all calls of a tool.
    pub fn of_tool(name: impl Into<ToolName>) -> Self {
        Self { tool_name: name.into(), arguments: None, server_label: None }
    }

    /// Covers all calls of the tool of `call`, on the same server.
    pub(super) fn of_its_tool(call: &ToolCall) -> Self {
        let server_label = server_of(&call.name).map(|(server, _)| server.to_owned());
        Self { tool_name: call.name.clone(), arguments: None, server_label }
    }

    /// Covers calls with the tool, server and arguments of this one.
    pub fn of_call(call: &ToolCall) -> Self {
        Self { arguments: Some(call.arguments.clone()), ..Self::of_its_tool(call) }
    }

    /// Whether the rule covers a call.
    pub fn covers(&self, call: &ToolCall) -> bool {
        self.names(&call.name) && self.arguments.as_ref().is_none_or(|known| equal(known, &call.arguments))
    }

    fn names(&self, name: &ToolName) -> bool {
        match (&self.server_label, server_of(name)) {
            (None, _) => self.tool_name == *name,
            (Some(label), Some((server, own))) => {
                label == server && (self.tool_name == *name || self.tool_name == *own)
            }
            (Some(_), None) => false,
        }
    }
}

/// The server of a tool, and the tool's name there. Names of servers' tools are made as `SERVER__TOOL`.
fn server_of(name: &ToolName) -> Option<(&str, &str)> {
    name.as_str().split_once("__").filter(|(server, own)| !server.is_empty() && !own.is_empty())
}

fn equal(left: &Json, right: &Json) -> bool {
    canonical::text(left) == canonical::text(right)
}
