//! Where records are kept.

use std::path::PathBuf;

use harness_core::continuation::ContinuationKind;

use super::record::{ContinuationRecord, Status};

/// Keeps records.
///
/// A change is made against the revision that was read, so that of two who change a record at once only one
/// succeeds.
pub trait ContinuationStore: Send + Sync {
    /// The record with this id.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, id: &str) -> impl Future<Output = Result<Option<ContinuationRecord>, StoreError>> + Send;

    /// Writes a record whose revision is one more than that of what is stored; 1 when nothing is.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when something else is stored, or when the store cannot be written.
    fn put(&self, record: ContinuationRecord) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The records of a session, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn of_session(
        &self,
        session: &str,
    ) -> impl Future<Output = Result<Vec<ContinuationRecord>, StoreError>> + Send;

    /// Removes a record. Whether there was one.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Why a continuation could not be kept or taken up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The asynchronous runtime ended before the work on the store had started.
    #[error("the continuation store was not used: the asynchronous runtime is shutting down")]
    Stopped,
    /// There is no such record.
    #[error("there is no continuation record `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// It was taken up, or is over.
    #[error("continuation record `{id}` is {}", status.as_str())]
    AlreadyTerminal {
        /// The id.
        id: String,
        /// Where it stands.
        status: Status,
    },
    /// Its time is over.
    #[error("continuation record `{id}` has expired")]
    Expired {
        /// The id.
        id: String,
    },
    /// It was tried as often as permitted.
    #[error("continuation record `{id}` was tried {attempts} times, which is all that is permitted")]
    AttemptsUsed {
        /// The id.
        id: String,
        /// How often.
        attempts: u32,
    },
    /// What came is not what it waits for. The record is as it was.
    #[error("continuation record `{id}` waits for {expected}, and was given {given}")]
    TriggerMismatch {
        /// The id.
        id: String,
        /// What it waits for.
        expected: String,
        /// What came.
        given: String,
    },
    /// Somebody else changed the record at the same time. It may be tried again.
    #[error("continuation record `{id}` was changed by somebody else at the same time")]
    Conflict {
        /// The id.
        id: String,
    },
    /// Nothing was taken up that could be finished.
    #[error("continuation record `{id}` is {}, and so cannot be finished", status.as_str())]
    NotResuming {
        /// The id.
        id: String,
        /// Where it stands.
        status: Status,
    },
    /// A host waits for something that this kind of continuation cannot wait for.
    #[error("a continuation of kind {} cannot wait for {wait_for}", kind.as_str())]
    WrongWait {
        /// The kind.
        kind: ContinuationKind,
        /// What it was to wait for.
        wait_for: &'static str,
    },
    /// A stored record cannot be read, or is too large.
    #[error("continuation record `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused something.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

impl StoreError {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stopped => "continuation.stopped",
            Self::NotFound { .. } => "continuation.not_found",
            Self::AlreadyTerminal { .. } => "continuation.already_terminal",
            Self::Expired { .. } => "continuation.expired",
            Self::AttemptsUsed { .. } => "continuation.attempts_used",
            Self::TriggerMismatch { .. } => "continuation.trigger_mismatch",
            Self::Conflict { .. } => "continuation.conflict",
            Self::NotResuming { .. } => "continuation.not_resuming",
            Self::WrongWait { .. } => "continuation.wrong_wait",
            Self::Unreadable { .. } => "continuation.unreadable",
            Self::Io { .. } => "continuation.io",
        }
    }
}

/// Whether `record` may replace what is stored.
pub(super) fn check_revision(
    stored: Option<&ContinuationRecord>,
    record: &ContinuationRecord,
) -> Result<(), StoreError> {
    if stored.map_or(0, |stored| stored.revision).checked_add(1) == Some(record.revision) {
        return Ok(());
    }
    Err(StoreError::Conflict { id: record.id.clone() })
}

pub(super) fn belongs_to(record: &ContinuationRecord, session: &str) -> bool {
    record.continuation.session_id.as_ref().is_some_and(|id| *id == session)
}

pub(super) fn oldest_first(records: &mut [ContinuationRecord]) {
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
}
