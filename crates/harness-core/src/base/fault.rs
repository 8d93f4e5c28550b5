//! A part of the system that failed.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A part of the system that failed. One word, since nearly everything can fail and seldom does; its fields
/// are reached through it.
///
/// ```
/// use harness_core::{Fault, FaultParts, FaultSource};
///
/// let fault = Fault::new(FaultSource::Tool, "unreachable", "the stock service does not answer");
/// assert_eq!(fault.to_string(), "tool: the stock service does not answer");
/// let FaultParts { code, .. } = fault.into_parts();
/// assert_eq!(&*code, "unreachable");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(transparent)]
#[error("{}: {}", self.source_part, self.message)]
pub struct Fault(Box<FaultParts>);

/// What a [`Fault`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FaultParts {
    /// Which part.
    #[serde(rename = "source")]
    pub source_part: FaultSource,
    /// A stable code.
    pub code: Arc<str>,
    /// What happened and what to do, for people. Never holds a secret.
    pub message: String,
}

impl Fault {
    /// A fault of a part, with a stable code and a message for people.
    pub fn new(part: FaultSource, code: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self(Box::new(FaultParts { source_part: part, code: code.into(), message: message.into() }))
    }

    /// What it says, to be taken apart.
    pub fn into_parts(self) -> FaultParts {
        *self.0
    }
}

impl Deref for Fault {
    type Target = FaultParts;

    fn deref(&self) -> &FaultParts {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut FaultParts {
        &mut self.0
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("source_part", &self.source_part)
            .field("code", &self.code)
            .field("message", &self.message)
            .finish()
    }
}

/// The parts that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultSource {
    /// The model port.
    Model,
    /// A tool, or the registry that lists tools.
    Tool,
    /// The source of agents: instructions, handoffs.
    Agent,
    /// A gate.
    Gate,
    /// A guardrail.
    Guardrail,
    /// The approver.
    Approver,
    /// A memory layer.
    Layer,
    /// The compactor.
    Compactor,
    /// The session.
    Session,
    /// The checkpoint store.
    Checkpoints,
    /// The source of steering messages.
    Steering,
    /// The source of facts for stop decisions.
    Facts,
    /// The machine itself.
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
