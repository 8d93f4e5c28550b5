//! Results of calls for the model.

use harness_core::message::Block;
use harness_core::tool::{RetryClass, ToolOutcome, ToolStatus};
use harness_core::{Json, Millis};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::content::{blocks, fitted};
use super::fault::McpFault;
use crate::command::TimeLimit;

/// Tool and server of a call, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) class: RetryClass,
}

impl Called<'_> {
    fn server(&self) -> String {
        format!("the MCP server `{}`", self.server)
    }

    /// Possible effects of a call that was sent and not answered.
    fn effects(&self) -> &'static str {
        match self.class {
            RetryClass::Pure => "which only reads and can be called again",
            RetryClass::Idempotent => {
                "which may have had effects and can be called again with the same arguments"
            }
            RetryClass::Unsafe => "which may have had effects: find out before you call it again",
        }
    }

    /// Result of a tool.
    pub(super) fn done(&self, result: CallToolResult, max_output: usize) -> ToolOutcome {
        let failed = result.is_error == Some(true);
        let mut content = blocks(result.content, max_output);
        let structured = result.structured_content.map(Json::from);
        if let (true, Some(data)) = (content.is_empty(), &structured) {
            content.push(Block::text(fitted(data.text(), &mut { max_output })));
        }
        let mut outcome = if failed {
            let said = content.iter().find_map(|block| block.as_text());
            let message =
                said.map_or_else(|| format!("`{}` failed and said nothing", self.tool), str::to_owned);
            ToolOutcome::error("mcp_tool_failed", message)
        } else {
            if content.is_empty() {
                content.push(Block::text("(no output)"));
            }
            ToolOutcome::default()
        };
        outcome.content = content;
        outcome.metadata = result.meta.map(|meta| json!({ "_meta": meta }).into());
        // Data beyond the bound would weigh on the session for ever; the text says what it was.
        outcome.structured = structured.filter(|data| data.text().len() <= max_output);
        outcome
    }

    /// An error of the protocol, in answer to the call.
    pub(super) fn refused(&self, error: &ErrorData, message: &str) -> ToolOutcome {
        let code = error.code.0;
        let text = format!("{} answered with error {code}: {message}", self.server());
        let mut data = json!({ "code": code });
        if let (Some(object), Some(more)) = (data.as_object_mut(), &error.data) {
            object.insert("data".to_owned(), bounded(more));
        }
        with_metadata(ToolOutcome::error("mcp_error", text), data)
    }

    /// The call was never sent.
    pub(super) fn unavailable(&self, fault: &McpFault) -> ToolOutcome {
        let hint = fault.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        let text =
            format!("{} cannot be used, and `{}` was not called: {fault}{hint}", self.server(), self.tool);
        with_metadata(ToolOutcome::error("mcp_unavailable", text), json!({ "cause": fault.kind() }))
    }

    /// The connection ended while the call was under way.
    pub(super) fn lost(&self, fault: &McpFault) -> ToolOutcome {
        let too_long = matches!(fault, McpFault::MessageTooLong { .. });
        let code = if too_long { "mcp_message_too_long" } else { "mcp_server_lost" };
        let (server, effects) = (self.server(), self.effects());
        let text = format!("{server} was lost during the call of `{}`, {effects}; {fault}", self.tool);
        let mut outcome = ToolOutcome::error(code, text);
        if let (true, Some(error)) = (self.class != RetryClass::Unsafe, &mut outcome.error) {
            error.retryable = Some(true);
        }
        with_metadata(outcome, json!({ "cause": fault.kind() }))
    }

    /// The answer is not what the protocol asks for.
    pub(super) fn unusable(&self, problem: &str) -> ToolOutcome {
        let (server, effects) = (self.server(), self.effects());
        let text = format!("{server} answered the call of `{}`, {effects}; but {problem}", self.tool);
        ToolOutcome::error("mcp_unusable_answer", text)
    }

    /// The server has no such tool.
    pub(super) fn unknown(&self) -> ToolOutcome {
        let text = format!("{} has no tool `{}`", self.server(), self.tool);
        ToolOutcome::error("mcp_unknown_tool", text)
    }

    /// The time is over. `sent`: the server had got the call.
    pub(super) fn too_late(&self, limit: TimeLimit, sent: bool) -> ToolOutcome {
        let span = Millis::from(limit.span());
        let within = match limit {
            TimeLimit::Timeout(_) => format!("within {span}"),
            TimeLimit::Deadline(_) => format!("in the {span} that were left of the turn"),
        };
        let text = if sent {
            let (server, effects) = (self.server(), self.effects());
            format!("{server} did not respond {within}; the call of `{}` was cancelled, {effects}", self.tool)
        } else {
            format!("{} was not ready {within}, and `{}` was not called", self.server(), self.tool)
        };
        ToolOutcome::with_error(ToolStatus::Timeout, "timeout", text)
    }

    /// Result of a cancelled call.
    pub(super) fn cancelled(&self, sent: bool) -> ToolOutcome {
        let text = if sent {
            let (server, effects) = (self.server(), self.effects());
            format!("the call of `{}` on {server} was cancelled, {effects}", self.tool)
        } else {
            format!("`{}` was not called: the call was cancelled", self.tool)
        };
        ToolOutcome::with_error(ToolStatus::Cancelled, "cancelled", text)
    }
}

/// Data of a server's error, unless it is long.
fn bounded(data: &Value) -> Value {
    const MOST: usize = 4096;
    let text = data.to_string();
    if text.len() <= MOST { data.clone() } else { Value::String(fitted(&text, &mut { MOST })) }
}

fn with_metadata(mut outcome: ToolOutcome, data: Value) -> ToolOutcome {
    if let Some(error) = &mut outcome.error {
        error.metadata = Some(data.into());
    }
    outcome
}
