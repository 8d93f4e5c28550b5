//! Folders of the storage of an engine.

use std::collections::BTreeMap;

use harness::core::Json;
use harness::core::port::BoxFuture;
use harness::host::StorageError;

use super::context::Shared;
use super::engine::SimClient;
use crate::durable::storage::{FolderAsk, FolderContext, FolderReply, FolderService, handle};

/// The entries of a folder.
pub(super) type Folder = BTreeMap<String, Json>;

impl FolderService for SimClient {
    async fn ask_folder(&self, folder: &str, ask: &FolderAsk) -> Result<FolderReply, StorageError> {
        let shared = self.shared();
        let times = {
            let mut world = shared.lock();
            world.version += 1;
            world.check(ask);
            if world.faults.duplicate { 2 } else { 1 }
        };
        let mut reply = FolderReply::default();
        for _ in 0..times {
            reply = handle(&SimFolder { shared, name: folder }, ask.clone()).await?;
        }
        Ok(reply)
    }
}

/// A folder at work.
struct SimFolder<'w> {
    shared: &'w Shared,
    name: &'w str,
}

impl SimFolder<'_> {
    fn with<T>(&self, work: impl FnOnce(&mut Folder) -> T) -> T {
        let mut world = self.shared.lock();
        let done = work(world.folders.entry(self.name.to_owned()).or_default());
        world.folders.retain(|_, entries| !entries.is_empty());
        done
    }
}

impl FolderContext for SimFolder<'_> {
    type Error = StorageError;

    fn folder(&self) -> &str {
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

    fn tell<'c>(&'c self, folder: &'c str, ask: FolderAsk) -> BoxFuture<'c, Result<(), StorageError>> {
        let above = SimFolder { shared: self.shared, name: folder };
        Box::pin(async move { handle(&above, ask).await.map(drop) })
    }
}
