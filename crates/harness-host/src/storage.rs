//! A small key-value store, in which memory layers keep state beyond a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use harness_core::Json;

/// Error of a storage operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StorageError {
    /// A stable code, for example `storage.corrupt`.
    pub kind: std::sync::Arc<str>,
    /// Message with the key and the fix.
    pub message: String,
}

impl StorageError {
    /// A storage error.
    pub fn new(kind: impl Into<std::sync::Arc<str>>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }
}

/// Keeps JSON values under text keys. Writes of one key are seen in their order.
pub trait Storage: Send + Sync {
    /// The value of a key; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged: a damaged value is never an absent one.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<Json>, StorageError>> + Send;

    /// Writes a value. It is there after the program ends when this has returned.
    ///
    /// # Errors
    /// When it cannot be written; the earlier value is still there then.
    fn set(&self, key: &str, value: &Json) -> impl Future<Output = Result<(), StorageError>> + Send;

    /// Removes a key. A key that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn delete(&self, key: &str) -> impl Future<Output = Result<(), StorageError>> + Send;

    /// All keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<String>, StorageError>> + Send;

    /// The values of several keys; a key that is not there is left out.
    ///
    /// # Errors
    /// When one cannot be read.
    fn get_many(
        &self,
        keys: &[String],
    ) -> impl Future<Output = Result<BTreeMap<String, Json>, StorageError>> + Send {
        async move {
            let mut found = BTreeMap::new();
            for key in keys {
                if let Some(value) = self.get(key).await? {
                    found.insert(key.clone(), value);
                }
            }
            Ok(found)
        }
    }
}

harness_core::twin! {
    DynStorage of Storage {
        async fn get_boxed = get(key: &'a str) -> Result<Option<Json>, StorageError>;
        async fn set_boxed = set(key: &'a str, value: &'a Json) -> Result<(), StorageError>;
        async fn delete_boxed = delete(key: &'a str) -> Result<(), StorageError>;
        async fn list_boxed = list(prefix: &'a str) -> Result<Vec<String>, StorageError>;
        async fn get_many_boxed = get_many(
            keys: &'a [String]
        ) -> Result<BTreeMap<String, Json>, StorageError>;
    }
}
