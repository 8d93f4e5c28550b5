//! How an execution outlives its process.
//!
//! Under `flow:ID:start` lies what an execution began with, written before its first step; under
//! `flow:ID:step:00000001` and so on one record for each finished step: its place, its output, the messages that
//! it added, the state that it changed, and what it spent. A record is written at once or not at all. Version 1.
//!
//! | the process ends | after a restore |
//! |---|---|
//! | in the first step of all | the execution is there, nothing is taken from the ledger |
//! | between two steps | the first is taken from the ledger, the rest runs |
//! | inside a round of a loop | finished rounds, and finished steps of this one, are taken |
//! | inside a parallel step | finished paths, and finished steps of the others, are taken |
//! | after a step's effect, before its record | the step runs again; a call of an `unsafe` tool is refused with [`FlowError::OutcomeUnknown`](crate::FlowError::OutcomeUnknown) |
//! | inside the turn of a model step | the turn begins again; what it had said and spent is not known, and calls that its model asks for again are new calls |
//! | after the record | the step is taken, with its messages, state and spending |
//!
//! What finished and failed steps spent counts. A finished step that holds others is taken whole, so a
//! change beneath it is not seen: clear the execution after a flow was changed. Another kind of step at the same
//! place discards what was recorded there.

mod ledger;
mod load;
mod record;

use harness_host::StorageError;

pub(crate) use ledger::Ledger;
pub(crate) use load::{Restored, clear, load};
pub(crate) use record::Beginning;

/// What the ledger keeps of outputs. Messages, state and spending are always kept.
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
    /// Outputs up to so many bytes of JSON, and the last so many of them; a step whose output is not kept runs
    /// again. `None` is no bound.
    ///
    /// # Errors
    /// [`CheckpointError::Retention`] when one is 0.
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

/// Why an execution cannot be restored, or its records not be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The records are of a version that this program does not know.
    #[error(
        "execution `{execution}` is recorded in version {found}; this program reads version {known}: \
             use the program that wrote it, or clear the execution"
    )]
    Version {
        /// The execution.
        execution: String,
        /// Its version.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// The record of the beginning is damaged.
    #[error("the beginning of execution `{execution}` cannot be read: {problem}")]
    Damaged {
        /// The execution.
        execution: String,
        /// What is wrong.
        problem: String,
    },
    /// A bound of 0 would keep nothing.
    #[error("`{field}` is 0: at least 1 is expected, or no bound")]
    Retention {
        /// The setting.
        field: &'static str,
    },
}

impl CheckpointError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Storage(_) => "CHECKPOINT_STORAGE",
            Self::Version { .. } => "CHECKPOINT_SCHEMA_MISMATCH",
            Self::Damaged { .. } => "CHECKPOINT_DAMAGED",
            Self::Retention { .. } => "STEP_LEDGER_RETENTION_INVALID",
        }
    }
}
