//! The owner of a thread's runs: one task while the thread is busy.

use std::sync::Arc;

use harness_core::driver::drive;
use harness_core::{Cancel, RunId};
use harness_record::{Recording, RunStart};
use parking_lot::MutexGuard;
use tracing::Instrument as _;

use super::begin::Made;
use super::memory::Memory;
use super::state::{Answers, Job, Outcome, Shared, State, Status};
use crate::agent::ThreadAgents;
use crate::error::RuntimeError;
use crate::report::Report;
use crate::stream::ThreadEvent;

impl Shared {
    /// Drives a claimed run and its successors in a separate task.
    pub(crate) fn spawn(self: &Arc<Self>, job: Job) {
        let owner = RunOwner::of(self);
        let drives = async move {
            let mut job = Some(job);
            while let Some(claimed) = job.take() {
                let ended = Box::pin(owner.thread.run(claimed)).await;
                job = owner.thread.settle(ended);
            }
            owner.leave();
        };
        // Where there is none, the owner is dropped, and says that the run is lost.
        if let Ok(tokio) = self.parts.tokio() {
            tokio.spawn(drives.in_current_span());
        }
    }

    async fn run(self: &Arc<Self>, job: Job) -> Outcome {
        let Job { run, cancel, settled, begin } = job;
        let (mut memory, session) = match self.open(&settled.config).await {
            Ok(opened) => opened,
            Err(error) => return self.refused(run, error),
        };
        let made = match self.make(&run, &settled, begin, &mut memory, session.as_deref()).await {
            Ok(made) => made,
            Err(error) => {
                self.keep(memory);
                return self.refused(run, error);
            }
        };
        let Made { mut machine, start, setup, entries } = made;
        let mut ports = self.ports(&settled, session, entries.clone());
        let base = self.event_log.live(|live| live.base());
        let recorder = settled.config.record.clone().map(Recording::recorder);
        if let Some(recorder) = &recorder {
            ports.hub.fold(recorder.fold());
            recorder.start(RunStart::new(setup.context, base.iter().cloned()));
        }
        let host = (self.parts.cwd.clone(), self.parts.params.clone());
        ports.agents = Arc::new(ThreadAgents::new(Arc::clone(&settled), host, setup.agents, base));
        ports.steering = setup.steering;
        self.event_log.emit(ThreadEvent::Status(self.lock().status.clone()));
        self.event_log.emit(ThreadEvent::RunStarted { run: run.clone(), entries: entries.clone() });
        let end = drive(&mut machine, &ports, &cancel, start).await;
        let from = self.event_log.live(|live| live.base().len()).min(machine.log().len());
        let mut report = Report::new(run, Arc::clone(&end), machine.log().prefix(), from);
        (report.torn_tail, report.repairs) = (memory.torn_tail, memory.repairs);
        self.keep(Memory::after(machine, &end));
        self.lock().queue.delivered(&entries);
        if let Some(recorder) = recorder {
            let made = recorder.finish().await;
            (report.record, report.record_failed) = (made.record, made.failed.map(Arc::from));
        }
        Ok(report)
    }

    fn refused(&self, run: harness_core::RunId, error: RuntimeError) -> Outcome {
        self.event_log.emit(ThreadEvent::RunFailed { run, error: Arc::new(error.clone()) });
        Err(error)
    }

    /// Ends a run: emits the end, answers waiters, and claims the next run or releases the thread.
    fn settle(self: &Arc<Self>, ended: Outcome) -> Option<Job> {
        let mut state = self.lock();
        state.queue.restore();
        let interrupted = std::mem::take(&mut state.interrupting);
        let aborted = state.aborted.take();
        let waiting = state.queue.len();
        let ended = ended.map(|mut report| {
            (report.aborted, report.waiting) = (aborted, waiting);
            report
        });
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

/// Claim on a busy thread. Dropping it releases the claim: waiters of a dropped run receive `Lost`, a compaction just
/// ends.
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
