//! Where the state of runs is kept between their phases.

use std::sync::Arc;

use super::{BoxFuture, SessionError};
use crate::ids::RunId;
use crate::json::Json;
use crate::time::Time;

/// The state of a run before one of its turns. Bounded: it never holds the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The run.
    pub run: RunId,
    /// Numbers the checkpoints of a run, from 1; set by the store.
    pub number: u64,
    /// When.
    pub at: Time,
    /// The version of `state`.
    pub schema_version: u32,
    /// Messages of the transcript at that time.
    pub messages: u64,
    /// The state.
    pub state: Arc<Json>,
}

impl Checkpoint {
    /// A checkpoint that has no number yet.
    pub fn new(run: RunId, at: Time, schema_version: u32, messages: u64, state: Arc<Json>) -> Self {
        Self { run, number: 0, at, schema_version, messages, state }
    }
}

/// Keeps the last checkpoints of runs. A run has one from its first moment on.
pub trait CheckpointStore: Send + Sync {
    /// Saves a checkpoint after the others of its run and gives its number. The store keeps a bounded number
    /// of them per run and lets go of the oldest.
    ///
    /// # Errors
    /// When it cannot be saved; the earlier ones are still there then.
    fn save(&self, checkpoint: Checkpoint) -> impl Future<Output = Result<u64, SessionError>> + Send;

    /// The last checkpoint of a run that can be read.
    ///
    /// # Errors
    /// When there are checkpoints and none can be read.
    fn latest(&self, run: &RunId) -> impl Future<Output = Result<Option<Checkpoint>, SessionError>> + Send;

    /// All runs that have a checkpoint, sorted.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn runs(&self) -> impl Future<Output = Result<Vec<RunId>, SessionError>> + Send;

    /// Removes all checkpoints of a run; none is no error.
    ///
    /// # Errors
    /// When they cannot be removed.
    fn clear(&self, run: &RunId) -> impl Future<Output = Result<(), SessionError>> + Send;
}

/// The object-safe twin of [`CheckpointStore`].
pub trait DynCheckpointStore: Send + Sync {
    /// [`CheckpointStore::save`], boxed.
    fn save_boxed(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<u64, SessionError>>;

    /// [`CheckpointStore::latest`], boxed.
    fn latest_boxed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Checkpoint>, SessionError>>;

    /// [`CheckpointStore::runs`], boxed.
    fn runs_boxed(&self) -> BoxFuture<'_, Result<Vec<RunId>, SessionError>>;

    /// [`CheckpointStore::clear`], boxed.
    fn clear_boxed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), SessionError>>;
}

impl<S: CheckpointStore> DynCheckpointStore for S {
    fn save_boxed(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<u64, SessionError>> {
        Box::pin(self.save(checkpoint))
    }

    fn latest_boxed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Checkpoint>, SessionError>> {
        Box::pin(self.latest(run))
    }

    fn runs_boxed(&self) -> BoxFuture<'_, Result<Vec<RunId>, SessionError>> {
        Box::pin(self.runs())
    }

    fn clear_boxed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(self.clear(run))
    }
}
