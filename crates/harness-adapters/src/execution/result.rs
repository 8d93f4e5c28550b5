//! What came of a backend's turn.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionStatus {
    /// There is an answer.
    Completed,
    /// The backend asks something.
    NeedsClarification,
    /// The backend waits for a decision.
    AwaitingApproval,
    /// The backend stopped before the end and can go on.
    Deferred,
    /// It failed.
    Failed,
    /// The backend can not do what was asked for; nothing ran.
    Unsupported,
}

impl ExecutionStatus {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NeedsClarification => "needs_clarification",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Deferred => "deferred",
            Self::Failed => "failed",
            Self::Unsupported => "unsupported",
        }
    }
}

/// Why a backend failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionErrorCode {
    /// It can not do what was asked for.
    UnsupportedCapability,
    /// It failed.
    BackendExecutionError,
    /// What it said can not be understood.
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
        match self {
            Self::UnsupportedCapability => "unsupported_capability",
            Self::BackendExecutionError => "backend_execution_error",
            Self::InvalidBackendOutput => "invalid_backend_output",
            Self::ToolBridgeError => "tool_bridge_error",
            Self::Timeout => "timeout",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Other => "other",
        }
    }
}

stored! {
    /// The result of a backend's turn.
    pub struct ExecutionResult {
        /// The backend.
        backend_id: String = "backendId",
        /// How it ended.
        status: ExecutionStatus = "status",
        /// What it said.
        output: Option<ExecutionOutput> = "output",
        /// What it can go on with.
        continuation: Option<ExecutionContinuation> = "continuation",
        /// What it wants to be allowed.
        approval_request: Option<ExecutionApproval> = "approvalRequest",
        /// Why it failed.
        error: Option<ExecutionError> = "error",
        /// What it did.
        trace: Option<ExecutionTrace> = "trace",
        /// What was asked for and left out.
        degradation: Option<Vec<NegotiationReason>> = "degradation",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// What a backend said.
    #[derive(Default)]
    pub struct ExecutionOutput {
        /// As text.
        text: Option<String> = "text",
        /// What comes with it.
        attachments: Option<Vec<ExecutionAttachment>> = "attachments",
        /// As data.
        structured: Option<Json> = "structured",
    }
}

stored! {
    /// What a backend wants to be allowed.
    #[derive(Default)]
    pub struct ExecutionApproval {
        /// Why.
        reason: Option<String> = "reason",
        /// What an answer refers to.
        approval_key: Option<String> = "approvalKey",
        /// More.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// Why a backend failed.
    pub struct ExecutionError {
        /// The sort.
        code: ExecutionErrorCode = "code",
        /// For people.
        message: String = "message",
        /// Whether the same request may well work later.
        retryable: Option<bool> = "retryable",
        /// More: the exit code, the HTTP status, bounded parts of what came.
        metadata: Option<Json> = "metadata",
    }
}

stored! {
    /// What a backend did.
    #[derive(Default)]
    pub struct ExecutionTrace {
        /// In numbers.
        summary: ExecutionSummary = "summary",
        /// Step by step.
        events: Option<Vec<ExecutionEvent>> = "events",
    }
}

/// What a backend did, in numbers.
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

/// What sort of thing happened in a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecutionEventKind {
    /// A model was asked.
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
        /// What.
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

    /// The same with a word on whether another try may help.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }

    /// The same with more data.
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

    /// An answer.
    pub fn completed(backend_id: impl Into<String>, text: impl Into<String>) -> Self {
        let output = ExecutionOutput { text: Some(text.into()), ..ExecutionOutput::default() };
        Self { output: Some(output), ..Self::new(backend_id, ExecutionStatus::Completed) }
    }

    /// A failure.
    pub fn failed(backend_id: impl Into<String>, error: ExecutionError) -> Self {
        Self { error: Some(error), ..Self::new(backend_id, ExecutionStatus::Failed) }
    }

    /// What every backend answers to a request that it does not support: nothing was sent or started.
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
