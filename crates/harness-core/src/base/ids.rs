//! Names of things, each its own type.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::stored::Word;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// A shared text: cloning it costs one reference count.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Word::deserialize(deserializer).map(|Word(text)| Self(Arc::from(text)))
            }
        }

        impl $name {
            /// The name as text.
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
    /// Names an agent of a graph: the key under `agents` of a descriptor.
    AgentId,
    /// Names the question whether a call may run: `apr-` and 16 hex digits of the call's digest.
    ApprovalId,
    /// Names a stored content by the hash of its bytes: `sha256:` and 64 hex digits.
    ArtifactId,
    /// Binds a decision to one call of one run: 64 hex digits.
    CallDigest,
    /// Names one tool call: chosen by the provider, repeated in its result.
    CallId,
    /// Names one entry of a session.
    EntryId,
    /// Names a gate in events and results.
    GateName,
    /// Names a model in the form its provider expects.
    ModelName,
    /// Names one run.
    RunId,
    /// Names a stored session.
    SessionId,
    /// Names a thread: one conversation.
    ThreadId,
    /// The name under which a model calls a tool.
    ToolName,
    /// Names one turn.
    TurnId,
}

/// Numbers one operation that a machine asked its driver to perform; unique within a machine.
///
/// ```
/// assert_eq!(harness_core::OpId(3).to_string(), "op3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
