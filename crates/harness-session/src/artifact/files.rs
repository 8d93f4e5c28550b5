//! Artifacts as files in a directory.

use std::ops::Range;
use std::path::{Path, PathBuf};

use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, StorageError};
use serde::{Deserialize, Serialize};

use super::holders::{Holders, MOST_BYTES, Purged, digits, name, part};
use crate::blocking;
use crate::error::{Error, Store};
use crate::folder::Folder;

/// The largest file of holders that is read.
const HOLDERS_BYTES: u64 = 16 << 20;

/// The version of the files that name holders.
const VERSION: u32 = 1;

/// The file beside a content that names its holders.
#[derive(Serialize, Deserialize)]
struct Notes {
    version: u32,
    holders: Holders,
}

/// The files of one artifact.
struct Files {
    content: PathBuf,
    notes: PathBuf,
}

impl Files {
    /// Those of the artifact with these digits.
    fn of(digits: &str) -> Self {
        let (first, rest) = digits.split_at_checked(2).unwrap_or((digits, ""));
        let second = rest.get(..2).unwrap_or_default();
        let folder = Path::new(first).join(second);
        Self { content: folder.join(digits), notes: folder.join(format!("{digits}.json")) }
    }
}

/// Artifacts as files in a directory, each next to a small file that lists its holders:
/// `ab/cd/abcd…` and `ab/cd/abcd….json`, named by the hash.
///
/// A file appears only when it is complete and on stable storage, and the content exists before its
/// first holder. Content that does not match its hash is an error; storing the same bytes again
/// repairs it. Writers in several processes take turns through a lock file.
///
/// Files are read, written and hashed, and locks awaited, on a blocking thread of the tokio
/// runtime; in place without one.
#[derive(Clone, Debug)]
pub struct FolderArtifacts {
    folder: Folder,
    most_bytes: u64,
}

impl FolderArtifacts {
    /// Opens a directory of artifacts, and creates it if it does not exist, accessible only to its
    /// owner.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { folder: Folder::open(folder.into(), Store::Artifacts)?, most_bytes: MOST_BYTES })
    }

    /// The largest artifact, in bytes, for writing and reading. Default 64 MiB.
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

    /// Removes artifacts that have expired at `now` or have no holders, and unfinished files of
    /// killed writers.
    ///
    /// # Errors
    /// The directory cannot be listed, or a file cannot be read or removed. Earlier removals are
    /// kept.
    pub fn purge(&self, now: Time) -> Result<Purged, Error> {
        let _turn = self.folder.lock()?;
        self.folder.sweep()?;
        let mut purged = Purged::default();
        for content in self.contents()? {
            let files = Files::of(&content.to_string_lossy());
            let mut holders = self.holders(&files)?.unwrap_or_default();
            let changed = holders.expire(now);
            if holders.is_empty() {
                let metadata = std::fs::metadata(self.folder.path(&files.content));
                self.remove(&files)?;
                purged.add(metadata.map_or(0, |metadata| metadata.len()));
            } else if changed {
                self.note(&files, holders)?;
            }
        }
        Ok(purged)
    }

    /// The names of all contents.
    fn contents(&self) -> Result<Vec<PathBuf>, Error> {
        let mut contents = Vec::new();
        self.folder.walk(&mut |path, is_folder| {
            let name = path.file_name().unwrap_or_default();
            let own = name.to_str().is_some_and(|name| digits(&format!("sha256:{name}").into()).is_some());
            if !is_folder && own {
                contents.push(name.into());
            }
            true
        })?;
        Ok(contents)
    }

    fn store(&self, bytes: &[u8], meta: ArtifactMeta) -> Result<ArtifactId, Error> {
        let (id, size) = (name(bytes), bytes.len() as u64);
        if size > self.most_bytes {
            return Err(self.folder.too_large(id.as_str().to_owned(), size, self.most_bytes));
        }
        let Some(digits) = digits(&id) else { return Ok(id) };
        let files = Files::of(digits);
        let _turn = self.folder.lock()?;
        let mut holders = self.holders(&files)?.unwrap_or_default();
        holders.add(&id, size, meta)?;
        let there = self.folder.read(&files.content, size).ok().flatten();
        if there.as_deref() != Some(bytes) {
            self.folder.write(&files.content, bytes)?;
        }
        self.note(&files, holders)?;
        Ok(id)
    }

    fn find(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, Error> {
        let Some(digits) = digits(id) else { return Ok(None) };
        let files = Files::of(digits);
        let holders = self.holders(&files)?.unwrap_or_default();
        let Some(meta) = holders.seen_by(requester, now) else { return Ok(None) };
        let damaged = |reason| self.folder.damaged(&files.content, reason);
        let bytes = self.folder.read(&files.content, self.most_bytes)?;
        let bytes = bytes.ok_or_else(|| damaged("it is missing, although sessions hold it"))?;
        if name(&bytes) != *id {
            return Err(damaged("its bytes do not have the hash that names them"));
        }
        Ok(Some(part(&bytes, range, meta)))
    }

    /// Removes an artifact and returns whether it existed. Its holders are removed before its
    /// content.
    fn remove(&self, files: &Files) -> Result<bool, Error> {
        let held = self.folder.remove(&files.notes)?;
        Ok(self.folder.remove(&files.content)? || held)
    }

    fn holders(&self, files: &Files) -> Result<Option<Holders>, Error> {
        let Some(bytes) = self.folder.read(&files.notes, HOLDERS_BYTES)? else { return Ok(None) };
        let notes: Notes = serde_json::from_slice(&bytes)
            .map_err(|error| self.folder.damaged(&files.notes, error.to_string()))?;
        if notes.version > VERSION {
            let reason = format!("it has version {}, this program reads version {VERSION}", notes.version);
            return Err(self.folder.damaged(&files.notes, reason));
        }
        Ok(Some(notes.holders))
    }

    fn note(&self, files: &Files, holders: Holders) -> Result<(), Error> {
        let notes = Notes { version: VERSION, holders };
        let mut bytes = serde_json::to_vec(&notes)
            .map_err(|error| self.folder.damaged(&files.notes, error.to_string()))?;
        bytes.push(b'\n');
        self.folder.write(&files.notes, &bytes)
    }
}

impl ArtifactStore for FolderArtifacts {
    async fn put(&self, bytes: &[u8], meta: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let (store, bytes) = (self.clone(), bytes.to_vec());
        Ok(blocking::run(move || store.store(&bytes, meta)).await??)
    }

    async fn read(
        &self,
        id: &ArtifactId,
        range: Range<u64>,
        requester: Option<&SessionId>,
        now: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let (store, id, requester) = (self.clone(), id.clone(), requester.cloned());
        Ok(blocking::run(move || store.find(&id, range, requester.as_ref(), now)).await??)
    }

    async fn delete(&self, id: &ArtifactId) -> Result<bool, StorageError> {
        let Some(digits) = digits(id) else { return Ok(false) };
        let (store, files) = (self.clone(), Files::of(digits));
        let delete = move || {
            let _turn = store.folder.lock()?;
            store.remove(&files)
        };
        Ok(blocking::run(delete).await??)
    }
}
