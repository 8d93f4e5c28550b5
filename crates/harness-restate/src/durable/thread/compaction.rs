//! Compaction on request: work of an idle thread that has a driver as a run has.

use std::sync::Arc;

use harness::core::port::CompactionNote;
use harness::core::{EntryId, Fault, FaultSource, RunId, Time};
use serde::{Deserialize, Serialize};

use super::ThreadState;
use crate::durable::context::Begin;
use crate::durable::request::{ThreadSend, ThreadStatus};

/// The compactions on request of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Compactions {
    /// How many there were.
    count: u64,
    /// Runs before the last one, and entries of the log then.
    runs: u64,
    log: u64,
    /// Result of the last one; `None` while it is at work.
    result: Option<Result<Option<Arc<CompactionNote>>, Fault>>,
}

impl Compactions {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Those of a forgotten conversation: their ids are not used again.
    pub(super) fn forgotten(&self) -> Self {
        Self { count: self.count, ..Self::default() }
    }
}

/// Bytes of a summary that is kept with its thread, at most. A longer one is in the log only.
const SUMMARY_BYTES: usize = 16 << 10;

/// Error of a compaction whose driver has no result.
pub(super) fn lost(why: &str) -> Fault {
    Fault::new(FaultSource::Compactor, "lost", why)
}

impl ThreadState {
    /// The result of the last compaction on request, if it has this id and is over. A summary above 16 KiB is only in the event
    /// `compaction_completed`.
    pub fn compaction(&self, id: &RunId) -> Option<&Result<Option<Arc<CompactionNote>>, Fault>> {
        self.compactions.result.as_ref().filter(|_| *id == self.compaction_id())
    }

    /// Whether a compaction on request is at work.
    pub fn is_compacting(&self) -> bool {
        self.running().is_some_and(|run| *run == self.compaction_id())
    }

    fn compaction_id(&self) -> RunId {
        RunId::from(format!("{}-compaction-{}", self.id(), self.compactions.count))
    }

    /// Entries of the log at the end of the last run: compactions since then have later ones.
    pub fn last_log(&self) -> u64 {
        let Compactions { count, runs, log, .. } = self.compactions;
        if count > 0 && runs == self.runs { log } else { self.log }
    }

    pub(super) fn compact(
        &mut self,
        entry: EntryId,
        instructions: Option<String>,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        if self.remembered.contains(&entry) {
            return Ok(());
        }
        self.takes_messages()?;
        self.is_free()?;
        let id = self.id();
        if self.parked.is_some() {
            return Err(format!(
                "open_calls: calls of thread `{id}` wait for decisions; decide about each, then compact"
            ));
        }
        if !self.history.is_empty() {
            return Err(format!(
                "not_stored: the first run of thread `{id}` stores the history that it was given; compact after it"
            ));
        }
        self.note_name(entry);
        let (count, log) = (self.compactions.count + 1, self.last_log());
        self.compactions = Compactions { count, runs: self.runs, log, result: None };
        self.options = self.options.over(&self.defaults);
        self.drive(self.compaction_id(), Begin::Compact { instructions }, now, sends);
        Ok(())
    }

    /// A compaction is over: what came meanwhile begins.
    pub(super) fn compacted(
        &mut self,
        result: Result<Option<Arc<CompactionNote>>, Fault>,
        log: u64,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) {
        let kept = |note: Arc<CompactionNote>| {
            let mut note = Arc::unwrap_or_clone(note);
            note.summary.take_if(|summary| summary.len() > SUMMARY_BYTES);
            Arc::new(note)
        };
        self.compactions.result = Some(result.map(|note| note.map(kept)));
        (self.log, self.stop, self.status) = (log, None, ThreadStatus::Idle);
        if self.is_forgetting {
            self.remove(sends);
        } else if self.queue.wakes() {
            self.begin(now, sends);
        }
    }
}
