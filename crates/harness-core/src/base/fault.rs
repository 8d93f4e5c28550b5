//! Errors of the parts of a run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Error of one part of a run: a model, a tool, a gate, a store.
///
/// ```
/// use harness_core::{Fault, FaultSource};
///
/// let fault = Fault::new(FaultSource::Tool, "unreachable", "the stock service does not answer");
/// assert_eq!(fault.to_string(), "tool: the stock service does not answer");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{}: {}", self.source_part, self.message)]
#[non_exhaustive]
pub struct Fault {
    /// Part that failed.
    #[serde(rename = "source")]
    pub source_part: FaultSource,
    /// Stable code.
    pub code: Arc<str>,
    /// Human-readable message: what failed and what to do. Never contains a secret.
    pub message: String,
}

impl Fault {
    /// Creates the error of a part.
    pub fn new(part: FaultSource, code: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self { source_part: part, code: code.into(), message: message.into() }
    }
}

/// Parts that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultSource {
    /// Model port.
    Model,
    /// Tool or tool registry.
    Tool,
    /// Agent source.
    Agent,
    /// Gate.
    Gate,
    /// Check of a prompt, an answer or a result.
    Guardrail,
    /// Approver.
    Approver,
    /// Memory layer.
    Layer,
    /// Compactor.
    Compactor,
    /// Session store.
    Session,
    /// Checkpoint store.
    Checkpoints,
    /// Source of steering messages.
    Steering,
    /// Source of facts for stop decisions.
    Facts,
    /// The state machine itself.
    Machine,
}

impl fmt::Display for FaultSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Gate => "gate",
            Self::Guardrail => "guardrail",
            Self::Approver => "approver",
            Self::Layer => "memory layer",
            Self::Compactor => "compactor",
            Self::Session => "session",
            Self::Checkpoints => "checkpoint store",
            Self::Steering => "steering",
            Self::Facts => "source of facts",
            Self::Machine => "machine",
        })
    }
}
