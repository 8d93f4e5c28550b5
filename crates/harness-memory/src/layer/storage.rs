//! Storage of a layer: its own part of a shared storage.

use std::sync::Arc;

use harness_core::Json;
use harness_host::{DynStorage, StorageError};

use super::cx::Execution;
use super::def::{LayerId, Scope};
use crate::MemoryError;

/// The corner of a storage that belongs to one layer and one scope. Keys are the layer's own; no id can
/// reach into another corner, because ids are encoded and each kind of scope has its own directory.
#[derive(Clone, derive_more::Debug)]
pub struct ScopedStorage {
    #[debug(skip)]
    storage: Option<Arc<dyn DynStorage>>,
    prefix: Arc<str>,
}

impl ScopedStorage {
    /// The key under which the pipeline keeps a layer's state.
    pub const STATE: &'static str = "state";

    /// The corner of a layer in an execution. Without a storage it is empty and takes nothing.
    pub fn new(
        storage: Option<Arc<dyn DynStorage>>,
        layer: &LayerId,
        scope: Scope,
        execution: &Execution,
    ) -> Self {
        let prefix = format!("layers/{}/{}/", encoded(layer.as_str()), scope_key(scope, execution));
        Self { storage, prefix: Arc::from(prefix) }
    }

    /// Prefix of each key in the shared storage.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub async fn get(&self, key: &str) -> Result<Option<Json>, MemoryError> {
        match &self.storage {
            None => Ok(None),
            Some(storage) => Ok(storage.get_boxed(&self.full(key)).await?),
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// When it cannot be written, or there is no storage.
    pub async fn set(&self, key: &str, value: &Json) -> Result<(), MemoryError> {
        let Some(storage) = &self.storage else {
            let message = format!("`{key}` cannot be kept: the layers have no storage");
            return Err(StorageError::new("storage.none", message).into());
        };
        Ok(storage.set_boxed(&self.full(key), value).await?)
    }

    /// Removes a key; one that is not there is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn delete(&self, key: &str) -> Result<(), MemoryError> {
        match &self.storage {
            None => Ok(()),
            Some(storage) => Ok(storage.delete_boxed(&self.full(key)).await?),
        }
    }

    /// The keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, MemoryError> {
        let Some(storage) = &self.storage else { return Ok(Vec::new()) };
        let keys = storage.list_boxed(&self.full(prefix)).await?;
        Ok(keys.iter().filter_map(|key| key.strip_prefix(&*self.prefix)).map(str::to_owned).collect())
    }

    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

/// `KIND/ID`, by what a scope stands for. A thread without a name is its execution.
pub(crate) fn scope_key(scope: Scope, execution: &Execution) -> String {
    let thread = || match &execution.thread {
        Some(thread) => format!("thread/{}", encoded(thread.as_str())),
        None => format!("execution/{}", encoded(&execution.id)),
    };
    match scope {
        Scope::Thread => thread(),
        Scope::Resource => execution
            .resource
            .as_ref()
            .map_or_else(thread, |resource| format!("resource/{}", encoded(resource))),
        Scope::Global => "global/all".to_owned(),
        Scope::Execution => format!("execution/{}", encoded(&execution.id)),
    }
}

/// Everything but letters, digits, `-`, `_` and inner dots as `%XX`, so that an id is one part of a path.
fn encoded(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && at > 0) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for half in [byte >> 4, byte & 15] {
                out.push(char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scope: Scope, thread: Option<&str>, resource: Option<&str>, expected: &str) {
        let mut execution = Execution::new("e/1");
        execution.thread = thread.map(Into::into);
        execution.resource = resource.map(Into::into);
        assert_eq!(scope_key(scope, &execution), expected);
    }

    #[test]
    fn no_id_reaches_into_another_scope() {
        check(Scope::Thread, Some("a/b"), None, "thread/a%2Fb");
        check(Scope::Thread, Some("__global__"), None, "thread/__global__");
        check(Scope::Thread, None, None, "execution/e%2F1");
        check(Scope::Resource, Some("t"), Some("ann"), "resource/ann");
        check(Scope::Resource, Some("t"), None, "thread/t");
        check(Scope::Global, Some("t"), Some("ann"), "global/all");
        check(Scope::Execution, Some("t"), None, "execution/e%2F1");
        check(Scope::Thread, Some(".."), None, "thread/%2E.");
        check(Scope::Thread, Some(""), None, "thread/");
    }

    #[test]
    fn a_layer_id_is_one_part_of_the_key() {
        let corner = ScopedStorage::new(None, &"plan/x%".into(), Scope::Global, &Execution::new("e"));
        assert_eq!(corner.prefix(), "layers/plan%2Fx%25/global/all/");
    }
}
