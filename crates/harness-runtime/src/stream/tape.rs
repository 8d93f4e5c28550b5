//! The tape of a thread: what happened, bounded, and what is going on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::event::{Event, EventKind};
use harness_core::message::{Message, ToolCall};
use harness_core::port::{Content, DeltaPart};
use harness_core::transcript::{Prefix, Transcript, View};
use harness_core::{CallId, EntryId, RunId};
use tokio::sync::Notify;

use super::assembly::Assembly;
use crate::queue::DeliveryMode;
use crate::report::Report;
use crate::thread::Status;

/// What became of a message of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueChange {
    /// It waits now.
    Queued(DeliveryMode),
    /// It says something else now, or stands in another place.
    Changed,
    /// It was taken out, and is not delivered.
    Removed,
}

/// What happens in a thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ThreadEvent {
    /// The thread does something else now.
    Status(Status),
    /// A message of the queue.
    Queue {
        /// Which.
        entry: EntryId,
        /// What became of it.
        change: QueueChange,
    },
    /// A run begins with these messages of the queue; none when it goes on where the transcript ends.
    RunStarted {
        /// The run.
        run: RunId,
        /// The messages, in order.
        entries: Vec<EntryId>,
    },
    /// Something that the run's machine tells, after what it rests on is stored.
    Event(Event),
    /// A piece of an answer that is still coming.
    Delta(DeltaPart),
    /// A tool tells how far it is.
    ToolUpdate {
        /// Its call.
        call: Arc<ToolCall>,
        /// What it says.
        content: Content,
    },
    /// A run is over.
    RunEnded(Arc<Report>),
    /// A run could not begin.
    RunFailed {
        /// The run.
        run: RunId,
        /// Why.
        error: Arc<crate::RuntimeError>,
    },
}

/// What is going on, as far as events tell.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The transcript when the run began.
    pub(crate) base: Prefix,
    /// What the run has appended.
    added: Vec<Arc<Message>>,
    pub(crate) answer: Assembly,
    pub(crate) answering: bool,
    pub(crate) calls: Vec<CallId>,
}

impl Live {
    /// A run begins, or is over.
    pub(crate) fn reset(&mut self, base: Prefix) {
        *self = Self { base, ..Self::default() };
    }

    /// The transcript as it is now. Costs what the run has appended.
    pub(crate) fn transcript(&self) -> Prefix {
        if self.added.is_empty() {
            return self.base.clone();
        }
        let all: Transcript = self.base.iter().chain(&self.added).cloned().collect();
        all.prefix()
    }

    fn see(&mut self, event: &Event) {
        if let EventKind::ModelStepStarted { .. } = &event.kind {
            self.answering = true;
            self.answer.clear();
        } else if let EventKind::MessageAppended { message, .. } = &event.kind {
            self.added.push(Arc::clone(message));
            if message.as_assistant().is_some() {
                self.answering = false;
                self.answer.clear();
            }
        } else if let EventKind::ModelStepFailed { .. } = &event.kind {
            self.answering = false;
            self.answer.clear();
        } else if let EventKind::ToolStarted { call } = &event.kind {
            self.calls.push(call.id.clone());
        } else if let EventKind::ToolFinished { call, .. } | EventKind::ToolFailed { call, .. } = &event.kind
        {
            if let Some(at) = self.calls.iter().position(|id| *id == call.id) {
                self.calls.remove(at);
            }
        } else if let EventKind::CompactionCompleted { permanent: true, plan, .. } = &event.kind {
            let mut shown = Transcript::default();
            let view = View::planned(self.transcript(), plan.clone());
            view.for_each(|message| shown.push(Arc::clone(message)));
            (self.base, self.added) = (shown.prefix(), Vec::new());
        }
    }
}

/// Events for which a run begins with room.
const ROOM: usize = 48;

#[derive(Debug, Default)]
pub(super) struct Reel {
    kept: VecDeque<ThreadEvent>,
    /// The number of the first that is kept.
    pub(super) first: u64,
    /// Where the run at hand, or the last one, began.
    pub(super) run_from: u64,
    pub(super) closed: bool,
    live: Live,
}

impl Reel {
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

/// The tape of a thread.
#[derive(Debug)]
pub(crate) struct Tape {
    reel: Mutex<Reel>,
    pub(super) grown: Notify,
    most: usize,
}

impl Tape {
    pub(crate) fn new(most: usize) -> Self {
        Self { reel: Mutex::default(), grown: Notify::new(), most }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Reel> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes what is going on.
    pub(crate) fn live<T>(&self, look: impl FnOnce(&mut Live) -> T) -> T {
        look(&mut self.lock().live)
    }

    pub(crate) fn tell(&self, event: ThreadEvent) {
        self.lock().push(event, self.most);
        self.grown.notify_waiters();
    }

    /// Tells an event of a run.
    pub(crate) fn event(&self, event: &Event) {
        let mut reel = self.lock();
        reel.live.see(event);
        reel.push(ThreadEvent::Event(event.clone()), self.most);
        drop(reel);
        self.grown.notify_waiters();
    }

    /// Tells a piece of an answer.
    pub(crate) fn delta(&self, part: DeltaPart) {
        let mut reel = self.lock();
        reel.live.answer.take(&part);
        reel.push(ThreadEvent::Delta(part), self.most);
        drop(reel);
        self.grown.notify_waiters();
    }

    /// Tells an update of a tool, unless its call is over.
    pub(crate) fn update(&self, call: &Arc<ToolCall>, content: Content) {
        let mut reel = self.lock();
        if reel.live.calls.contains(&call.id) {
            reel.push(ThreadEvent::ToolUpdate { call: Arc::clone(call), content }, self.most);
            drop(reel);
            self.grown.notify_waiters();
        }
    }

    /// Nothing follows any more: readers end.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.grown.notify_waiters();
    }

    /// Lets go of what is kept. Numbers go on, so that readers who come later know what they miss.
    pub(crate) fn forget(&self) {
        let mut reel = self.lock();
        reel.first = reel.end();
        reel.kept = VecDeque::new();
    }
}
