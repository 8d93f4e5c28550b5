//! Messages of a worker for front ends.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use harness::core::port::DeltaPart;
use harness::core::{Json, ThreadId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::{ANSWER_BYTES, Push, Pushed, PushedAnswer, size_of};
use crate::durable::deltas::Reports;
use crate::durable::{AnswerId, DeltaReceiver, ToolProgress};

/// How long a worker sends nothing about a thread to a front end without readers of it: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// How long an answer that ended is kept for front ends that do not have it.
const KEEP: Duration = Duration::from_secs(1);
/// Notices that are kept for front ends, and threads that are remembered of each.
const NOTICES: usize = 1_024;
/// Bytes of the deltas of one batch, after which it is sent.
const BATCH: usize = ANSWER_BYTES;

/// An answer, from its first delta on.
#[derive(Debug)]
struct Answer {
    id: AnswerId,
    parts: Vec<DeltaPart>,
    /// Parts that were sent somewhere: they do not grow.
    sealed: usize,
    bytes: usize,
    ended: Option<Instant>,
}

impl Answer {
    /// Adds a delta: to the last one, if that was not sent yet. What exceeds the limit is dropped, and all behind it.
    fn add(&mut self, part: DeltaPart) {
        let is_open = self.sealed < self.parts.len();
        match (self.parts.last_mut().filter(|_| is_open), part) {
            (Some(DeltaPart::Text(text)), DeltaPart::Text(more))
            | (Some(DeltaPart::Thinking(text)), DeltaPart::Thinking(more)) => {
                self.bytes += more.len();
                if self.bytes <= ANSWER_BYTES {
                    text.push_str(&more);
                }
            }
            (_, part) => {
                self.bytes += size_of(&part);
                if self.bytes <= ANSWER_BYTES {
                    self.parts.push(part);
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// By the order of their start.
    answers: BTreeMap<u64, Answer>,
    started: u64,
    /// The threads that changed last, and the number of those before.
    changed: VecDeque<ThreadId>,
    forgotten: u64,
    reports: Reports,
}

/// Messages of a worker for front ends. Bounded, and never waited for.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    grown: Notify,
}

/// State of one front end.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Answers that were seen here, and the notices.
    seen: u64,
    noticed: u64,
    /// Number of the next report of a tool.
    reported: u64,
    /// The number of deltas that the front end has of each answer; `None` when it wants no more.
    have: HashMap<u64, Option<usize>>,
    /// Notices to send.
    changed: BTreeSet<ThreadId>,
    /// Threads without readers.
    unread: HashMap<ThreadId, Unread>,
    /// When there is something to send about one of these.
    asks_at: Option<Instant>,
}

/// A thread without readers: whether it has any now is asked after a pause, with a notice.
#[derive(Debug)]
struct Unread {
    until: Instant,
    pause: Duration,
}

/// A batch for one front end, and the answers in it.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) push: Push,
    answers: Vec<u64>,
}

impl Outbox {
    /// A front end that has nothing yet.
    pub(super) fn lane(&self) -> Lane {
        Lane { reported: self.state.lock().reports.end(), ..Lane::default() }
    }

    /// Completes when there is more.
    pub(super) fn grown(&self) -> Notified<'_> {
        self.grown.notified()
    }

    /// A thread changed, and with it those that it works for.
    pub(crate) fn changed(&self, thread: &ThreadId) {
        let mut state = self.state.lock();
        let callers = thread.as_str().match_indices('/').map(|(at, _)| thread.as_str().split_at(at).0);
        state.changed.extend(callers.map(ThreadId::from).chain([thread.clone()]));
        while state.changed.len() > NOTICES {
            state.changed.pop_front();
            state.forgotten += 1;
        }
        drop(state);
        self.grown.notify_waiters();
    }

    /// Messages that a front end does not have; `None` when it has everything that it wants.
    pub(super) fn batch(&self, lane: &mut Lane, now: Instant) -> Option<Batch> {
        let mut state = self.state.lock();
        state.answers.retain(|_, answer| answer.ended.is_none_or(|ended| now < ended + KEEP));
        lane.follow(&state, now);
        let (mut push, mut answers, mut bytes) = (Push::default(), Vec::new(), 0);
        for (number, answer) in &mut state.answers {
            let Some(Some(from)) = lane.have.get(number).copied() else { continue };
            if from >= answer.parts.len() {
                continue;
            }
            if lane.unread.contains_key(&answer.id.thread) {
                lane.changed.insert(answer.id.thread.clone());
                continue;
            }
            let parts = answer.parts.get(from..).unwrap_or_default().to_vec();
            answer.sealed = answer.parts.len();
            bytes += parts.iter().map(size_of).sum::<usize>();
            push.answers.push(PushedAnswer { id: answer.id.clone(), from, parts });
            answers.push(*number);
            if bytes >= BATCH {
                break;
            }
        }
        while bytes < BATCH
            && let Some((number, report)) = state.reports.get(lane.reported)
        {
            lane.reported = number + 1;
            if lane.unread.contains_key(&report.thread) {
                lane.changed.insert(report.thread);
            } else {
                bytes += Json::size_of(&report);
                push.reports.push(report);
            }
        }
        push.changed = lane.due(now);
        let is_empty = push.answers.is_empty() && push.reports.is_empty() && push.changed.is_empty();
        (!is_empty).then_some(Batch { push, answers })
    }
}

impl Lane {
    /// Takes note of what is new.
    fn follow(&mut self, state: &State, now: Instant) {
        self.unread.retain(|_, unread| now < unread.until + PAUSES.1);
        self.have.retain(|number, _| state.answers.contains_key(number));
        for (number, answer) in state.answers.range(self.seen..) {
            // A reader may have come before a run that it started.
            self.unread.remove(&answer.id.thread);
            self.have.insert(*number, Some(0));
        }
        self.seen = state.started;
        let new = usize::try_from(self.noticed.saturating_sub(state.forgotten)).unwrap_or(usize::MAX);
        for thread in state.changed.iter().skip(new) {
            if self.changed.len() < NOTICES {
                self.changed.insert(thread.clone());
            }
        }
        self.noticed = state.forgotten + state.changed.len() as u64;
    }

    /// Takes the notices that are sent now; those about threads without readers wait.
    fn due(&mut self, now: Instant) -> Vec<ThreadId> {
        let Self { changed, unread, asks_at, .. } = self;
        let until =
            |thread: &ThreadId| unread.get(thread).map(|unread| unread.until).filter(|until| now < *until);
        let due = changed.extract_if(.., |thread| until(thread).is_none()).collect();
        *asks_at = changed.iter().filter_map(until).min();
        due
    }

    /// When a notice about a thread without readers is sent; `None` when there is none.
    pub(super) fn asks_at(&self) -> Option<Instant> {
        self.asks_at
    }

    /// Takes a reply.
    pub(super) fn sent(&mut self, batch: &Batch, reply: Pushed, now: Instant) {
        for (number, have) in batch.answers.iter().zip(reply.have) {
            if let Some(known) = self.have.get_mut(number) {
                *known = have;
            }
        }
        for thread in &batch.push.changed {
            if !reply.unread.contains(thread) {
                self.unread.remove(thread);
            }
        }
        for thread in reply.unread {
            let known = self.unread.get(&thread).map(|unread| (unread.pause * 2).min(PAUSES.1));
            let pause = known.unwrap_or(PAUSES.0);
            if self.unread.len() < NOTICES {
                self.unread.insert(thread, Unread { until: now + pause, pause });
            }
        }
    }

    /// A batch did not arrive: its notices are sent again.
    pub(super) fn failed(&mut self, batch: Batch) {
        let room = NOTICES.saturating_sub(self.changed.len());
        self.changed.extend(batch.push.changed.into_iter().take(room));
    }
}

impl DeltaReceiver for Outbox {
    fn start(&self, answer: &AnswerId) {
        let mut state = self.state.lock();
        let number = state.started;
        state.started += 1;
        let answer = Answer { id: answer.clone(), parts: Vec::new(), sealed: 0, bytes: 0, ended: None };
        state.answers.insert(number, answer);
    }

    fn delta(&self, answer: &AnswerId, part: DeltaPart) {
        let mut state = self.state.lock();
        let Some(answer) = state.answers.values_mut().rev().find(|known| known.id == *answer) else { return };
        answer.add(part);
        drop(state);
        self.grown.notify_waiters();
    }

    fn end(&self, answer: &AnswerId) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.answers.retain(|_, answer| answer.ended.is_none_or(|ended| now < ended + KEEP));
        if let Some(answer) = state.answers.values_mut().rev().find(|known| known.id == *answer) {
            answer.ended = Some(now);
        }
    }

    fn progress(&self, progress: ToolProgress) {
        self.state.lock().reports.push(progress);
        self.grown.notify_waiters();
    }
}
