//! Checkpoints of runs.

use std::sync::Arc;

use super::SessionError;
use crate::ids::RunId;
use crate::json::Json;
use crate::time::Time;
use crate::twin;

/// State of a run before one of its turns, without the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Run.
    pub run: RunId,
    /// Number of the checkpoint in its run, starting at 1; set by the store.
    pub number: u64,
    /// Time.
    pub at: Time,
    /// Version of `state`.
    pub schema_version: u32,
    /// Length of the transcript.
    pub messages: u64,
    /// State.
    pub state: Arc<Json>,
}

impl Checkpoint {
    /// Creates a checkpoint without a number.
    pub fn new(run: RunId, at: Time, schema_version: u32, messages: u64, state: Arc<Json>) -> Self {
        Self { run, number: 0, at, schema_version, messages, state }
    }
}

/// Stores the last checkpoints of runs. A run saves its first one when it starts.
///
/// ```
/// use std::sync::Mutex;
///
/// use harness_core::RunId;
/// use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
///
/// /// Stores the last checkpoint of one run.
/// #[derive(Default)]
/// struct Last(Mutex<Option<Checkpoint>>);
///
/// impl CheckpointStore for Last {
///     async fn save(&self, mut checkpoint: Checkpoint) -> Result<u64, SessionError> {
///         let mut last = self.0.lock().expect("no panic");
///         let number = last.as_ref().map_or(1, |last| last.number + 1);
///         checkpoint.number = number;
///         *last = Some(checkpoint);
///         Ok(number)
///     }
///
///     async fn latest(&self, run: &RunId) -> Result<Option<Checkpoint>, SessionError> {
///         Ok(self.0.lock().expect("no panic").clone().filter(|last| last.run == *run))
///     }
///
///     async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
///         Ok(self.0.lock().expect("no panic").iter().map(|last| last.run.clone()).collect())
///     }
///
///     async fn clear(&self, run: &RunId) -> Result<(), SessionError> {
///         self.0.lock().expect("no panic").take_if(|last| last.run == *run);
///         Ok(())
///     }
/// }
/// ```
pub trait CheckpointStore: Send + Sync {
    /// Saves a checkpoint and returns its number. A store keeps a bounded number of checkpoints per run, and removes the
    /// oldest.
    ///
    /// # Errors
    /// If it cannot be saved; earlier checkpoints are kept.
    fn save(&self, checkpoint: Checkpoint) -> impl Future<Output = Result<u64, SessionError>> + Send;

    /// Returns the last readable checkpoint of a run.
    ///
    /// # Errors
    /// If there are checkpoints, and none is readable.
    fn latest(&self, run: &RunId) -> impl Future<Output = Result<Option<Checkpoint>, SessionError>> + Send;

    /// Lists the runs that have a checkpoint, sorted.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn runs(&self) -> impl Future<Output = Result<Vec<RunId>, SessionError>> + Send;

    /// Removes all checkpoints of a run, if any.
    ///
    /// # Errors
    /// If they cannot be removed.
    fn clear(&self, run: &RunId) -> impl Future<Output = Result<(), SessionError>> + Send;
}

twin! {
    DynCheckpointStore of CheckpointStore {
        async fn save_boxed = save(checkpoint: Checkpoint) -> Result<u64, SessionError>;
        async fn latest_boxed = latest(run: &'a RunId) -> Result<Option<Checkpoint>, SessionError>;
        async fn runs_boxed = runs() -> Result<Vec<RunId>, SessionError>;
        async fn clear_boxed = clear(run: &'a RunId) -> Result<(), SessionError>;
    }
}
