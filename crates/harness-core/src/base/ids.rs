//! Ids and names, each a separate type.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::stored::Word;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Shared text: a clone costs one reference count.
        #[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Word::deserialize(deserializer).map(|Word(text)| Self(Arc::from(text)))
            }
        }

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                *self.0 == *other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                *self.0 == **other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}

ids! {
    /// Id of an agent: the key under `agents` of a descriptor.
    AgentId,
    /// Id of an approval request: `apr-` and 16 hex digits of the call's digest.
    ApprovalId,
    /// Id of stored content: `sha256:` and 64 hex digits.
    ArtifactId,
    /// Digest that binds a decision to one call of one run: 64 hex digits.
    CallDigest,
    /// Id of a tool call, chosen by the provider and repeated in its result.
    CallId,
    /// Id of a session entry.
    EntryId,
    /// Name of a gate or a check, in events and results.
    GateName,
    /// Name of a model, in the form its provider expects.
    ModelName,
    /// Id of a run.
    RunId,
    /// Id of a stored session.
    SessionId,
    /// Id of a thread.
    ThreadId,
    /// Name under which a model calls a tool.
    ToolName,
    /// Id of a turn.
    TurnId,
}

/// Number of an operation, unique within a machine.
///
/// ```
/// assert_eq!(harness_core::OpId(3).to_string(), "op3");
/// ```
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct OpId(pub u64);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.0)
    }
}

crate::slots! {
    CallId => None,
    ToolName => None,
}
