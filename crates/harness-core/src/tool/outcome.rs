//! What came of a tool call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::json::Json;
use crate::limits::Amount;
use crate::message::{Block, ToolCall, ToolResultMessage, Usage};
use crate::time::Time;

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// It worked.
    #[default]
    Success,
    /// It failed; the error says how.
    Failed,
    /// It was cancelled, or did not run at all.
    Cancelled,
    /// It did not answer in time.
    Timeout,
}

impl ToolStatus {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }
}

/// What went wrong in a tool.
///
/// ```
/// use harness_core::tool::{ToolError, ToolOutcome, ToolStatus};
///
/// let error = ToolError::new("busy", "the service is busy").retryable();
/// let mut outcome = ToolOutcome::with_error(ToolStatus::Timeout, "late", "no answer in time");
/// assert!(outcome.is_error() && error.retryable == Some(true));
/// outcome.exit_code = Some(124);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolError {
    /// A stable code.
    pub code: String,
    /// What happened, for the model and for people.
    pub message: String,
    /// Whether the same call may work when it is tried again. Absent counts as no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The tool's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolError {
    /// An error that trying again will not mend.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: None, metadata: None }
    }

    /// The same error, which may be gone when the call is tried again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = Some(true);
        self
    }

    /// The same error with the tool's own data.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// Whatever prints is an error of code `tool_execution_failed`. So `?` works in a tool's function.
///
/// (This type does not print itself, on purpose: it must not be converted into itself.)
impl<E: fmt::Display> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new("tool_execution_failed", error.to_string())
    }
}

/// What a result says of work that outlives its call (a background agent).
///
/// ```
/// use harness_core::limits::Amount;
/// use harness_core::tool::{Ongoing, SettledGrant, ToolOutcome};
///
/// // A call that only looks at work which an earlier one began, and which is over now.
/// let mut outcome = ToolOutcome::text("the report is written");
/// let mut ongoing = Ongoing::default();
/// ongoing.settled.push(SettledGrant::new("c1".into(), Amount::NONE));
/// outcome.ongoing = Some(Box::new(ongoing));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Ongoing {
    /// Work goes on that draws on this call's grant: the grant stays set aside until a later result settles
    /// it, or the run is over.
    pub keeps_grant: bool,
    /// Work that earlier calls had begun and that is over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<SettledGrant>,
}

/// Work is over that a call had begun: what is left of its grant is given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SettledGrant {
    /// The call that had begun it.
    #[serde(rename = "callId")]
    pub call: CallId,
    /// What it spent beyond what this result reports as [`ToolOutcome::usage`].
    pub spent: Amount,
}

impl SettledGrant {
    /// Work of a call that spent so much.
    pub fn new(call: CallId, spent: Amount) -> Self {
        Self { call, spent }
    }
}

/// What came of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutcome {
    /// How it ended.
    pub status: ToolStatus,
    /// What the model reads. For a failure without content, the error's message.
    #[serde(default)]
    pub content: Vec<Block>,
    /// The result as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Json>,
    /// What went wrong, with a status other than `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ToolError>>,
    /// What the call reports as used; added to the turn's totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Arc<Usage>>,
    /// What was really spent of the call's grant (a sub-agent), also when it failed.
    #[serde(default)]
    pub spent: Amount,
    /// What is said of work that outlives its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ongoing: Option<Box<Ongoing>>,
    /// Whether the tool asks to end the turn. It ends when every call of the batch asks.
    #[serde(default)]
    pub terminate: bool,
    /// The exit code, of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The tool's own data, for people and logs; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl ToolOutcome {
    /// A success with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::text(text)])
    }

    /// A success with data; the model reads its JSON text.
    pub fn structured(value: Json) -> Self {
        let content = vec![Block::text(value.text())];
        Self { content, structured: Some(value), ..Self::default() }
    }

    /// A success with blocks (images, for example).
    pub fn blocks(content: Vec<Block>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A failure that trying again will not mend. The model reads the message.
    pub fn error(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::with_error(ToolStatus::Failed, code, message)
    }

    /// A failure that may be gone when the call is tried again.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        let mut outcome = Self::error(code, message);
        if let Some(error) = &mut outcome.error {
            error.retryable = Some(true);
        }
        outcome
    }

    /// A call that ended with a status other than success.
    pub fn with_error(status: ToolStatus, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, error: Some(Box::new(ToolError::new(code, message))), ..Self::default() }
    }

    /// Whether the call failed, was cancelled or timed out.
    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Success
    }

    /// Whether the tool says that trying again may help.
    pub fn is_retryable(&self) -> bool {
        self.is_error() && self.error.as_ref().and_then(|e| e.retryable) == Some(true)
    }

    /// The message that answers `call` with this outcome.
    pub fn to_message(&self, call: &ToolCall, started: Option<Time>, at: Time) -> ToolResultMessage {
        let mut content = self.content.clone();
        if let (true, Some(error)) = (content.is_empty(), &self.error) {
            content.push(Block::text(error.message.clone()));
        }
        let mut message = ToolResultMessage::new(call, content, self.is_error());
        message.structured.clone_from(&self.structured);
        message.outcome = self.wire_outcome();
        message.details.clone_from(&self.metadata);
        message.terminate = self.terminate.then_some(true);
        message.duration_ms = started.map(|from| at.since(from).0);
        message.timestamp = Some(at.0);
        message
    }

    /// `{status, errorCode?, exitCode?, data?}`; absent for a plain success.
    fn wire_outcome(&self) -> Option<Json> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            status: ToolStatus,
            #[serde(skip_serializing_if = "Option::is_none")]
            error_code: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            exit_code: Option<i32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a Json>,
        }
        if !self.is_error() && self.exit_code.is_none() {
            return None;
        }
        let error = self.error.as_ref();
        Json::of(&Wire {
            status: self.status,
            error_code: error.map(|e| e.code.as_str()),
            exit_code: self.exit_code,
            data: error.and_then(|e| e.metadata.as_ref()),
        })
        .ok()
    }
}
