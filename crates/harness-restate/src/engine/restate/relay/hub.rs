//! Messages of workers at a front end.

use std::collections::HashMap;
use std::sync::Arc;

use harness::core::ThreadId;
use harness::core::port::DeltaPart;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::{ANSWER_BYTES, Push, Pushed, PushedAnswer, size_of};
use crate::durable::deltas::{AnswerFeed, Reports};
use crate::durable::{AnswerId, ToolProgress};

/// Receives deltas and notices of workers for the readers of this process.
///
/// A front end that has one shows answers while they come, and learns at once that a log grew
/// ([`DurableThreads::relay`](crate::engine::restate::DurableThreads::relay)). Clones share what they received.
#[derive(Clone, Debug, Default)]
pub struct RelayHub(Arc<Mutex<HashMap<ThreadId, Arc<Feed>>>>);

/// Messages for the readers of a thread.
#[derive(Debug, Default)]
pub(in crate::engine::restate) struct Feed {
    state: Mutex<State>,
    grown: Notify,
}

#[derive(Debug, Default)]
struct State {
    readers: usize,
    /// Notices so far.
    changes: u64,
    answer: Option<Answer>,
    reports: Reports,
}

#[derive(Debug)]
struct Answer {
    id: AnswerId,
    parts: Vec<DeltaPart>,
    bytes: usize,
}

/// A reader of a thread. While there is one, workers send deltas.
#[derive(Debug)]
pub(in crate::engine::restate) struct FeedReader {
    hub: RelayHub,
    thread: ThreadId,
    feed: Arc<Feed>,
}

impl RelayHub {
    /// A hub without readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to read what comes about a thread.
    pub(in crate::engine::restate) fn reader(&self, thread: &ThreadId) -> FeedReader {
        let mut feeds = self.0.lock();
        let feed = Arc::clone(feeds.entry(thread.clone()).or_default());
        feed.state.lock().readers += 1;
        FeedReader { hub: self.clone(), thread: thread.clone(), feed }
    }

    fn feed(&self, thread: &ThreadId) -> Option<Arc<Feed>> {
        self.0.lock().get(thread).cloned()
    }

    /// Takes a batch.
    pub(super) fn take(&self, push: Push) -> Pushed {
        let mut reply = Pushed::default();
        for answer in push.answers {
            if let Some(feed) = self.feed(&answer.id.thread) {
                reply.have.push(feed.take(answer));
            } else {
                reply.have.push(Some(0));
                reply.unread.push(answer.id.thread);
            }
        }
        for report in push.reports {
            match self.feed(&report.thread) {
                Some(feed) => feed.report(report),
                None => reply.unread.push(report.thread),
            }
        }
        for thread in push.changed {
            match self.feed(&thread) {
                Some(feed) => feed.change(),
                None => reply.unread.push(thread),
            }
        }
        reply
    }
}

impl Feed {
    /// Takes deltas of an answer: the number of its deltas here, or `None` if no more are wanted.
    fn take(&self, pushed: PushedAnswer) -> Option<usize> {
        let PushedAnswer { id, from, parts } = pushed;
        let mut state = self.state.lock();
        let current = state.answer.as_ref().map(|answer| &answer.id);
        if current.is_some_and(|current| *current > id) {
            return None;
        }
        if current != Some(&id) {
            state.answer = Some(Answer { id, parts: Vec::new(), bytes: 0 });
        }
        let answer = state.answer.as_mut()?;
        let have = answer.parts.len();
        // A worker that believes that more is here sends it again.
        let Some(known) = have.checked_sub(from) else { return Some(have) };
        for part in parts.into_iter().skip(known) {
            answer.bytes += size_of(&part);
            if answer.bytes > 2 * ANSWER_BYTES {
                return None;
            }
            answer.parts.push(part);
        }
        let have = answer.parts.len();
        drop(state);
        self.grown.notify_waiters();
        Some(have)
    }

    /// Completes when something comes.
    pub(in crate::engine::restate) fn grown(&self) -> Notified<'_> {
        self.grown.notified()
    }

    fn report(&self, progress: ToolProgress) {
        self.state.lock().reports.push(progress);
        self.grown.notify_waiters();
    }

    fn change(&self) {
        self.state.lock().changes += 1;
        self.grown.notify_waiters();
    }
}

impl FeedReader {
    /// Messages so far, for a look without the reader.
    pub(in crate::engine::restate) fn feed(&self) -> Arc<Feed> {
        Arc::clone(&self.feed)
    }

    /// Notices so far.
    pub(in crate::engine::restate) fn changes(&self) -> u64 {
        self.feed.state.lock().changes
    }

    /// Completes when there are other notices than those; never without a reader.
    pub(in crate::engine::restate) async fn changed(reader: Option<&Self>, than: Option<u64>) {
        let Some(reader) = reader else { return std::future::pending().await };
        loop {
            let mut grown = std::pin::pin!(reader.feed.grown());
            grown.as_mut().enable();
            if than != Some(reader.changes()) {
                return;
            }
            grown.await;
        }
    }
}

impl AnswerFeed for FeedReader {
    fn answer(&self, from: impl FnOnce(&AnswerId) -> usize) -> Option<(AnswerId, Vec<DeltaPart>)> {
        let state = self.feed.state.lock();
        let answer = state.answer.as_ref()?;
        let parts = answer.parts.get(from(&answer.id)..).unwrap_or_default().to_vec();
        Some((answer.id.clone(), parts)).filter(|(_, parts)| !parts.is_empty())
    }

    fn report(&self, from: u64) -> Option<(u64, ToolProgress)> {
        self.feed.state.lock().reports.get(from)
    }

    fn reported(&self) -> u64 {
        self.feed.state.lock().reports.end()
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        let mut feeds = self.hub.0.lock();
        let mut state = self.feed.state.lock();
        state.readers -= 1;
        if state.readers == 0 {
            feeds.remove(&self.thread);
        }
    }
}
