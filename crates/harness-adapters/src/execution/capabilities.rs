//! Capabilities of backends, and requirements of requests.

use serde::{Deserialize, Serialize};

/// How a backend uses tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolUse {
    /// Not at all.
    #[default]
    None,
    /// The adapter carries calls and results between the backend and the host.
    AdapterMediated,
    /// The backend runs its own loop of calls.
    NativeIterative,
}

/// How a backend resumes deferred work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Support {
    /// Not at all.
    #[default]
    None,
    /// By an id that only the backend understands.
    OpaqueResume,
    /// By data that the host understands.
    Structured,
    /// Provided by the adapter.
    AdapterMediated,
    /// The backend does it itself.
    Native,
}

/// Detail of a backend's trace; ordered.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceDepth {
    /// Start and end.
    #[default]
    Minimal,
    /// The steps between, too.
    Standard,
    /// The steps with what went in and out.
    Detailed,
}

impl TraceDepth {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Size of context that a backend accepts. Informational: no rule reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextStrategy {
    /// Not known.
    Unknown,
    /// A few thousand tokens.
    Small,
    /// Tens of thousands.
    Medium,
    /// Hundreds of thousands.
    Large,
}

/// Capabilities of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecutionCapabilities {
    /// Whether it uses tools, and how.
    pub tool_use: ToolUse,
    /// Whether its calls come back as data.
    pub structured_tool_calls: bool,
    /// Support for continuations: `none`, `opaque-resume` or `structured`.
    pub continuation_support: Support,
    /// Whether it can stop for an approval: `none`, `adapter-mediated` or `native`.
    pub approval_interrupts: Support,
    /// Detail of the trace.
    pub trace_depth: TraceDepth,
    /// Whether it takes attachments.
    pub attachments: bool,
    /// How large a context it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context_strategy: Option<ContextStrategy>,
    /// Human-readable notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Vec<String>>,
}

impl ExecutionCapabilities {
    /// Text in, text out.
    pub fn none() -> Self {
        Self {
            tool_use: ToolUse::None,
            structured_tool_calls: false,
            continuation_support: Support::None,
            approval_interrupts: Support::None,
            trace_depth: TraceDepth::Minimal,
            attachments: false,
            max_context_strategy: None,
            notes: None,
        }
    }

    /// Adds human-readable notes.
    #[must_use]
    pub fn with_notes<S: Into<String>>(mut self, notes: impl IntoIterator<Item = S>) -> Self {
        self.notes = Some(notes.into_iter().map(Into::into).collect());
        self
    }
}

/// Whether a request wants something that a backend may use: tools, attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Usefulness {
    /// It must not.
    Forbidden,
    /// It may.
    Allowed,
    /// It must be able to.
    Required,
}

/// How much a request wants something of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Requested {
    /// It must not be used.
    Forbidden,
    /// Not needed.
    None,
    /// Optional: without it, the request is degraded.
    Preferred,
    /// The request is not supported without.
    Required,
}

/// The requirements of a request for a backend. A field that is `None` requires nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ExecutionRequirements {
    /// Tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use: Option<Usefulness>,
    /// Calls as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_tool_calls: Option<Requested>,
    /// Required support for continuations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_support: Option<Requested>,
    /// To stop for approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_interrupts: Option<Requested>,
    /// Required detail of the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_depth: Option<TraceDepth>,
    /// Attachments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Usefulness>,
}
