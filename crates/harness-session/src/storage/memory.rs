//! Values in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::Json;
use harness_host::{Storage, StorageError};
use parking_lot::Mutex;

/// Values that live as long as the process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage(Arc<Mutex<BTreeMap<String, Json>>>);

impl MemoryStorage {
    /// No values yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Storage for MemoryStorage {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        Ok(self.0.lock().get(key).cloned())
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        self.0.lock().insert(key.to_owned(), value.clone());
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.0.lock().remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let values = self.0.lock();
        let from = values.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        Ok(from.map(|(key, _)| key).take_while(|key| key.starts_with(prefix)).cloned().collect())
    }
}
