//! Loading the records of an execution.

use std::sync::Arc;

use harness_core::RunId;
use harness_core::limits::Amount;
use harness_host::DynStorage;

use super::ledger::{Earlier, Ledger};
use super::record::{Beginning, Record, Start, VERSION, Version, prefix};
use super::{CheckpointError, Retention};
use crate::context::Data;
use crate::log::Logged;
use crate::shared_budget::sum;

/// Records read in one request.
const BATCH: usize = 256;

/// Restored execution.
pub(crate) struct Restored {
    pub(crate) beginning: Beginning,
    pub(crate) ledger: Ledger,
    /// State, if a step changed it.
    pub(crate) data: Option<Data>,
    pub(crate) spent: Amount,
    pub(crate) log: Vec<Logged>,
}

/// Reads all records; `None` without a start record. A damaged step record is skipped with a warning: its step
/// runs again.
pub(crate) async fn load(
    storage: Arc<dyn DynStorage>,
    id: &RunId,
    retention: Retention,
) -> Result<Option<Restored>, CheckpointError> {
    let prefix = prefix(id);
    let Some(start) = storage.get_boxed(&format!("{prefix}start")).await? else { return Ok(None) };
    let damaged = |error: serde_json::Error| CheckpointError::Damaged {
        execution: id.to_string(),
        problem: error.to_string(),
    };
    let found = start.to::<Version>().map_err(damaged)?.schema_version;
    if found != VERSION {
        return Err(CheckpointError::Version { execution: id.to_string(), found, known: VERSION });
    }
    let beginning = start.to::<Start<Beginning>>().map_err(damaged)?.beginning;
    let steps = format!("{prefix}step:");
    let keys = storage.list_boxed(&steps).await?;
    let mut earlier = Earlier::default();
    let mut last = 0;
    for keys in keys.chunks(BATCH) {
        for (key, stored) in storage.get_many_boxed(keys).await? {
            let Some(number) = key.strip_prefix(&steps).and_then(|number| number.parse().ok()) else {
                continue;
            };
            last = last.max(number);
            match stored.to::<Record>() {
                Ok(record) => earlier.add(number, record),
                Err(error) => tracing::warn!(key, "invalid step record, its step runs again: {error}"),
            }
        }
    }
    let spent = earlier.spent.iter().fold(Amount::NONE, |total, (_, spent)| sum(total, *spent));
    let of_root = || earlier.records.values().filter(|(_, record)| record.context.is_empty());
    let data = of_root().filter(|(_, record)| record.data.is_some()).max_by_key(|(number, _)| *number);
    let data = data.and_then(|(_, record)| record.data.clone());
    let log = of_root().flat_map(|(_, record)| record.messages.iter().cloned()).collect();
    let ledger = Ledger::after(storage, id, retention, last, earlier);
    Ok(Some(Restored { beginning, ledger, data, spent, log }))
}

impl Earlier {
    fn add(&mut self, number: u64, record: Record) {
        let path = Arc::clone(&record.path);
        if record.started {
            self.open_calls.insert(path);
            return;
        }
        self.open_calls.remove(&path);
        self.spent.push((Arc::clone(&path), record.spent));
        // A record of usage alone does not replace a result.
        if record.output.is_some() || !record.messages.is_empty() || record.data.is_some() {
            self.records.insert(path, (number, record));
        }
    }
}

/// Removes all records, the start record first: an execution that is partly removed is not restored.
pub(crate) async fn clear(storage: &dyn DynStorage, id: &RunId) -> Result<(), CheckpointError> {
    let prefix = prefix(id);
    storage.delete_boxed(&format!("{prefix}start")).await?;
    for key in storage.list_boxed(&format!("{prefix}step:")).await? {
        storage.delete_boxed(&key).await?;
    }
    Ok(())
}
