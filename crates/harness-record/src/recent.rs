//! Memory of recent runs.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use harness_core::message::Message;
use harness_core::{Json, ThreadId, Time};
use parking_lot::Mutex;

use super::earlier::Earlier;
use super::fold::RecordFold;
use super::run_record::RunRecord;

/// Maximum number of finished runs.
const MOST: usize = 200;

/// Maximum size of the records of finished runs in bytes of JSON.
const BYTES: u64 = 64 << 20;

/// Bounded memory of the runs of a process: the records of runs in progress, and of the last 200 finished runs of at most
/// 64 MiB of JSON. Clones share it. Add it to a [`Recording`](super::Recording) with
/// [`recent`](super::Recording::recent).
///
/// ```
/// use harness_record::{RecentRuns, Recording};
///
/// let runs = RecentRuns::new();
/// let recording = Recording::new().recent(runs.clone());
/// assert!(runs.of_thread(&"ada".into(), harness_core::Time(0)).is_empty(), "no run has started yet");
/// # let _ = recording;
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecentRuns(Arc<Mutex<Runs>>);

#[derive(Debug, Default)]
struct Runs {
    running: Vec<Weak<Mutex<RecordFold>>>,
    /// Oldest first.
    finished: VecDeque<Finished>,
    bytes: u64,
}

/// A finished run.
#[derive(Debug)]
struct Finished {
    size: u64,
    record: Arc<RunRecord>,
    /// For the record of the next run.
    shared: Option<Arc<Earlier>>,
}

impl RecentRuns {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records of a thread's runs in the order of their ends; those in progress follow, as of `now`.
    pub fn of_thread(&self, thread: &ThreadId, now: Time) -> Vec<Arc<RunRecord>> {
        let runs = self.0.lock();
        let of_thread = |record: &&Arc<RunRecord>| record.thread_id.as_ref() == Some(thread);
        let finished = runs.finished.iter().map(|run| &run.record).filter(of_thread);
        let mut records: Vec<_> = finished.cloned().collect();
        let running: Vec<_> = runs.running.iter().filter_map(Weak::upgrade).collect();
        drop(runs);
        for fold in running {
            // The run goes on while its record is made of a copy.
            let fold = fold.lock();
            let copy = (fold.thread() == Some(thread)).then(|| fold.clone());
            drop(fold);
            records.extend(copy.and_then(|fold| fold.record().or_else(|| fold.progress(now))).map(Arc::new));
        }
        records
    }

    /// Drops the finished runs of a thread.
    pub fn forget(&self, thread: &ThreadId) {
        let mut runs = self.0.lock();
        runs.finished.retain(|run| run.record.thread_id.as_ref() != Some(thread));
        runs.bytes = runs.finished.iter().map(|run| run.size).sum();
    }

    /// The run whose messages a history starts with.
    pub(super) fn known(&self, history: &[Arc<Message>]) -> Option<Arc<Earlier>> {
        let runs = self.0.lock();
        let mut shared = runs.finished.iter().rev().filter_map(|run| run.shared.as_ref());
        shared.find(|shared| shared.starts(history)).cloned()
    }

    pub(super) fn started(&self, fold: &Arc<Mutex<RecordFold>>) {
        let mut runs = self.0.lock();
        runs.running.retain(|known| known.strong_count() > 0);
        runs.running.push(Arc::downgrade(fold));
    }

    pub(super) fn finished(
        &self,
        fold: &Arc<Mutex<RecordFold>>,
        record: Option<(&Arc<RunRecord>, RecordSize)>,
        shared: Option<Arc<Earlier>>,
        known: Option<&Arc<Earlier>>,
    ) {
        let mut runs = self.0.lock();
        let fold = Arc::downgrade(fold);
        runs.running.retain(|known| !known.ptr_eq(&fold));
        let Some((record, RecordSize { items, rest })) = record else { return };
        let size = items.saturating_add(rest);
        // The next run of the thread continues this one, no longer the one before.
        let is_known =
            |run: &&mut Finished| run.shared.as_ref().zip(known).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        if let Some(before) = runs.finished.iter_mut().rev().find(is_known) {
            before.shared = None;
        }
        runs.finished.push_back(Finished { size, record: Arc::clone(record), shared });
        runs.bytes = runs.bytes.saturating_add(size);
        while runs.finished.len() > MOST || runs.bytes > BYTES {
            let Some(run) = runs.finished.pop_front() else { return };
            runs.bytes = runs.bytes.saturating_sub(run.size);
        }
    }
}

/// Size of a record in bytes of JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordSize {
    /// That of its messages.
    pub(super) items: u64,
    rest: u64,
}

impl RecordSize {
    /// Measures a record whose first messages are known.
    pub(super) fn of(record: &mut RunRecord, known: Option<&Earlier>) -> Self {
        let items = std::mem::take(&mut record.items);
        let rest = Json::size_of(record) as u64;
        record.items = items;
        let known = known.filter(|known| known.clean.len() <= record.items.len());
        let (count, bytes) = known.map_or((0, 0), |known| (known.clean.len(), known.bytes));
        let new = record.items.iter().skip(count).map(|item| Json::size_of(&**item) as u64);
        Self { items: new.fold(bytes, u64::saturating_add), rest }
    }
}
