//! Directories of the storage of an engine.

use std::collections::BTreeMap;

use harness::core::Json;
use harness::core::port::BoxFuture;
use harness::host::StorageError;

use super::context::Shared;
use super::engine::SimClient;
use crate::durable::storage::{DirectoryAsk, DirectoryContext, DirectoryReply, DirectoryService, handle};

/// The entries of a directory.
pub(super) type Directory = BTreeMap<String, Json>;

impl DirectoryService for SimClient {
    async fn ask_directory(
        &self,
        directory: &str,
        ask: &DirectoryAsk,
    ) -> Result<DirectoryReply, StorageError> {
        let shared = self.shared();
        let times = {
            let mut world = shared.lock();
            world.version += 1;
            world.check(ask);
            if world.faults.duplicate { 2 } else { 1 }
        };
        let mut reply = DirectoryReply::default();
        for _ in 0..times {
            reply = handle(&SimDirectory { shared, name: directory }, ask.clone()).await?;
        }
        Ok(reply)
    }
}

/// A directory at work.
struct SimDirectory<'w> {
    shared: &'w Shared,
    name: &'w str,
}

impl SimDirectory<'_> {
    fn with<T>(&self, work: impl FnOnce(&mut Directory) -> T) -> T {
        let mut world = self.shared.lock();
        let done = work(world.directories.entry(self.name.to_owned()).or_default());
        world.directories.retain(|_, entries| !entries.is_empty());
        done
    }
}

impl DirectoryContext for SimDirectory<'_> {
    type Error = StorageError;

    fn directory(&self) -> &str {
        self.name
    }

    async fn value(&self, entry: &str) -> Result<Option<Json>, StorageError> {
        Ok(self.with(|entries| entries.get(entry).cloned()))
    }

    async fn entries(&self) -> Result<Vec<String>, StorageError> {
        Ok(self.with(|entries| entries.keys().cloned().collect()))
    }

    fn write(&self, entry: &str, value: &Json) {
        self.with(|entries| entries.insert(entry.to_owned(), value.clone()));
    }

    fn clear(&self, entry: &str) {
        self.with(|entries| entries.remove(entry));
    }

    fn tell<'c>(&'c self, directory: &'c str, ask: DirectoryAsk) -> BoxFuture<'c, Result<(), StorageError>> {
        let above = SimDirectory { shared: self.shared, name: directory };
        Box::pin(async move { handle(&above, ask).await.map(drop) })
    }
}
