//! The state of a machine, to go on with later.

use serde::{Deserialize, Serialize};

use super::{Phase, Shared};

/// What [`super::Machine::snapshot`] holds: the state, and how much of the transcript belongs to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound = "P: Phase")]
#[non_exhaustive]
pub struct Snapshot<P: Phase> {
    /// The version of this form: 1.
    pub version: u32,
    pub(crate) shared: Shared,
    pub(crate) phase: P,
    /// What the last message of its transcript is known by; absent when there is none, and in earlier versions.
    #[serde(default)]
    pub(super) anchor: Option<String>,
}

/// The version of [`Snapshot`].
pub const SNAPSHOT_VERSION: u32 = 1;

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was made by a version that this one does not read.
    #[error("snapshot version {0} is not supported: this program reads version {SNAPSHOT_VERSION}")]
    Version(u32),
    /// The transcript has another length: the snapshot is stale; start from the transcript instead.
    #[error("the snapshot was made at {snapshot} messages, the transcript has {transcript}")]
    Stale {
        /// Messages that the snapshot knows.
        snapshot: usize,
        /// Messages that there are.
        transcript: usize,
    },
    /// The transcript holds another message where the snapshot was made: it belongs to another conversation.
    #[error("message {message} of the transcript is not the one that the snapshot was made at")]
    Foreign {
        /// Which message, from 1.
        message: usize,
    },
}
