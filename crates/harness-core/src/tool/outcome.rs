//! Outcomes of tool calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::json::Json;
use crate::limits::Amount;
use crate::message::{ApprovalRequest, Block, ToolCall, ToolResultMessage, Usage};
use crate::object::JsonObject;
use crate::time::Time;
use crate::tool::IntoToolOutcome as _;

crate::wire_enum! {
    /// Status of a finished call.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ToolStatus {
        /// Succeeded.
        #[default]
        Success = "success",
        /// Failed; see the error.
        Failed = "failed",
        /// Cancelled, or never run.
        Cancelled = "cancelled",
        /// Exceeded its time limit.
        Timeout = "timeout",
    }
}

/// Error of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolError {
    /// Stable code.
    pub code: String,
    /// Message for the model and the user.
    pub message: String,
    /// Whether a retry may succeed. Default no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Data of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolError {
    /// Creates a permanent error.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: None, metadata: None }
    }

    /// Declares that a retry may succeed.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = Some(true);
        self
    }

    /// Sets the tool's data.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// Converts any displayable error, with the code `tool_execution_failed`, so that `?` works in a tool's function.
///
/// (`ToolError` does not implement `Display`, because this would conflict with the conversion into itself.)
impl<E: fmt::Display> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new("tool_execution_failed", error.to_string())
    }
}

/// Report of work that outlives its call: a background agent, or work that waits for approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Ongoing {
    /// Whether the work continues: the call's grant stays reserved until a later result settles it, or the run ends.
    pub keeps_grant: bool,
    /// Finished work of earlier calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<SettledGrant>,
    /// Requests of the work, such as that of a sub-agent, that wait for a person. With any, the call has no result yet: it is
    /// pending, and is performed again, with the same attempt and idempotency key, when it is granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalRequest>,
}

/// End of work that an earlier call started: the rest of its grant is released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettledGrant {
    /// Call that started the work.
    #[serde(rename = "callId")]
    pub call: CallId,
    /// Usage in addition to this result's [`ToolOutcome::usage`].
    pub spent: Amount,
}

/// Outcome of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutcome {
    /// Status.
    pub status: ToolStatus,
    /// Blocks for the model. For an error without content, the error's message is sent.
    #[serde(default)]
    pub content: Vec<Block>,
    /// Result as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Json>,
    /// Error, with a status other than `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ToolError>>,
    /// Reported usage, added to the turn's totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Arc<Usage>>,
    /// Actual usage of the call's grant (a sub-agent), even on failure.
    #[serde(default)]
    pub spent: Amount,
    /// Work that outlives its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ongoing: Option<Box<Ongoing>>,
    /// Whether the tool requests the end of the turn. It ends if every call of the batch does.
    #[serde(default)]
    pub terminate: bool,
    /// Exit code of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Data of the tool, for users and logs; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolOutcome {
    /// Creates a success with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::text(text)])
    }

    /// Creates a success with data; the model receives its JSON text.
    pub fn structured(value: Json) -> Self {
        let content = vec![Block::text(value.text())];
        Self { content, structured: Some(value), ..Self::default() }
    }

    /// Creates a success with blocks, for example images.
    pub fn blocks(content: Vec<Block>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Creates a permanent failure. The model receives the message.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::with_error(ToolStatus::Failed, code, message)
    }

    /// Creates a failure for which a retry may succeed.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Err::<(), _>(ToolError::new(code, message).retryable()).into_tool_outcome()
    }

    /// Creates the outcome of a call that did not succeed.
    pub fn with_error(status: ToolStatus, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, error: Some(Box::new(ToolError::new(code, message))), ..Self::default() }
    }

    /// Sets the [requests](Ongoing::approvals) for which the work of the call waits.
    #[must_use]
    pub fn waiting_for(mut self, approvals: impl IntoIterator<Item = ApprovalRequest>) -> Self {
        self.ongoing.get_or_insert_default().approvals.extend(approvals);
        self
    }

    /// The requests for which the work of the call waits.
    pub fn approvals(&self) -> &[ApprovalRequest] {
        self.ongoing.as_ref().map_or(&[], |ongoing| &ongoing.approvals)
    }

    /// Whether the call failed, was cancelled or timed out.
    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Success
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.is_error() && self.error.as_ref().and_then(|e| e.retryable) == Some(true)
    }

    /// Creates the result message of `call`.
    pub fn to_message(&self, call: &ToolCall, started: Option<Time>, at: Time) -> ToolResultMessage {
        let mut content = self.content.clone();
        if let (true, Some(error)) = (content.is_empty(), &self.error) {
            content.push(Block::text(error.message.clone()));
        }
        ToolResultMessage {
            structured: self.structured.clone(),
            outcome: self.wire_outcome(),
            details: self.metadata.clone(),
            terminate: self.terminate.then_some(true),
            duration_ms: started.map(|from| at.since(from).0),
            timestamp: Some(at.0),
            ..ToolResultMessage::new(call, content, self.is_error())
        }
    }

    /// Returns `{status, errorCode?, exitCode?, data?}`; `None` for a plain success.
    fn wire_outcome(&self) -> Option<Json> {
        if !self.is_error() && self.exit_code.is_none() {
            return None;
        }
        let error = self.error.as_ref();
        let outcome = JsonObject::default()
            .with("status", Some(self.status))
            .with("errorCode", error.map(|e| &e.code))
            .with("exitCode", self.exit_code)
            .with("data", error.and_then(|e| e.metadata.as_ref()));
        Some(outcome.json())
    }
}
