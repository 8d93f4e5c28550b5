//! Results of a backend's turn.

use harness_core::{Extra, Json, Time, slots, stored};
use serde::{Deserialize, Serialize};

use super::{ExecutionAttachment, ExecutionContinuation, ExecutionNegotiation, NegotiationReason};

slots! {
    ExecutionStatus => None,
    ExecutionErrorCode => Some(ExecutionErrorCode::Other),
    ExecutionSummary => Some(ExecutionSummary::default()),
    ExecutionEventKind => Some(ExecutionEventKind::Note),
}

/// How a backend's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionStatus {
    /// There is an answer.
    Completed,
    /// The backend asks something.
    NeedsClarification,
    /// The backend waits for a decision.
    AwaitingApproval,
    /// The backend stopped early and can continue.
    Deferred,
    /// It failed.
    Failed,
    /// The backend can not do what was asked for; nothing ran.
    Unsupported,
}

impl ExecutionStatus {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Kind of a backend's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionErrorCode {
    /// It can not do what was asked for.
    UnsupportedCapability,
    /// It failed.
    BackendExecutionError,
    /// Its output cannot be parsed.
    InvalidBackendOutput,
    /// The tools' way between host and backend broke.
    ToolBridgeError,
    /// No answer in time.
    Timeout,
    /// A budget ran out.
    BudgetExceeded,
    /// Anything else.
    #[serde(other)]
    Other,
}

impl ExecutionErrorCode {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

stored! {
    /// The result of a backend's turn.
    pub struct ExecutionResult {
        /// Id of the backend.
        backend_id: String = "backendId",
        /// How it ended.
        status: ExecutionStatus = "status",
        /// Output of the turn.
        output: Option<ExecutionOutput> = "output",
        /// Continuation for a later request.
        continuation: Option<ExecutionContinuation> = "continuation",
        /// Requested approval.
        approval_request: Option<ExecutionApproval> = "approvalRequest",
        /// Error of a failed turn.
        error: Option<ExecutionError> = "error",
        /// Trace of the execution.
        trace: Option<ExecutionTrace> = "trace",
        /// Requested features that were not available.
        degradation: Option<Vec<NegotiationReason>> = "degradation",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// Output of a backend.
    #[derive(Default)]
    pub struct ExecutionOutput {
        /// As text.
        text: Option<String> = "text",
        /// Attachments of the output.
        attachments: Option<Vec<ExecutionAttachment>> = "attachments",
        /// As data.
        structured: Option<Json> = "structured",
    }
}

stored! {
    /// Approval that a backend requests.
    #[derive(Default)]
    pub struct ExecutionApproval {
        /// Reason for the approval.
        reason: Option<String> = "reason",
        /// Reference for the decision.
        approval_key: Option<String> = "approvalKey",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// Error of a failed backend.
    pub struct ExecutionError {
        /// Kind of the error.
        code: ExecutionErrorCode = "code",
        /// Human-readable message.
        message: String = "message",
        /// Whether the same request may well work later.
        retryable: Option<bool> = "retryable",
        /// More: the exit code, the HTTP status, bounded parts of what came.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// Trace of a backend.
    #[derive(Default)]
    pub struct ExecutionTrace {
        /// In numbers.
        summary: ExecutionSummary = "summary",
        /// Step by step.
        events: Option<Vec<ExecutionEvent>> = "events",
    }
}

/// Counts of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ExecutionSummary {
    /// When it started.
    #[serde(with = "harness_core::iso::option", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(with = "harness_core::iso::option", skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Steps of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_count: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_count: Option<u64>,
    /// Whether less was done than was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<bool>,
}

/// Kind of an event in a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionEventKind {
    /// A model call started.
    ModelStarted,
    /// A model answered.
    ModelCompleted,
    /// A tool was called.
    ToolRequested,
    /// A tool answered.
    ToolCompleted,
    /// It waits for a decision.
    ApprovalWait,
    /// It stopped before the end.
    Deferred,
    /// It failed.
    Failure,
    /// Anything else.
    #[serde(other)]
    Note,
}

stored! {
    /// One thing that happened in a backend.
    pub struct ExecutionEvent {
        /// Kind of the event.
        kind: ExecutionEventKind = "type",
        /// When, as an ISO 8601 text.
        at: Option<String> = "at",
        /// More.
        data: Option<Json> = "data",
    }
}

impl ExecutionEvent {
    /// Something at a time.
    pub fn new(kind: ExecutionEventKind, at: Time, data: Option<Json>) -> Self {
        Self { kind, at: Some(at.iso()), data, extra: Extra::default() }
    }
}

impl ExecutionError {
    /// A failure that says nothing of another try.
    pub fn new(code: ExecutionErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: None, metadata: None, extra: Extra::default() }
    }

    /// Sets whether a retry may help.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }

    /// Sets additional data.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Json>) -> Self {
        self.metadata = metadata;
        self
    }
}

impl ExecutionResult {
    /// A result with a status and nothing else.
    pub fn new(backend_id: impl Into<String>, status: ExecutionStatus) -> Self {
        Self {
            backend_id: backend_id.into(),
            status,
            output: None,
            continuation: None,
            approval_request: None,
            error: None,
            trace: None,
            degradation: None,
            metadata: None,
            extra: Extra::default(),
        }
    }

    /// Creates a completed result.
    pub fn completed(backend_id: impl Into<String>, text: impl Into<String>) -> Self {
        let output = ExecutionOutput { text: Some(text.into()), ..ExecutionOutput::default() };
        Self { output: Some(output), ..Self::new(backend_id, ExecutionStatus::Completed) }
    }

    /// Creates a failed result.
    pub fn failed(backend_id: impl Into<String>, error: ExecutionError) -> Self {
        Self { error: Some(error), ..Self::new(backend_id, ExecutionStatus::Failed) }
    }

    /// Result for an unsupported request; nothing was sent or started.
    pub fn unsupported(backend_id: impl Into<String>, negotiation: ExecutionNegotiation) -> Self {
        let error = ExecutionError::new(ExecutionErrorCode::UnsupportedCapability, negotiation.describe());
        let summary = ExecutionSummary { degraded: Some(false), ..ExecutionSummary::default() };
        Self {
            error: Some(error),
            trace: Some(ExecutionTrace { summary, ..ExecutionTrace::default() }),
            degradation: Some(negotiation.reasons),
            ..Self::new(backend_id, ExecutionStatus::Unsupported)
        }
    }

    /// The text of the answer; empty when there is none.
    pub fn text(&self) -> &str {
        self.output.as_ref().and_then(|output| output.text.as_deref()).unwrap_or_default()
    }
}
