//! The states of the layers of one execution, and their mirror in the storage.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::lock::Mutex as AsyncMutex;
use harness_core::Json;
use parking_lot::Mutex;

use super::ask::Update;
use super::cx::States;
use super::def::LayerId;
use super::storage::ScopedStorage;
use crate::MemoryError;

/// Whether a layer was initialised, and its state.
#[derive(Clone, Debug, Default)]
enum Entry {
    /// It never was.
    #[default]
    Missing,
    /// It was. A state that was cleared, or never set, is `None`.
    Present(Option<Json>),
}

impl Entry {
    fn state(&self) -> Option<Json> {
        match self {
            Self::Missing => None,
            Self::Present(state) => state.clone(),
        }
    }
}

/// One layer's state in one execution.
#[derive(Debug, Default)]
struct Cell {
    entry: Entry,
    disabled: bool,
    /// Counts the writes.
    version: u64,
    /// The write that the storage has.
    stored: u64,
}

/// The states of all layers of an execution.
#[derive(Debug)]
pub(crate) struct StateTable {
    ids: Arc<[LayerId]>,
    cells: Mutex<Vec<Cell>>,
    /// Where each layer's state is mirrored; `None` is nowhere.
    mirrors: Vec<Option<ScopedStorage>>,
    /// Held while a layer's state is written, so that no two writes are in flight.
    writers: Vec<AsyncMutex<()>>,
}

impl StateTable {
    /// States that do not exist yet.
    pub(crate) fn new(ids: Arc<[LayerId]>, mirrors: Vec<Option<ScopedStorage>>) -> Self {
        Self {
            cells: Mutex::new(ids.iter().map(|_| Cell::default()).collect()),
            writers: ids.iter().map(|_| AsyncMutex::new(())).collect(),
            ids,
            mirrors,
        }
    }

    /// The state of a layer.
    pub(crate) fn get(&self, layer: usize) -> Option<Json> {
        self.cells.lock().get(layer)?.entry.state()
    }

    /// Whether the layer was initialised, or restored.
    pub(crate) fn has_entry(&self, layer: usize) -> bool {
        self.cells.lock().get(layer).is_some_and(|cell| matches!(cell.entry, Entry::Present(_)))
    }

    /// Whether the layer has a mirror with an earlier state.
    pub(crate) fn is_unstored(&self, layer: usize) -> bool {
        let is_mirrored = self.mirrors.get(layer).is_some_and(Option::is_some);
        is_mirrored && self.cells.lock().get(layer).is_some_and(|cell| cell.version > cell.stored)
    }

    /// Whether the layer's `init` failed and it is left out.
    pub(crate) fn is_disabled(&self, layer: usize) -> bool {
        self.cells.lock().get(layer).is_some_and(|cell| cell.disabled)
    }

    /// Leaves the layer out.
    pub(crate) fn disable(&self, layer: usize) {
        if let Some(cell) = self.cells.lock().get_mut(layer) {
            cell.disabled = true;
        }
    }

    /// The first state of a layer. It came from the storage, or is made the same way each time: it is not
    /// written back.
    pub(crate) fn begin(&self, layer: usize, first: Update) {
        if let Some(cell) = self.cells.lock().get_mut(layer) {
            cell.entry = Entry::Present(match first {
                Update::Set(state) => Some(state),
                Update::Keep | Update::Clear => cell.entry.state(),
            });
        }
    }

    /// Applies the change of a hook. Returns whether anything was written.
    pub(crate) fn apply(&self, layer: usize, update: Update) -> bool {
        let state = match update {
            Update::Keep => return false,
            Update::Set(state) => Some(state),
            Update::Clear => None,
        };
        if let Some(cell) = self.cells.lock().get_mut(layer) {
            cell.entry = Entry::Present(state);
            cell.version += 1;
        }
        true
    }

    /// Writes what is newer than the storage, each layer's latest state only. A write that fails is tried
    /// again at the next flush. Gives the failures.
    pub(crate) async fn flush(&self) -> Vec<(usize, MemoryError)> {
        let dirty: Vec<usize> = {
            let cells = self.cells.lock();
            let is_dirty = |at: &usize| cells.get(*at).is_some_and(|cell| cell.version > cell.stored);
            (0..cells.len()).filter(is_dirty).collect()
        };
        if dirty.is_empty() {
            return Vec::new();
        }
        let written = dirty.into_iter().map(async |layer| (layer, self.write(layer).await));
        let failed = |(layer, done): (usize, Result<(), MemoryError>)| done.err().map(|fault| (layer, fault));
        join_all(written).await.into_iter().filter_map(failed).collect()
    }

    async fn write(&self, layer: usize) -> Result<(), MemoryError> {
        let Some(writer) = self.writers.get(layer) else { return Ok(()) };
        let _alone = writer.lock().await;
        let latest = self.cells.lock().get(layer).map(|cell| (cell.version, cell.entry.state()));
        let Some((version, state)) = latest else { return Ok(()) };
        if let Some(Some(mirror)) = self.mirrors.get(layer) {
            match &state {
                Some(state) => mirror.set(ScopedStorage::STATE, state).await?,
                None => mirror.delete(ScopedStorage::STATE).await?,
            }
        }
        if let Some(cell) = self.cells.lock().get_mut(layer) {
            cell.stored = cell.stored.max(version);
        }
        Ok(())
    }
}

impl States for StateTable {
    fn state_of(&self, layer: &LayerId) -> Option<Json> {
        let at = self.ids.iter().position(|id| id == layer)?;
        self.get(at)
    }
}
