//! Checkpoints as files in a directory.

use std::path::{Path, PathBuf};

use harness_core::RunId;
use harness_core::port::{Checkpoint, CheckpointStore, SessionError};

use super::format::encode;
use super::recover::{Recovered, Stored, recover};
use super::{KEPT, MOST_BYTES, SUPPORTED};
use crate::blocking;
use crate::error::{Error, Store};
use crate::folder::Folder;

/// Suffix of a run's directory.
const RUN: &str = ".run";

/// Checkpoints as small numbered files, in one directory per run: `RUN.run/000000000007.json`.
///
/// A file appears only when it is complete and on stable storage, and contains its own hash. The
/// last few of a run are kept, so that a damaged one costs one turn and not the run:
/// [`FileCheckpoints::recover`] falls back to the previous one and reports it. Writers in several
/// processes take turns through a lock file.
///
/// Files are read and written, and locks awaited, on a blocking thread of the tokio runtime; in
/// place without one.
#[derive(Clone, Debug)]
pub struct FileCheckpoints {
    folder: Folder,
    keep: usize,
    supported: u32,
    most_bytes: u64,
}

impl FileCheckpoints {
    /// Opens a directory of checkpoints, and creates it if it does not exist, accessible only to
    /// its owner. Unfinished files of killed writers are removed.
    ///
    /// # Errors
    /// The directory cannot be created or cleaned.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = Folder::open(folder.into(), Store::Checkpoints)?;
        let turn = folder.lock()?;
        folder.sweep()?;
        drop(turn);
        Ok(Self { folder, keep: KEPT, supported: SUPPORTED, most_bytes: MOST_BYTES })
    }

    /// How many checkpoints of a run are kept, at least one. Default 4.
    #[must_use]
    pub fn keep(mut self, most: usize) -> Self {
        self.keep = most.max(1);
        self
    }

    /// The newest version of a state that is given out; newer ones are refused, and no older checkpoint is
    /// taken in their place. Default: that of `harness-core`.
    #[must_use]
    pub fn supporting(mut self, schema_version: u32) -> Self {
        self.supported = schema_version;
        self
    }

    /// The largest checkpoint, in bytes, for writing and reading. Default 16 MiB.
    #[must_use]
    pub fn most_bytes(mut self, most: u64) -> Self {
        self.most_bytes = most;
        self
    }

    /// Lets `faults` break changes to the disk.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn faults(mut self, faults: &crate::testing::Faults) -> Self {
        self.folder.disk = faults.disk();
        self
    }

    /// The last checkpoint of a run that can be read, and the damaged ones after it; `None` when the run has
    /// no checkpoint.
    ///
    /// # Errors
    /// When there are checkpoints and none can be read, when the last one is of a newer version, or when the
    /// operating system refuses.
    pub fn recover(&self, run: &RunId) -> Result<Option<Recovered>, Error> {
        let numbers = self.numbers(run)?;
        // Another writer may have removed one meanwhile.
        let found = numbers.into_iter().rev().filter_map(|number| self.stored(run, number).transpose());
        recover(run, self.supported, found)
    }

    fn stored(&self, run: &RunId, number: u64) -> Result<Option<Stored>, Error> {
        let file = self.file(run, number)?;
        let bytes = self.folder.read(&file, self.most_bytes)?;
        Ok(bytes.map(|bytes| Stored { number, path: self.folder.path(file), bytes }))
    }

    fn save_now(&self, mut checkpoint: Checkpoint) -> Result<u64, Error> {
        let run = checkpoint.run.clone();
        let _turn = self.folder.lock()?;
        let numbers = self.numbers(&run)?;
        let number = numbers.last().copied().unwrap_or(0).saturating_add(1);
        let file = self.file(&run, number)?;
        checkpoint.number = number;
        let bytes = encode(&checkpoint).map_err(|error| self.folder.damaged(&file, error.to_string()))?;
        if bytes.len() as u64 > self.most_bytes {
            let name = format!("{number} of run {run}");
            return Err(self.folder.too_large(name, bytes.len() as u64, self.most_bytes));
        }
        self.folder.write(&file, &bytes)?;
        let over = numbers.len().saturating_add(1).saturating_sub(self.keep);
        for old in numbers.into_iter().take(over) {
            // The new one is safe: an old one that stays does no harm, and goes with a later save.
            if let Err(error) = self.folder.remove(&self.file(&run, old)?) {
                tracing::warn!(%error, "an old checkpoint stays");
            }
        }
        Ok(number)
    }

    fn clear_now(&self, run: &RunId) -> Result<(), Error> {
        let _turn = self.folder.lock()?;
        for number in self.numbers(run)? {
            self.folder.remove(&self.file(run, number)?)?;
        }
        self.folder.remove_folder(&self.folder.file_of(run.as_str(), RUN)?)
    }

    fn file(&self, run: &RunId, number: u64) -> Result<PathBuf, Error> {
        Ok(self.folder.file_of(run.as_str(), RUN)?.join(format!("{number:012}.json")))
    }

    /// The numbers of a run's checkpoints, in order.
    fn numbers(&self, run: &RunId) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        self.folder.walk_below(&self.folder.file_of(run.as_str(), RUN)?, &mut |path, _| {
            numbers.extend(number_of(path));
            false
        })?;
        numbers.sort_unstable();
        Ok(numbers)
    }
}

fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()
}

impl CheckpointStore for FileCheckpoints {
    async fn save(&self, checkpoint: Checkpoint) -> Result<u64, SessionError> {
        let store = self.clone();
        Ok(blocking::run(move || store.save_now(checkpoint)).await??)
    }

    /// [`FileCheckpoints::recover`]; damaged checkpoints are logged.
    async fn latest(&self, run: &RunId) -> Result<Option<Checkpoint>, SessionError> {
        let (store, wanted) = (self.clone(), run.clone());
        let recovered = blocking::run(move || store.recover(&wanted)).await??;
        Ok(recovered.map(|recovered| recovered.logged(run)))
    }

    async fn runs(&self) -> Result<Vec<RunId>, SessionError> {
        let store = self.clone();
        let keys = blocking::run(move || store.folder.keys(RUN)).await??;
        Ok(keys.into_iter().map(RunId::from).collect())
    }

    async fn clear(&self, run: &RunId) -> Result<(), SessionError> {
        let (store, run) = (self.clone(), run.clone());
        Ok(blocking::run(move || store.clear_now(&run)).await??)
    }
}
