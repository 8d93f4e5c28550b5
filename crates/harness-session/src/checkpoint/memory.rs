//! Checkpoints in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use harness_core::RunId;
use harness_core::port::{Checkpoint, CheckpointStore, SessionError};
use parking_lot::Mutex;

use super::{KEPT, SUPPORTED};
use crate::error::Error;

/// Checkpoints that live as long as the process. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryCheckpoints {
    runs: Arc<Mutex<BTreeMap<RunId, VecDeque<Checkpoint>>>>,
    keep: usize,
    supported: u32,
}

impl Default for MemoryCheckpoints {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryCheckpoints {
    /// No checkpoints yet.
    pub fn new() -> Self {
        Self { runs: Arc::default(), keep: KEPT, supported: SUPPORTED }
    }

    /// How many checkpoints of a run are kept, at least one. Default 4.
    #[must_use]
    pub fn keep(mut self, most: usize) -> Self {
        self.keep = most.max(1);
        self
    }

    /// The newest version of a state that is given out; newer ones are refused. Default: that of
    /// `harness-core`.
    #[must_use]
    pub fn supporting(mut self, schema_version: u32) -> Self {
        self.supported = schema_version;
        self
    }
}

impl CheckpointStore for MemoryCheckpoints {
    async fn save(&self, mut checkpoint: Checkpoint) -> Result<u64, SessionError> {
        let mut runs = self.runs.lock();
        let kept = runs.entry(checkpoint.run.clone()).or_default();
        let number = kept.back().map_or(0, |last| last.number).saturating_add(1);
        checkpoint.number = number;
        kept.push_back(checkpoint);
        let over = kept.len().saturating_sub(self.keep);
        kept.drain(..over);
        Ok(number)
    }

    async fn latest(&self, run: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        let last = self.runs.lock().get(run).and_then(|kept| kept.back().cloned());
        last.map(|last| supported(last, self.supported)).transpose().map_err(SessionError::from)
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        Ok(self.runs.lock().keys().cloned().collect())
    }

    async fn clear(&self, run: &RunId) -> Result<(), SessionError> {
        self.runs.lock().remove(run);
        Ok(())
    }
}

/// The checkpoint, when its state is of a version that this program reads.
pub(crate) fn supported(checkpoint: Checkpoint, newest: u32) -> Result<Checkpoint, Error> {
    if checkpoint.schema_version <= newest {
        return Ok(checkpoint);
    }
    Err(Error::NewerCheckpoint {
        run: checkpoint.run,
        number: checkpoint.number,
        what: "state",
        found: checkpoint.schema_version.into(),
        supported: newest,
    })
}
