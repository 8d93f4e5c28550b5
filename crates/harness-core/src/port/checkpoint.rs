//! Where the state of runs is kept between their phases.

use std::sync::Arc;

use super::SessionError;
use crate::ids::RunId;
use crate::json::Json;
use crate::time::Time;
use crate::twin;

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
///
/// ```
/// use std::sync::Mutex;
///
/// use harness_core::RunId;
/// use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
///
/// /// Keeps the last checkpoint of one run.
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

twin! {
    DynCheckpointStore of CheckpointStore {
        async fn save_boxed = save(checkpoint: Checkpoint) -> Result<u64, SessionError>;
        async fn latest_boxed = latest(run: &'a RunId) -> Result<Option<Checkpoint>, SessionError>;
        async fn runs_boxed = runs() -> Result<Vec<RunId>, SessionError>;
        async fn clear_boxed = clear(run: &'a RunId) -> Result<(), SessionError>;
    }
}
