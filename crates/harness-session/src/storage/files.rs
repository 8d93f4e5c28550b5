//! Values as files in a directory.

use std::path::{Path, PathBuf};

use harness_core::Json;
use harness_host::{Storage, StorageError};

use crate::blocking;
use crate::error::{Error, Store};
use crate::folder::Folder;
use crate::storage::VALUE_BYTES;

const SUFFIX: &str = ".json";

/// Values as JSON files in a directory. The file name is the percent-encoded key; the rest of a
/// long one is in a subdirectory. A key has at most 1,000 bytes.
///
/// A write is complete and on stable storage before it replaces the earlier value, so there is
/// always the old value or the new one. Writers in several processes take turns through a lock
/// file. A file with invalid JSON is an error when its key is read, never an absent value.
///
/// Files are read and written, and locks awaited, on a blocking thread of the tokio runtime; in
/// place without one.
#[derive(Clone, Debug)]
pub struct FolderStorage {
    folder: Folder,
    value_bytes: u64,
}

impl FolderStorage {
    /// Opens a directory of values, and creates it if it does not exist, accessible only to its
    /// owner. Unfinished files of killed writers are removed.
    ///
    /// # Errors
    /// The directory cannot be created or cleaned.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = Folder::open(folder.into(), Store::Storage)?;
        let turn = folder.lock()?;
        folder.sweep()?;
        drop(turn);
        Ok(Self { folder, value_bytes: VALUE_BYTES })
    }

    /// The largest value, in bytes of its JSON text, for writing and reading. Default 16 MiB.
    #[must_use]
    pub fn value_bytes(mut self, most: u64) -> Self {
        self.value_bytes = most;
        self
    }

    /// Lets `faults` break changes to the disk.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn faults(mut self, faults: &crate::testing::Faults) -> Self {
        self.folder.disk = faults.disk();
        self
    }

    fn read(&self, key: &str) -> Result<Option<Json>, Error> {
        let file = self.folder.file_of(key, SUFFIX)?;
        let Some(bytes) = self.folder.read(&file, self.value_bytes.saturating_add(1))? else {
            return Ok(None);
        };
        let damaged = |reason: String| self.folder.damaged(&file, reason);
        let text = std::str::from_utf8(&bytes).map_err(|error| damaged(error.to_string()))?;
        // The reader's own text may quote the value.
        let place = |error: serde_json::Error| damaged(place_of(&error));
        Json::parse(text).map(Some).map_err(place)
    }

    fn write(&self, key: &str, value: &Json) -> Result<(), Error> {
        let file = self.folder.file_of(key, SUFFIX)?;
        let bytes = value.text().len() as u64;
        if bytes > self.value_bytes {
            return Err(self.folder.too_large(shown(&file), bytes, self.value_bytes));
        }
        let _turn = self.folder.lock()?;
        self.folder.write(&file, format!("{}\n", value.text()).as_bytes())
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        let file = self.folder.file_of(key, SUFFIX)?;
        let _turn = self.folder.lock()?;
        self.folder.remove(&file).map(drop)
    }
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

/// Place of a JSON error.
fn place_of(error: &serde_json::Error) -> String {
    format!("it is not one JSON value (line {}, column {})", error.line(), error.column())
}

impl Storage for FolderStorage {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        let (store, key) = (self.clone(), key.to_owned());
        Ok(blocking::run(move || store.read(&key)).await??)
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        let (store, key, value) = (self.clone(), key.to_owned(), value.clone());
        Ok(blocking::run(move || store.write(&key, &value)).await??)
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let (store, key) = (self.clone(), key.to_owned());
        Ok(blocking::run(move || store.remove(&key)).await??)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let store = self.clone();
        let mut keys = blocking::run(move || store.folder.keys(SUFFIX)).await??;
        keys.retain(|key| key.starts_with(prefix));
        Ok(keys)
    }
}
