//! A storage over a second one, which is not changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use harness_core::Json;
use harness_host::{DynStorage, Storage, StorageError};

/// Shows what the storage below holds, under what was changed here; forgets the changes when it is dropped.
pub(crate) struct Overlay {
    below: Arc<dyn DynStorage>,
    /// `None` is deleted.
    changed: Mutex<BTreeMap<String, Option<Json>>>,
}

impl Overlay {
    pub(crate) fn over(below: Arc<dyn DynStorage>) -> Self {
        Self { below, changed: Mutex::default() }
    }
}

impl Storage for Overlay {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        let changed = self.changed.lock().get(key).cloned();
        match changed {
            Some(value) => Ok(value),
            None => self.below.get_boxed(key).await,
        }
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        self.changed.lock().insert(key.to_owned(), Some(value.clone()));
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.changed.lock().insert(key.to_owned(), None);
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let mut keys = self.below.list_boxed(prefix).await?;
        let changed = self.changed.lock();
        keys.retain(|key| !changed.contains_key(key));
        let written = changed.iter().filter(|(key, value)| key.starts_with(prefix) && value.is_some());
        keys.extend(written.map(|(key, _)| key.clone()));
        keys.sort_unstable();
        Ok(keys)
    }
}
