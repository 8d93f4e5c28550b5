//! Lists of all threads, which the admin API of the engine reads from the states of their objects.

use std::num::NonZeroUsize;

use futures_util::StreamExt as _;
use harness::StoredThread;
use harness::core::{ThreadId, Time};
use harness::runtime::{PendingApproval, RuntimeError, ThreadSummary};
use lru::LruCache;
use parking_lot::Mutex;
use serde::Deserialize;

use super::admin::quoted;
use super::call::ReadReply;
use super::client::DurableThreads;
use super::engine::{Engine, EngineError};
use super::service::THREAD;
use super::store::read;
use super::threads::is_free;
use crate::durable::{ThreadState, fold};

/// States of one query: each has up to 256 KiB.
const CHUNK: usize = 100;
/// Titles that are read at once.
const READS: usize = 16;
/// Entries of a log that are searched for a title.
const ENTRIES: u64 = 16;
/// Titles that are remembered.
const TITLES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4095);
/// Calls of all threads that are listed.
const HELD: usize = 1_000;

/// Titles of conversations, by thread and first log entry.
#[derive(Debug)]
pub(super) struct Titles(Mutex<LruCache<(ThreadId, u64), String>>);

impl Default for Titles {
    fn default() -> Self {
        Self(Mutex::new(LruCache::sparse(TITLES)))
    }
}

#[derive(Deserialize)]
struct Row {
    key: String,
    state: Option<String>,
}

impl Engine {
    /// States of threads that exist and fulfill a condition of SQL, by id, behind an id; and the last id that was read, if
    /// there may be more.
    async fn states(
        &self,
        condition: &str,
        after: &str,
        limit: usize,
    ) -> Result<(Vec<(ThreadId, ThreadState)>, Option<String>), EngineError> {
        let limit = limit.min(CHUNK);
        // Threads of sub-agents belong to those that they work for.
        let sql = format!(
            "SELECT service_key AS key, value_utf8 AS state FROM state WHERE service_name = '{THREAD}' \
             AND key = 'state' AND service_key > {} AND strpos(service_key, '/') = 0 AND {condition} \
             ORDER BY service_key LIMIT {limit}",
            quoted(after)
        );
        let rows = self.query::<Row>(&sql).await?;
        let last = (rows.len() == limit).then(|| rows.last().map(|row| row.key.clone())).flatten();
        let states = rows.into_iter().filter_map(|Row { key, state }| {
            let state = serde_json::from_str::<ThreadState>(&state.unwrap_or_default());
            if let Err(error) = &state {
                tracing::warn!(thread = key, %error, "the state of a thread is unreadable, so it is not listed");
            }
            state.ok().map(|state| (ThreadId::from(key), state))
        });
        Ok((states.filter(|(_, state)| state.created().is_some()).collect(), last))
    }
}

impl DurableThreads {
    /// Threads behind an id, at most `limit`.
    pub(super) async fn summaries(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<Vec<ThreadSummary>, RuntimeError> {
        let mut found = Vec::new();
        let mut after = Some(after.map(ThreadId::to_string).unwrap_or_default());
        while let Some(last) = after.filter(|_| found.len() < limit) {
            let (states, more) = self.engine().states("true", &last, limit - found.len()).await?;
            let summaries = futures_util::stream::iter(states);
            let summaries = summaries.map(|(thread, state)| self.summary(thread, state)).buffered(READS);
            found.extend(summaries.collect::<Vec<_>>().await);
            after = more;
        }
        Ok(found)
    }

    async fn summary(&self, thread: ThreadId, state: ThreadState) -> ThreadSummary {
        let is_empty = is_free(&state) && state.log() <= state.first();
        let title = if is_empty { None } else { self.title(&thread, &state).await };
        let mut summary = ThreadSummary::new(thread, state.shown_status());
        summary.waiting = state.waiting();
        let defaults = state.defaults();
        (summary.attributes.user, summary.attributes.metadata) =
            (defaults.user.clone(), defaults.metadata.clone());
        (summary.title, summary.created) = (title, state.created());
        summary.messages = is_empty.then_some(0);
        summary.updated = Some(state.since()).filter(|since| *since > Time(0));
        summary
    }

    /// The start of the first message of a conversation.
    async fn title(&self, thread: &ThreadId, state: &ThreadState) -> Option<String> {
        let key = (thread.clone(), state.first());
        if let Some(known) = self.titles().0.lock().get(&key) {
            return Some(known.clone());
        }
        let upto = state.first().saturating_add(ENTRIES);
        let ReadReply { entries, .. } = read(self.engine(), thread, state.first(), upto).await.ok()?;
        let title = StoredThread::title_of(fold(&entries).messages())?;
        self.titles().0.lock().put(key, title.clone());
        Some(title)
    }

    /// Calls that wait for a decision in the runs of all threads, at most 1,000.
    pub(super) async fn held_calls(&self) -> Result<Vec<PendingApproval>, RuntimeError> {
        let mut found = Vec::new();
        let mut after = Some(String::new());
        while let Some(last) = after.filter(|_| found.len() < HELD) {
            let (states, more) =
                self.engine().states("value_utf8 LIKE '%\"held\":[{%'", &last, CHUNK).await?;
            for (_, state) in states.iter().filter(|(_, state)| !is_free(state)) {
                let held = state.approvals().map(|held| held.proposed.clone());
                found.extend(held.map(|proposed| PendingApproval { proposed, is_parked: false }));
            }
            after = more;
        }
        found.truncate(HELD);
        Ok(found)
    }
}
