//! Values as files of a folder.

use std::path::{Path, PathBuf};

use harness_core::Json;
use harness_host::{Storage, StorageError};

use crate::blocking;
use crate::error::Error;
use crate::folder::{Folder, Store};

const SUFFIX: &str = ".json";

/// The largest value, in bytes of its JSON text.
const VALUE_BYTES: u64 = 16 << 20;

/// Values as JSON files of a folder, one each. The name of a file is its key, percent-encoded; the rest of a
/// long one lies in a folder. A key has at most 1,000 bytes.
///
/// A write is complete and on stable storage before it takes the place of the earlier value: whatever
/// happens, there is the old one or the new one. Writers of several processes take turns over a lock file.
/// A file that is no JSON is an error when its key is read and never an absent value.
///
/// Files are read and written, and locks waited for, on a blocking thread of the tokio runtime; in place
/// when there is none.
#[derive(Clone, Debug)]
pub struct FolderStorage {
    folder: Folder,
    value_bytes: u64,
}

impl FolderStorage {
    /// The values of a folder, which is made when there is none; its owner alone can enter it then. What
    /// writers that were killed have left unfinished is removed.
    ///
    /// # Errors
    /// When the folder cannot be made or cleaned.
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

/// Where a text is no JSON.
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
