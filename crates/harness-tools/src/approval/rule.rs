//! Approvals that stand.

use harness_core::message::ToolCall;
use harness_core::{Json, ToolName, canonical};
use serde::{Deserialize, Serialize};

/// Calls that need not be asked about any more. As JSON `{tool_name, arguments?, server_label?}`.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_tools::ApprovalRule;
///
/// let call = |arguments| ToolCall::new("c", "git__log", Json::parse(arguments).unwrap_or_default());
/// let rule = ApprovalRule::of_tool("log").of_server("git");
/// assert!(rule.covers(&call("{}")));
/// let rule = ApprovalRule::of_call(&call(r#"{"max":3,"from":"main"}"#));
/// assert!(rule.covers(&call(r#"{"from":"main","max":3}"#)));
/// assert!(!rule.covers(&call(r#"{"from":"main","max":30}"#)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRule {
    /// The tool, by the name that the model calls; with a server also by its name there.
    pub tool_name: ToolName,
    /// The only arguments that it holds for, whatever the order of their keys; `None` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// The server that the tool must be of; `None` is any, and tools of no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_label: Option<String>,
}

impl ApprovalRule {
    /// Every call of a tool.
    pub fn of_tool(name: impl Into<ToolName>) -> Self {
        Self { tool_name: name.into(), arguments: None, server_label: None }
    }

    /// Every call of the tool of `call`, of the same server.
    pub(super) fn of_its_tool(call: &ToolCall) -> Self {
        let server_label = server_of(&call.name).map(|(server, _)| server.to_owned());
        Self { tool_name: call.name.clone(), arguments: None, server_label }
    }

    /// Calls like this one: the same tool of the same server with equal arguments.
    pub fn of_call(call: &ToolCall) -> Self {
        Self { arguments: Some(call.arguments.clone()), ..Self::of_its_tool(call) }
    }

    /// The same rule for tools of one server.
    #[must_use]
    pub fn of_server(mut self, label: impl Into<String>) -> Self {
        self.server_label = Some(label.into());
        self
    }

    /// Whether a call need not be asked about.
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
