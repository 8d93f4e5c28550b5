//! The ledger: how an execution survives its process.
//!
//! `flow:ID:start` holds the initial values of an execution, written before its first step. `flow:ID:step:00000001`
//! and the following keys hold one record per finished step: path, output, appended messages, changed state and
//! usage. A record is written atomically. Version 1.
//!
//! | the process ends | after a restore |
//! |---|---|
//! | in the first step | the execution exists, its ledger is empty |
//! | between two steps | the first is taken from the ledger, the rest runs |
//! | inside a round of a loop | finished rounds, and finished steps of this one, are taken |
//! | inside a parallel step | finished paths, and finished steps of the others, are taken |
//! | after a step's effect, before its record | the step runs again; the call of an `unsafe` tool is rejected with [`FlowError::OutcomeUnknown`](crate::FlowError::OutcomeUnknown) |
//! | inside the turn of a model step | the turn starts again; its earlier messages and usage are lost, and its calls are new calls |
//! | after the record | the step is taken, with its messages, state and usage |
//!
//! Usage of finished and failed steps counts. A finished step is taken with all its children, without looking at
//! changes to them: clear the execution after changing a flow. A different kind of step at a recorded path
//! discards the record.

mod ledger;
mod load;
mod record;

use harness_host::StorageError;

pub(crate) use ledger::Ledger;
pub(crate) use load::{Restored, clear, load};
pub(crate) use record::Beginning;

/// Bounds of recorded outputs. Messages, state and usage are always recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub(crate) max_entry_bytes: usize,
    pub(crate) max_entries: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_entry_bytes: 128 * 1024, max_entries: 1_000 }
    }
}

impl Retention {
    /// Keeps outputs of at most `max_entry_bytes` of JSON, and the last `max_entries` of them. A step without a
    /// recorded output runs again. `None` is unlimited.
    ///
    /// # Errors
    /// [`CheckpointError::Retention`] for a bound of 0.
    pub fn new(max_entry_bytes: Option<usize>, max_entries: Option<u64>) -> Result<Self, CheckpointError> {
        let zero = |field: &'static str| CheckpointError::Retention { field };
        let max_entry_bytes = max_entry_bytes.unwrap_or(usize::MAX);
        let max_entries = max_entries.unwrap_or(u64::MAX);
        match (max_entry_bytes, max_entries) {
            (0, _) => Err(zero("max_entry_bytes")),
            (_, 0) => Err(zero("max_entries")),
            _ => Ok(Self { max_entry_bytes, max_entries }),
        }
    }
}

/// Error of restoring or clearing an execution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The version of the records is not supported.
    #[error(
        "execution `{execution}` is recorded in version {found}; this program reads version {known}: \
             use the program that wrote it, or clear the execution"
    )]
    Version {
        /// Id of the execution.
        execution: String,
        /// Version of the records.
        found: u64,
        /// Supported version.
        known: u64,
    },
    /// The start record is damaged.
    #[error("cannot read the start record of execution `{execution}`: {problem}")]
    Damaged {
        /// Id of the execution.
        execution: String,
        /// Problem found in the record.
        problem: String,
    },
    /// A bound of 0 would keep nothing.
    #[error("invalid `{field}` of 0: expected at least 1, or none for unlimited")]
    Retention {
        /// Name of the setting.
        field: &'static str,
    },
}

impl CheckpointError {
    /// Stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Storage(_) => "CHECKPOINT_STORAGE",
            Self::Version { .. } => "CHECKPOINT_SCHEMA_MISMATCH",
            Self::Damaged { .. } => "CHECKPOINT_DAMAGED",
            Self::Retention { .. } => "STEP_LEDGER_RETENTION_INVALID",
        }
    }
}
