//! The owner of a thread's runs: one task while the thread is busy.

use std::sync::{Arc, MutexGuard};

use harness_core::driver::drive;
use harness_core::machine::Start;
use harness_core::message::Message;
use harness_core::{Cancel, EntryId, Origin, RunId};

use super::memory::Memory;
use super::state::{Answers, Begin, Job, Outcome, Shared, State, Status};
use crate::agent::ThreadAgents;
use crate::config::RunSetup;
use crate::error::RuntimeError;
use crate::report::Report;
use crate::stream::ThreadEvent;

impl Shared {
    /// Drives a claimed run, and those that follow it, in a task of their own.
    pub(crate) fn spawn(self: &Arc<Self>, job: Job) {
        let owner = RunOwner::of(self);
        self.parts.tokio.spawn(async move {
            let mut job = Some(job);
            while let Some(claimed) = job.take() {
                let ended = Box::pin(owner.thread.run(claimed)).await;
                job = owner.thread.settle(ended);
            }
            owner.leave();
        });
    }

    async fn run(self: &Arc<Self>, job: Job) -> Outcome {
        let Job { run, cancel, settled, begin } = job;
        let (memory, session) = match self.open().await {
            Ok(opened) => opened,
            Err(error) => return self.refused(run, error),
        };
        let mut origin = settled.config.origin.clone();
        origin.thread = Some(self.id.clone());
        origin.run = Some(run.clone());
        origin.session = session.as_ref().and_then(|session| session.session_id());
        origin.allowed_tools.clone_from(&settled.config.active_tools);
        let (start, entries) = match self.start(begin, &memory, &origin) {
            Ok(started) => started,
            Err(error) => {
                self.keep(memory);
                return self.refused(run, error);
            }
        };
        let said = || said(&start.prompt, &memory);
        let mut setup = RunSetup::new(&self.id, &run, memory.agent(), &settled.config);
        setup.steering = Some(self.mailbox(&settled));
        let setup = match settled.set_up(setup, said) {
            Ok(setup) => setup,
            Err(fault) => {
                self.keep(memory);
                return self.refused(run, RuntimeError::Part(fault));
            }
        };
        let Memory { log, stored, open_calls, view, waiting, .. } = memory;
        let start = match &start.continuation {
            Some(_) => start,
            None => start.with_agent(setup.agent).with_waiting(waiting),
        };
        let start = start.with_open_calls(open_calls);
        let mut ports = self.ports(&settled, session, entries.clone());
        let host = (self.parts.cwd.clone(), self.parts.params.clone());
        ports.agents = Arc::new(ThreadAgents::new(Arc::clone(&settled), host, setup.agents, log.prefix()));
        ports.steering = setup.steering;
        self.event_log.emit(ThreadEvent::Status(self.lock().status.clone()));
        self.event_log.emit(ThreadEvent::RunStarted { run: run.clone(), entries: entries.clone() });
        let mut machine = settled.run(setup.mode, origin, log).with_view(view).with_stored(stored);
        let end = drive(&mut machine, &ports, &cancel, start).await;
        let from = self.event_log.live(|live| live.base.len()).min(machine.log().len());
        let transcript = machine.log().prefix();
        self.keep(Memory::after(machine, &end));
        self.lock().queue.delivered(&entries);
        Ok(Report { run, end, transcript, from, aborted: None, waiting: 0 })
    }

    /// What the run begins with.
    fn start(
        &self,
        begin: Begin,
        memory: &Memory,
        origin: &Origin,
    ) -> Result<(Start, Vec<EntryId>), RuntimeError> {
        let prompt = |messages| {
            let mut start = Start::resume();
            start.prompt = messages;
            start
        };
        let queued = |entries: Vec<(EntryId, Arc<Message>)>| {
            let (ids, messages): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            (prompt(messages), ids)
        };
        match begin {
            Begin::Prompt(messages) => Ok((prompt(messages), Vec::new())),
            Begin::Queue(entries) => Ok(queued(entries)),
            Begin::Resume(taken_up) => {
                let (continuation, resume) = *taken_up;
                Ok((continuation.start(resume, origin, &memory.log)?, Vec::new()))
            }
            Begin::GoOn => {
                let thread = self.id.clone();
                let last = memory.log.last().ok_or(RuntimeError::EmptyTranscript { thread })?;
                let waits = last.as_assistant().is_some() && !memory.log.has_open_calls();
                if !waits {
                    return Ok((Start::resume(), Vec::new()));
                }
                let mut state = self.lock();
                if matches!(state.status, Status::Aborting { .. }) {
                    // It is stopped before it began: what waits is the next run's.
                    return Ok((Start::resume(), Vec::new()));
                }
                let config = Arc::clone(&state.settled);
                let steering = state.queue.take_steering(config.config.steering_mode);
                if !steering.is_empty() {
                    state.skip_begin = true;
                    return Ok(queued(steering));
                }
                let (entries, _) = state.queue.take_beginning(config.config.follow_up_mode);
                if entries.is_empty() {
                    return Err(RuntimeError::EndsWithAnswer { thread: self.id.clone() });
                }
                Ok(queued(entries))
            }
        }
    }

    fn refused(&self, run: harness_core::RunId, error: RuntimeError) -> Outcome {
        self.event_log.emit(ThreadEvent::RunFailed { run, error: Arc::new(error.clone()) });
        Err(error)
    }

    /// A run is over: tells it, answers who waits, and claims the next one or lets go of the thread.
    fn settle(self: &Arc<Self>, ended: Outcome) -> Option<Job> {
        let mut state = self.lock();
        state.queue.restore();
        let interrupted = std::mem::take(&mut state.interrupting);
        let aborted = state.aborted.take();
        let waiting = state.queue.len();
        let ended = ended.map(|report| Report { aborted, waiting, ..report });
        let completed = ended.as_ref().is_ok_and(Report::is_completed);
        state.last = Some(ended.clone());
        // What could not be opened or made cannot be at once again: what waits, waits until somebody speaks.
        let stuck = matches!(ended, Err(RuntimeError::Session(_) | RuntimeError::Part(_)));
        let next = if stuck { None } else { self.next(&mut state, completed) };
        let answered = match &next {
            Some(_) if completed || (interrupted && ended.is_ok()) => Vec::new(),
            Some(_) | None => std::mem::take(&mut state.waiters),
        };
        if let Ok(report) = &ended {
            self.event_log.emit(ThreadEvent::RunEnded(Arc::new(report.clone())));
        }
        if next.is_none() {
            self.release(&mut state);
        }
        drop(state);
        Answers::new(answered, ended).send();
        self.changed.notify_waiters();
        if next.is_none() {
            self.parts.idle(self);
        }
        next
    }
}

/// The text that a run begins with, or else what a user said last.
pub(super) fn said(prompt: &[Arc<Message>], memory: &Memory) -> String {
    if !prompt.is_empty() {
        return prompt.iter().map(|message| message.joined_text()).collect::<Vec<_>>().join("\n\n");
    }
    let last = memory.log.iter().rev().find(|message| matches!(&***message, Message::User(_)));
    last.map(|message| message.joined_text()).unwrap_or_default()
}

/// The claim on a thread that is busy. Whoever drops it gives it back: of a run that is dropped everybody is told
/// that it is lost, a compaction is only over.
pub(crate) struct RunOwner {
    thread: Arc<Shared>,
    /// Whether the claim is still to be given back.
    claims: bool,
}

impl RunOwner {
    /// Owns the claim on a thread that is busy.
    pub(crate) fn of(thread: &Arc<Shared>) -> Self {
        Self { thread: Arc::clone(thread), claims: true }
    }

    /// The claim was given back with the end of a run.
    pub(crate) fn leave(mut self) {
        self.claims = false;
    }

    /// Gives back the claim of a compaction.
    pub(crate) fn release(self) {
        drop(self);
    }
}

impl Drop for RunOwner {
    fn drop(&mut self) {
        if !self.claims {
            return;
        }
        let shared = &self.thread;
        let mut state = shared.lock();
        if state.opened && shared.parts.sessions.is_none() {
            // Nothing else knows what was said.
            let log = shared.event_log.live(|live| live.transcript()).iter().cloned().collect();
            state.memory = Some(Memory::seeded(log));
        }
        state.opened = false;
        match state.status.clone() {
            Status::Generating { run, .. } | Status::Aborting { run } => shared.lost(state, run),
            Status::AwaitingApproval { .. } | Status::Compacting | Status::Idle => shared.free_again(state),
        }
    }
}

impl Shared {
    /// A run is gone without an end.
    fn lost(&self, mut state: MutexGuard<'_, State>, run: RunId) {
        let lost = RuntimeError::Lost { thread: self.id.clone() };
        state.queue.restore();
        state.interrupting = false;
        state.cancel.take().as_ref().map(Cancel::cancel);
        state.last = Some(Err(lost.clone()));
        self.event_log.emit(ThreadEvent::RunFailed { run, error: Arc::new(lost.clone()) });
        self.release(&mut state);
        let answers = Answers::new(std::mem::take(&mut state.waiters), Err(lost));
        drop(state);
        answers.send();
        self.changed.notify_waiters();
    }

    /// A compaction is over: what came meanwhile begins.
    fn free_again(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let next = self.next(&mut state, false);
        let mut answers = Answers::default();
        if next.is_none() {
            self.release(&mut state);
            answers = self.stranded(&mut state);
        }
        drop(state);
        answers.send();
        self.changed.notify_waiters();
        match next {
            Some(job) => self.spawn(job),
            None => self.parts.idle(self),
        }
    }
}
