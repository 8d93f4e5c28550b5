//! A small key-value store: where memory layers keep what outlives a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use harness_core::Json;
use harness_core::port::BoxFuture;

/// Why a key could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StorageError {
    /// A stable code, for example `storage.corrupt`.
    pub kind: std::sync::Arc<str>,
    /// What happened, to which key, and what to do.
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

/// The object-safe twin of [`Storage`].
pub trait DynStorage: Send + Sync {
    /// [`Storage::get`], boxed.
    fn get_boxed<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Json>, StorageError>>;

    /// [`Storage::set`], boxed.
    fn set_boxed<'a>(&'a self, key: &'a str, value: &'a Json) -> BoxFuture<'a, Result<(), StorageError>>;

    /// [`Storage::delete`], boxed.
    fn delete_boxed<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StorageError>>;

    /// [`Storage::list`], boxed.
    fn list_boxed<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StorageError>>;

    /// [`Storage::get_many`], boxed.
    fn get_many_boxed<'a>(
        &'a self,
        keys: &'a [String],
    ) -> BoxFuture<'a, Result<BTreeMap<String, Json>, StorageError>>;
}

impl<S: Storage> DynStorage for S {
    fn get_boxed<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Json>, StorageError>> {
        Box::pin(self.get(key))
    }

    fn set_boxed<'a>(&'a self, key: &'a str, value: &'a Json) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(self.set(key, value))
    }

    fn delete_boxed<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(self.delete(key))
    }

    fn list_boxed<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StorageError>> {
        Box::pin(self.list(prefix))
    }

    fn get_many_boxed<'a>(
        &'a self,
        keys: &'a [String],
    ) -> BoxFuture<'a, Result<BTreeMap<String, Json>, StorageError>> {
        Box::pin(self.get_many(keys))
    }
}
