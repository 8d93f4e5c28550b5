//! Deltas of the answers of an engine's threads, for readers in its process.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::core::ThreadId;
use harness::core::port::DeltaPart;
use parking_lot::Mutex;

use crate::durable::answer::{AnswerId, DeltaReceiver, ToolProgress};
use crate::durable::deltas::{AnswerFeed, Reports};

/// The last attempt at an answer of each thread, and the reports of its tools. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimFeed(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    /// By thread: the attempt, and its deltas.
    attempts: BTreeMap<ThreadId, (AnswerId, Vec<DeltaPart>)>,
    reports: BTreeMap<ThreadId, Reports>,
}

impl SimFeed {
    /// Deltas of a thread.
    pub(crate) fn reader(&self, thread: &ThreadId) -> ThreadFeed {
        ThreadFeed { feed: self.clone(), thread: thread.clone() }
    }
}

impl DeltaReceiver for SimFeed {
    fn start(&self, answer: &AnswerId) {
        let feed = &mut self.0.lock().attempts;
        if feed.get(&answer.thread).is_none_or(|(known, _)| known < answer) {
            feed.insert(answer.thread.clone(), (answer.clone(), Vec::new()));
        }
    }

    fn delta(&self, answer: &AnswerId, part: DeltaPart) {
        if let Some((_, parts)) =
            self.0.lock().attempts.get_mut(&answer.thread).filter(|(known, _)| known == answer)
        {
            parts.push(part);
        }
    }

    fn end(&self, _: &AnswerId) {}

    fn progress(&self, progress: ToolProgress) {
        self.0.lock().reports.entry(progress.thread.clone()).or_default().push(progress);
    }
}

/// The deltas of one thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadFeed {
    feed: SimFeed,
    thread: ThreadId,
}

impl AnswerFeed for ThreadFeed {
    fn answer(&self, from: impl FnOnce(&AnswerId) -> usize) -> Option<(AnswerId, Vec<DeltaPart>)> {
        let feed = self.feed.0.lock();
        let (id, parts) = feed.attempts.get(&self.thread)?;
        let parts = parts.get(from(id)..).unwrap_or_default().to_vec();
        Some((id.clone(), parts)).filter(|(_, parts)| !parts.is_empty())
    }

    fn report(&self, from: u64) -> Option<(u64, ToolProgress)> {
        self.feed.0.lock().reports.get(&self.thread)?.get(from)
    }

    fn reported(&self) -> u64 {
        self.feed.0.lock().reports.get(&self.thread).map_or(0, Reports::end)
    }
}
