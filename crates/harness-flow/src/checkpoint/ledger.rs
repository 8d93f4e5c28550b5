//! The records of one execution.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use harness_core::limits::Amount;
use harness_core::{Json, RunId};
use harness_host::{DynStorage, StorageError};

use super::Retention;
use super::record::{Beginning, Record, Start, VERSION, prefix};
use crate::context::{Context, lock};
use crate::log::is_at_or_beneath;
use crate::shared_budget::sum;
use crate::{StepInfo, StepKind};

/// The records of one execution: those of an earlier process, and the way to write new ones.
pub(crate) struct Ledger {
    storage: Arc<dyn DynStorage>,
    prefix: String,
    retention: Retention,
    next: AtomicU64,
    earlier: Mutex<Earlier>,
}

/// What an earlier process recorded, until a step comes by that takes it.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The last record of each place, with its number.
    pub(super) records: BTreeMap<Arc<str>, (u64, Record)>,
    /// Calls of which nobody knows what came of them.
    pub(super) open_calls: BTreeSet<Arc<str>>,
    pub(super) spent: Vec<(Arc<str>, Amount)>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("prefix", &self.prefix)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
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

    /// Writes the beginning; what an older execution of the name left is removed first.
    pub(crate) async fn begin(&self, beginning: &Beginning) -> Result<(), StorageError> {
        for key in self.storage.list_boxed(&format!("{}step:", self.prefix)).await? {
            self.storage.delete_boxed(&key).await?;
        }
        let start = json(&Start { schema_version: VERSION, beginning })?;
        self.storage.set_boxed(&format!("{}start", self.prefix), &start).await
    }

    /// What a step at that place gave in an earlier process, with all that came of it. Another kind of step
    /// discards what is recorded there.
    pub(crate) fn replay(&self, info: &StepInfo, context: &Context) -> Option<Json> {
        let mut earlier = lock(&self.earlier);
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
                lock(&context.log).forget(|path| is_at_or_beneath(path, &info.path));
            }
        }
        None
    }

    /// What was spent at a place and beneath it in an earlier process.
    pub(crate) fn spent_at(&self, path: &str) -> Amount {
        let earlier = lock(&self.earlier);
        let at = earlier.spent.iter().filter(|(spent_at, _)| is_at_or_beneath(spent_at, path));
        at.fold(Amount::NONE, |total, (_, spent)| sum(total, *spent))
    }

    /// Whether a call had begun there in an earlier process, and nobody knows what came of it.
    pub(crate) fn had_begun(&self, path: &str) -> bool {
        lock(&self.earlier).open_calls.contains(path)
    }

    /// Notes that a call begins.
    pub(crate) async fn begin_call(&self, path: &Arc<str>, context: &Context) -> Result<(), StorageError> {
        let info = StepInfo { path: Arc::clone(path), id: "".into(), kind: StepKind::Tool };
        let record = Record { begun: true, ..empty(&info, context, Amount::NONE) };
        self.write(&record).await.map(drop)
    }

    /// Records what a step gave, with what it and the steps beneath it added.
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
            return Err(format!("its output has {bytes} bytes; at most {most} are kept"));
        }
        let messages = lock(&context.log).unrecorded(&info.path);
        let data = context.take_changed();
        let changed = data.is_some();
        let record = Record { output: Some(output.clone()), messages, data, ..empty(info, context, spent) };
        match self.write(&record).await {
            Ok(number) => {
                lock(&context.log).recorded(&record.messages);
                self.thin(number).await;
                Ok(())
            }
            Err(error) => {
                lock(&context.data).changed |= changed;
                Err(error.to_string())
            }
        }
    }

    /// Records what a step spent that gives nothing to keep.
    pub(crate) async fn record_spent(&self, info: &StepInfo, context: &Context, spent: Amount) {
        if spent == Amount::NONE {
            return;
        }
        if let Err(error) = self.write(&empty(info, context, spent)).await {
            tracing::warn!(path = %info.path, "what a step spent is not recorded: {error}");
        }
    }

    /// Writes a record under the next number; a write that fails leaves a gap.
    async fn write(&self, record: &Record) -> Result<u64, StorageError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.storage.set_boxed(&self.key(number), &json(record)?).await?;
        Ok(number)
    }

    /// Drops the output that is one too old; what its step said and spent stays.
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
            tracing::warn!(key, "an old output is not removed: {error}");
        }
    }
}

impl Earlier {
    /// Takes out what is recorded at a place and beneath it, by number.
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

/// Gives a context that begins anew what its finished steps had added.
fn apply(taken: Vec<(u64, Record)>, context: &Context) {
    for (_, record) in taken.into_iter().filter(|(_, record)| record.context == context.key) {
        lock(&context.log).restore(record.messages);
        if let Some(data) = record.data {
            context.put(data);
        }
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<Json, StorageError> {
    Json::of(value).map_err(|error| StorageError::new("checkpoint.form", error.to_string()))
}

/// A record that holds nothing but what was spent.
fn empty(info: &StepInfo, context: &Context, spent: Amount) -> Record {
    Record {
        path: Arc::clone(&info.path),
        context: Arc::clone(&context.key),
        kind: info.kind,
        at: context.shared.clock().now(),
        begun: false,
        output: None,
        messages: Vec::new(),
        data: None,
        spent,
    }
}
