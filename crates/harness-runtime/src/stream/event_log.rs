//! Event log of a thread: a bounded buffer of events, and the current state.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::event::{Event, EventKind};
use harness_core::message::{Block, ToolCall};
use harness_core::port::DeltaPart;
use harness_core::transcript::{Prefix, Transcript, View};
use harness_core::{CallId, EntryId, RunId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::assembly::Assembly;
use crate::queue::DeliveryMode;
use crate::report::Report;
use crate::thread::Status;

/// Change of a queued message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueChange {
    /// It waits now.
    Queued(DeliveryMode),
    /// Its content or place changed.
    Changed,
    /// It was removed, and is not delivered.
    Removed,
}

/// Event of a thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ThreadEvent {
    /// The thread does something else now.
    Status(Status),
    /// A message of the queue.
    Queue {
        /// Which.
        entry: EntryId,
        /// The change.
        change: QueueChange,
    },
    /// A run started with these queued messages; none if it resumes the transcript.
    RunStarted {
        /// Id of the run.
        run: RunId,
        /// The messages, in order.
        entries: Vec<EntryId>,
    },
    /// An event of the run, after its records are stored.
    Event(Event),
    /// A delta of the current answer.
    Delta(DeltaPart),
    /// The current answer starts again: its deltas so far are void. On a durable engine, when a worker was lost.
    AnswerRestarted,
    /// Progress of a tool.
    ToolUpdate {
        /// Call of the tool.
        call: Arc<ToolCall>,
        /// Content of the progress.
        content: Vec<Block>,
    },
    /// A run is over.
    RunEnded(Arc<Report>),
    /// A run could not begin.
    RunFailed {
        /// Id of the run.
        run: RunId,
        /// Error of the start.
        error: Arc<crate::RuntimeError>,
    },
}

/// Current state, as a fold over events.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Transcript at the start of the run; `None` for an empty one.
    base: Option<Prefix>,
    /// The transcript with what the run has appended, once it has. Snapshots share it.
    log: Option<Transcript>,
    pub(crate) answer: Assembly,
    pub(crate) answering: bool,
    pub(crate) calls: Vec<CallId>,
    /// The calls that wait for a decision.
    pub(crate) held: Vec<CallId>,
}

impl Live {
    /// A run begins, or is over.
    pub(crate) fn reset(&mut self, base: Prefix) {
        *self = Self { base: (!base.is_empty()).then_some(base), ..Self::default() };
    }

    /// Transcript at the start of the run. Costs one reference count.
    pub(crate) fn base(&self) -> Prefix {
        self.base.clone().unwrap_or_default()
    }

    /// Returns the transcript as it is now. Costs one reference count.
    pub(crate) fn transcript(&self) -> Prefix {
        self.log.as_ref().map_or_else(|| self.base(), Transcript::prefix)
    }

    fn see(&mut self, kind: &EventKind) {
        if let EventKind::ModelStepStarted { .. } = kind {
            self.answering = true;
            self.answer.start();
        } else if let EventKind::MessageAppended { message, .. } = kind {
            let base = &self.base;
            let fork = || base.as_ref().map_or_else(Transcript::default, Prefix::fork);
            self.log.get_or_insert_with(fork).push(Arc::clone(message));
            if message.as_assistant().is_some() {
                self.answering = false;
                self.answer.clear();
            }
        } else if let EventKind::ModelStepFailed { .. } = kind {
            self.answering = false;
            self.answer.clear();
        } else if let EventKind::ToolStarted { call } = kind {
            self.calls.push(call.id.clone());
        } else if let EventKind::ToolFinished { call, .. } | EventKind::ToolFailed { call, .. } = kind {
            if let Some(at) = self.calls.iter().position(|id| *id == call.id) {
                self.calls.remove(at);
            }
        } else if let EventKind::ApprovalRequested { request, digest: Some(_), .. } = kind {
            self.held.extend(request.call_id.clone());
        } else if let EventKind::ApprovalDecided { call, .. } = kind {
            self.held.retain(|id| id != call);
        } else if let EventKind::CompactionCompleted { permanent: true, plan, .. } = kind {
            let mut shown = Transcript::default();
            let view = View::planned(self.transcript(), plan.clone());
            view.for_each(|message| shown.push(Arc::clone(message)));
            (self.base, self.log) = (Some(shown.prefix()), None);
        }
    }
}

/// Events for which a run begins with room.
const ROOM: usize = 48;

#[derive(Debug, Default)]
pub(super) struct LogSegment {
    kept: VecDeque<ThreadEvent>,
    /// The number of the first that is kept.
    pub(super) first: u64,
    /// Start of the current or last run.
    pub(super) run_from: u64,
    pub(super) closed: bool,
    live: Live,
}

impl LogSegment {
    pub(super) fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    pub(super) fn get(&self, at: u64) -> Option<&ThreadEvent> {
        self.kept.get(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    fn push(&mut self, event: ThreadEvent, most: usize) {
        if matches!(event, ThreadEvent::RunStarted { .. }) {
            self.run_from = self.end();
            // Room is made before the first piece of an answer, and not while readers wait for one.
            self.kept.reserve(most.min(ROOM));
        }
        while self.kept.len() >= most.max(1) {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(event);
    }
}

/// The event log of a thread.
#[derive(Debug)]
pub(crate) struct EventLog {
    pub(super) segment: Mutex<LogSegment>,
    pub(super) grown: Notify,
    most: usize,
}

impl EventLog {
    pub(crate) fn new(most: usize) -> Self {
        Self { segment: Mutex::default(), grown: Notify::new(), most }
    }

    /// Reads or changes the current state.
    pub(crate) fn live<T>(&self, look: impl FnOnce(&mut Live) -> T) -> T {
        look(&mut self.segment.lock().live)
    }

    pub(crate) fn emit(&self, event: ThreadEvent) {
        self.segment.lock().push(event, self.most);
        self.grown.notify_waiters();
    }

    /// Emits an event of a run.
    pub(crate) fn event(&self, event: &Event) {
        let mut segment = self.segment.lock();
        segment.live.see(&event.kind);
        segment.push(ThreadEvent::Event(event.clone()), self.most);
        drop(segment);
        self.grown.notify_waiters();
    }

    /// Emits a delta.
    pub(crate) fn delta(&self, part: DeltaPart) {
        let mut segment = self.segment.lock();
        segment.live.answer.take(&part);
        segment.push(ThreadEvent::Delta(part), self.most);
        drop(segment);
        self.grown.notify_waiters();
    }

    /// Emits progress of a tool, unless its call has ended.
    pub(crate) fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        let mut segment = self.segment.lock();
        if segment.live.calls.contains(&call.id) {
            segment.push(ThreadEvent::ToolUpdate { call: Arc::clone(call), content }, self.most);
            drop(segment);
            self.grown.notify_waiters();
        }
    }

    /// Ends all readers.
    pub(crate) fn close(&self) {
        self.segment.lock().closed = true;
        self.grown.notify_waiters();
    }

    /// Drops the buffer. Numbers continue, so that later readers know the number of missed events.
    pub(crate) fn forget(&self) {
        let mut segment = self.segment.lock();
        segment.first = segment.end();
        segment.kept = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use harness_core::message::Message;

    use super::*;

    fn appended(number: usize) -> EventKind {
        let message = Arc::new(Message::user(number.to_string()));
        EventKind::MessageAppended { index: number as u64, message }
    }

    #[test]
    fn fault_46_snapshots_of_a_running_thread_share_one_transcript() {
        let before: Transcript = (0..50).map(|number| Arc::new(Message::user(number.to_string()))).collect();
        let mut live = Live::default();
        live.reset(before.prefix());
        assert!(live.transcript().is_start_of(&before) && before.is_start_of(&live.transcript()));

        live.see(&appended(50));
        let first = live.transcript();
        for number in 51..200 {
            live.see(&appended(number));
            let (one, other) = (live.transcript(), live.transcript());
            assert!(first.is_start_of(&one), "a later snapshot extends an earlier one");
            assert!(one.is_start_of(&other) && other.is_start_of(&one), "snapshots share a transcript");
        }
        assert_eq!((live.base().len(), first.len(), live.transcript().len()), (50, 51, 200));
        let texts: Vec<_> = live.transcript().iter().map(|message| message.joined_text()).collect();
        assert_eq!(texts, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}
