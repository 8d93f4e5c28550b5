//! State of a thread, behind one short lock.

use std::sync::Arc;

use harness_core::driver::StoredStates;
use harness_core::message::Message;
use harness_core::port::DynSession;
use harness_core::{Cancel, EntryId, RunId, ThreadId, Time};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::memory::Memory;
use crate::config::ResolvedConfig;
use crate::error::RuntimeError;
use crate::prompt::{MessageOptions, Prompt, ResumeFrom};
use crate::queue::Queue;
use crate::report::Report;
use crate::runtime::Parts;
use crate::stream::{EventLog, ThreadEvent};

/// Status of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing.
    #[default]
    Idle,
    /// A run is in progress.
    Generating {
        /// Id of the run.
        run: RunId,
        /// Start of the run.
        since: Time,
    },
    /// A run is in progress, and one of its calls is pending.
    AwaitingApproval {
        /// Id of the run.
        run: RunId,
        /// Start of the run.
        since: Time,
    },
    /// A run is stopping.
    Aborting {
        /// Id of the run.
        run: RunId,
    },
    /// Its transcript is made shorter.
    Compacting,
}

/// Report of a run, or why it did not start.
pub(crate) type Outcome = Result<Report, RuntimeError>;

/// Waiters with their answer, to be sent after the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    waiters: Vec<oneshot::Sender<Outcome>>,
    told: Option<Outcome>,
}

impl Answers {
    /// Waiters with one answer.
    pub(crate) fn new(waiters: Vec<oneshot::Sender<Outcome>>, told: Outcome) -> Self {
        Self { waiters, told: Some(told) }
    }

    pub(crate) fn send(self) {
        let Some(told) = self.told else { return };
        for waiter in self.waiters {
            // Whoever does not wait any more needs no answer.
            let _ = waiter.send(told.clone());
        }
    }
}

/// Start of a run.
#[derive(Debug)]
pub(crate) enum Begin {
    /// This, which never waited.
    Prompt(Box<Prompt>),
    /// These messages of the queue, which agree in what is particular about their run.
    Queue(Vec<(EntryId, Arc<Message>)>, Box<MessageOptions>),
}

/// A run that was claimed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) run: RunId,
    pub(crate) cancel: Cancel,
    pub(crate) settled: Arc<ResolvedConfig>,
    pub(crate) begin: Begin,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) status: Status,
    pub(crate) closed: bool,
    pub(crate) queue: Queue,
    /// The transcript, while no run has it and it is loaded.
    pub(crate) memory: Option<Memory>,
    /// States of its tools that its session holds.
    pub(crate) stored_states: StoredStates,
    /// Whether a run, or a compaction, has the transcript.
    pub(crate) opened: bool,
    pub(crate) settled: Arc<ResolvedConfig>,
    pub(crate) waiters: Vec<oneshot::Sender<Outcome>>,
    pub(crate) last: Option<Outcome>,
    /// Stops the current work.
    pub(crate) cancel: Option<Cancel>,
    /// Number of the current or last run or compaction.
    pub(crate) claims: u64,
    /// Reason of the stop.
    pub(crate) aborted: Option<Arc<str>>,
    /// Whether it was stopped for a message.
    pub(crate) interrupting: bool,
    /// Whether the run skips steering at its start, because it started with some.
    pub(crate) skip_begin: bool,
    /// Entries that were named so far.
    pub(crate) named: u64,
}

/// The shared state of a thread.
pub(crate) struct Shared {
    pub(crate) id: ThreadId,
    pub(crate) parts: Arc<Parts>,
    state: Mutex<State>,
    pub(crate) event_log: EventLog,
    /// The session, while it is open; held while a transcript is loaded or let go of.
    pub(crate) session: tokio::sync::Mutex<Option<Arc<dyn DynSession>>>,
    /// A run has ended, or the status has changed.
    pub(crate) changed: Notify,
    /// Order of the prompts that wait for their turn.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id)
            .field("status", &self.lock().status)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(id: ThreadId, parts: Arc<Parts>, settled: Arc<ResolvedConfig>) -> Self {
        let state = State {
            status: Status::Idle,
            closed: false,
            queue: Queue::default(),
            memory: None,
            stored_states: StoredStates::default(),
            opened: false,
            settled,
            waiters: Vec::new(),
            last: None,
            cancel: None,
            claims: 0,
            aborted: None,
            interrupting: false,
            skip_begin: false,
            named: 0,
        };
        let event_log = EventLog::new(parts.limits.event_log);
        let (state, session) = (Mutex::new(state), tokio::sync::Mutex::default());
        Self {
            id,
            parts,
            state,
            event_log,
            session,
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The status as others see it: the state knows nothing of calls.
    pub(crate) fn shown(&self, status: Status) -> Status {
        if let Status::Generating { run, since } = &status
            && self.event_log.live(|live| !live.held.is_empty())
        {
            return Status::AwaitingApproval { run: run.clone(), since: *since };
        }
        status
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn busy(&self) -> RuntimeError {
        RuntimeError::Busy { thread: self.id.clone() }
    }

    /// Refuses when the thread is closed or at work.
    pub(crate) fn free(&self, state: &State) -> Result<(), RuntimeError> {
        if state.closed {
            return Err(RuntimeError::Closed { thread: self.id.clone() });
        }
        if state.status == Status::Idle { Ok(()) } else { Err(self.busy()) }
    }

    /// Rejects an invalid output schema.
    pub(crate) fn check_output(&self, options: &MessageOptions) -> Result<(), RuntimeError> {
        let Some(schema) = &options.output else { return Ok(()) };
        let schemas = Arc::clone(&self.lock().settled.config.schemas);
        let checked = schema.to().map_err(|error| error.to_string());
        let checked = checked.and_then(|schema| schemas.check_schema(&schema));
        checked.map_err(|problem| RuntimeError::OutputSchema { problem })
    }

    /// Makes a free thread busy with a run.
    pub(crate) fn claim(&self, state: &mut State, mut begin: Begin) -> Job {
        let (mut run, mut cancel) = (None, None);
        let options = match &mut begin {
            Begin::Prompt(prompt) => {
                cancel = prompt.cancel.as_ref().map(Cancel::child);
                if let ResumeFrom::Checkpoint(saved) = &prompt.from {
                    run = Some(saved.clone());
                }
                std::mem::take(&mut prompt.options)
            }
            Begin::Queue(_, options) => std::mem::take(&mut **options),
        };
        let run = run.unwrap_or_else(|| self.parts.ids.run_id());
        let cancel = cancel.unwrap_or_default();
        state.status = Status::Generating { run: run.clone(), since: self.parts.clock.now() };
        state.cancel = Some(cancel.clone());
        state.claims += 1;
        (state.aborted, state.interrupting, state.skip_begin) = (None, false, false);
        Job { run, cancel, settled: options.over(&state.settled), begin }
    }

    /// The next run: when something waits that wakes the thread, or, behind a run that was completed, when
    /// anything waits.
    pub(crate) fn next(&self, state: &mut State, completed: bool) -> Option<Job> {
        if state.closed || !(completed || state.queue.wakes()) {
            return None;
        }
        let options = state.queue.beginning().map(|first| first.options.clone()).unwrap_or_default();
        let entries = state.queue.take_beginning(state.settled.config.follow_up_mode);
        (!entries.is_empty()).then(|| self.claim(state, Begin::Queue(entries, Box::new(options))))
    }

    /// Stops the current work. Returns whether there was any.
    pub(crate) fn stop(&self, state: &mut State, why: Arc<str>) -> bool {
        let Some(cancel) = state.cancel.clone() else { return false };
        match &state.status {
            Status::Generating { run, .. } => state.status = Status::Aborting { run: run.clone() },
            Status::Compacting => {}
            Status::Idle | Status::AwaitingApproval { .. } | Status::Aborting { .. } => return false,
        }
        state.aborted = Some(why);
        self.event_log.emit(ThreadEvent::Status(state.status.clone()));
        cancel.cancel();
        true
    }

    /// Makes the thread idle.
    pub(crate) fn release(&self, state: &mut State) {
        state.status = Status::Idle;
        state.cancel = None;
        (state.aborted, state.opened) = (None, false);
        self.event_log.emit(ThreadEvent::Status(Status::Idle));
        if state.closed {
            self.event_log.close();
        }
    }

    /// Waiters of an idle thread, with their answer: no run follows in a closed thread.
    pub(crate) fn stranded(&self, state: &mut State) -> Answers {
        let told = match &state.last {
            Some(last) => last.clone(),
            None if state.closed => Err(RuntimeError::Closed { thread: self.id.clone() }),
            None => return Answers::default(),
        };
        Answers { waiters: std::mem::take(&mut state.waiters), told: Some(told) }
    }
}
