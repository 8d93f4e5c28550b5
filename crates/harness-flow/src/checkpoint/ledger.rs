//! Records of an execution.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness_core::limits::Amount;
use harness_core::{Json, RunId};
use harness_host::{DynStorage, StorageError};
use parking_lot::Mutex;

use super::Retention;
use super::record::{Beginning, Record, Start, VERSION, prefix};
use crate::context::Context;
use crate::log::is_at_or_beneath;
use crate::shared_budget::sum;
use crate::{StepInfo, StepKind};

/// Records of an execution: reads those of an earlier process, and writes new ones.
#[derive(derive_more::Debug)]
pub(crate) struct Ledger {
    #[debug(skip)]
    storage: Arc<dyn DynStorage>,
    prefix: String,
    #[debug(skip)]
    retention: Retention,
    next: AtomicU64,
    #[debug(skip)]
    earlier: Mutex<Earlier>,
}

/// Records of an earlier process that no step has taken.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Last record of each path, with its number.
    pub(super) records: BTreeMap<Arc<str>, (u64, Record)>,
    /// Calls with an unknown result.
    pub(super) open_calls: BTreeSet<Arc<str>>,
    pub(super) spent: Vec<(Arc<str>, Amount)>,
}

impl Ledger {
    pub(crate) fn new(storage: Arc<dyn DynStorage>, id: &RunId, retention: Retention) -> Self {
        Self::after(storage, id, retention, 0, Earlier::default())
    }

    pub(super) fn after(
        storage: Arc<dyn DynStorage>,
        id: &RunId,
        retention: Retention,
        last: u64,
        earlier: Earlier,
    ) -> Self {
        let (next, earlier) = (AtomicU64::new(last + 1), Mutex::new(earlier));
        Self { storage, prefix: prefix(id), retention, next, earlier }
    }

    fn key(&self, number: u64) -> String {
        format!("{}step:{number:08}", self.prefix)
    }

    /// Writes the start record, after removing the records of an older execution with this id.
    pub(crate) async fn start(&self, beginning: &Beginning) -> Result<(), StorageError> {
        for key in self.storage.list_boxed(&format!("{}step:", self.prefix)).await? {
            self.storage.delete_boxed(&key).await?;
        }
        let start = json(&Start { schema_version: VERSION, beginning })?;
        self.storage.set_boxed(&format!("{}start", self.prefix), &start).await
    }

    /// Takes the recorded output of a step, with its messages and state. A different kind of step discards the
    /// record.
    pub(crate) fn replay(&self, info: &StepInfo, context: &Context) -> Option<Json> {
        let mut earlier = self.earlier.lock();
        let recorded =
            earlier.records.get(&info.path).map(|(_, record)| (record.kind, record.output.clone()));
        let holds_others = !matches!(info.kind, StepKind::Run | StepKind::Model | StepKind::Tool);
        match recorded {
            Some((kind, Some(output))) if kind == info.kind => {
                let taken = earlier.take(&info.path);
                drop(earlier);
                if !context.key.is_empty() {
                    apply(taken, context);
                }
                return Some(output);
            }
            Some((kind, _)) if kind == info.kind && holds_others => {
                earlier.records.remove(&info.path);
            }
            None if holds_others => {}
            _ => {
                earlier.take(&info.path);
                drop(earlier);
                context.log.lock().forget(|path| is_at_or_beneath(path, &info.path));
            }
        }
        None
    }

    /// Recorded usage of a step and its children.
    pub(crate) fn spent_at(&self, path: &str) -> Amount {
        let earlier = self.earlier.lock();
        let at = earlier.spent.iter().filter(|(spent_at, _)| is_at_or_beneath(spent_at, path));
        at.fold(Amount::NONE, |total, (_, spent)| sum(total, *spent))
    }

    /// Whether an earlier process started a call at `path` whose result is unknown.
    pub(crate) fn has_open_call(&self, path: &str) -> bool {
        self.earlier.lock().open_calls.contains(path)
    }

    /// Records the start of a call.
    pub(crate) async fn start_call(&self, path: &Arc<str>, context: &Context) -> Result<(), StorageError> {
        let info = StepInfo { path: Arc::clone(path), id: "".into(), kind: StepKind::Tool };
        let record = Record { started: true, ..empty(&info, context, Amount::NONE) };
        self.write(&record).await.map(drop)
    }

    /// Records the output of a step, with the messages of the step and its children.
    pub(crate) async fn record(
        &self,
        info: &StepInfo,
        context: &Context,
        output: &Json,
        spent: Amount,
    ) -> Result<(), String> {
        let (bytes, most) = (output.text().len(), self.retention.max_entry_bytes);
        if bytes > most {
            self.record_spent(info, context, spent).await;
            return Err(format!("output of {bytes} bytes exceeds the limit of {most}"));
        }
        let messages = context.log.lock().unrecorded(&info.path);
        let data = context.take_changed();
        let changed = data.is_some();
        let record = Record { output: Some(output.clone()), messages, data, ..empty(info, context, spent) };
        match self.write(&record).await {
            Ok(number) => {
                context.log.lock().recorded(&record.messages);
                self.thin(number).await;
                Ok(())
            }
            Err(error) => {
                context.data.lock().changed |= changed;
                Err(error.to_string())
            }
        }
    }

    /// Records the usage of a step without an output.
    pub(crate) async fn record_spent(&self, info: &StepInfo, context: &Context, spent: Amount) {
        if spent == Amount::NONE {
            return;
        }
        if let Err(error) = self.write(&empty(info, context, spent)).await {
            tracing::warn!(path = %info.path, "usage of a step not recorded: {error}");
        }
    }

    /// Writes a record under the next number; a failed write leaves a gap.
    async fn write(&self, record: &Record) -> Result<u64, StorageError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.storage.set_boxed(&self.key(number), &json(record)?).await?;
        Ok(number)
    }

    /// Drops the output that exceeds the retention; messages and usage of its step stay.
    async fn thin(&self, number: u64) {
        let Some(old) = number.checked_sub(self.retention.max_entries).filter(|old| *old > 0) else { return };
        let key = self.key(old);
        let thinned = async {
            let Some(stored) = self.storage.get_boxed(&key).await? else { return Ok(()) };
            let Ok(mut record) = stored.to::<Record>() else { return Ok(()) };
            if record.output.take().is_none() {
                return Ok(());
            }
            self.storage.set_boxed(&key, &json(&record)?).await
        };
        if let Err::<(), StorageError>(error) = thinned.await {
            tracing::warn!(key, "old output not removed: {error}");
        }
    }
}

impl Earlier {
    /// Takes the records of a step and its children, ordered by number.
    fn take(&mut self, path: &str) -> Vec<(u64, Record)> {
        let places: Vec<Arc<str>> = self
            .records
            .range::<str, _>((Bound::Included(path), Bound::Unbounded))
            .map(|(place, _)| place)
            .take_while(|place| place.starts_with(path))
            .filter(|place| is_at_or_beneath(place, path))
            .cloned()
            .collect();
        let mut taken: Vec<_> = places.iter().filter_map(|place| self.records.remove(place)).collect();
        taken.sort_by_key(|(number, _)| *number);
        taken
    }
}

/// Restores messages and state of finished steps in a new context.
fn apply(taken: Vec<(u64, Record)>, context: &Context) {
    for (_, record) in taken.into_iter().filter(|(_, record)| record.context == context.key) {
        context.log.lock().restore(record.messages);
        if let Some(data) = record.data {
            context.put(data);
        }
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<Json, StorageError> {
    Json::of(value).map_err(|error| StorageError::new("checkpoint.form", error.to_string()))
}

/// Creates a record of usage alone.
fn empty(info: &StepInfo, context: &Context, spent: Amount) -> Record {
    Record {
        path: Arc::clone(&info.path),
        context: Arc::clone(&context.key),
        kind: info.kind,
        at: context.shared.clock().now(),
        started: false,
        output: None,
        messages: Vec::new(),
        data: None,
        spent,
    }
}
