//! The last checkpoint of a run that can be read.

use std::path::PathBuf;

use harness_core::RunId;
use harness_core::port::Checkpoint;

use super::format::{CHECKPOINT_FORMAT_VERSION, Unreadable, decode};
use super::memory::supported;
use crate::error::{Error, Store};

/// The last checkpoint of a run that can be read, and what could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Recovered checkpoint.
    pub checkpoint: Checkpoint,
    /// Later ones that are damaged, the last one first. They were left as they are.
    pub damaged: Vec<DamagedCheckpoint>,
}

/// A checkpoint that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedCheckpoint {
    /// Number of the checkpoint.
    pub number: u64,
    /// Path of the file.
    pub path: PathBuf,
    /// Reason why it is unreadable.
    pub reason: String,
}

impl Recovered {
    /// The checkpoint; damaged ones are logged.
    pub(crate) fn logged(self, run: &RunId) -> Checkpoint {
        for DamagedCheckpoint { number, path, reason } in self.damaged {
            tracing::warn!(%run, number, path = %path.display(), reason, "a damaged checkpoint is passed over");
        }
        self.checkpoint
    }
}

/// A checkpoint as stored.
pub(crate) struct Stored {
    pub(crate) number: u64,
    /// The file or database.
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// The first of `found` that can be read; `None` without any. `found` are the checkpoints of a run, the last one first.
///
/// # Errors
/// When none can be read, when the last one is of a newer version, or the first error of `found`.
pub(crate) fn recover(
    run: &RunId,
    newest: u32,
    found: impl IntoIterator<Item = Result<Stored, Error>>,
) -> Result<Option<Recovered>, Error> {
    let mut damaged: Vec<DamagedCheckpoint> = Vec::new();
    for stored in found {
        let Stored { number, path, bytes } = stored?;
        match decode(&bytes, run, number) {
            Ok(checkpoint) => {
                let checkpoint = supported(checkpoint, newest)?;
                return Ok(Some(Recovered { checkpoint, damaged }));
            }
            Err(Unreadable::Newer(found)) => {
                let (run, supported) = (run.clone(), CHECKPOINT_FORMAT_VERSION);
                return Err(Error::NewerCheckpoint { run, number, what: "format", found, supported });
            }
            Err(Unreadable::Damaged(reason)) => damaged.push(DamagedCheckpoint { number, path, reason }),
        }
    }
    match damaged.into_iter().next() {
        None => Ok(None),
        Some(DamagedCheckpoint { path, reason, .. }) => {
            Err(Error::Damaged { store: Store::Checkpoints, path, reason })
        }
    }
}
