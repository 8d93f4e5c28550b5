//! Public methods of a thread.

use std::sync::Arc;

use harness_core::driver::compact;
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::Continuation;
use harness_core::port::{CompactionNote, DynSession, EntryHead, SessionError};
use harness_core::run::RunResume;
use harness_core::transcript::{self, Defect, Prefix, Repaired, Transcript};
use harness_core::{CallId, Cancel, FaultSource, ModelName, RunId, ThreadId, Time};
use tokio::sync::oneshot;

use super::memory::Memory;
use super::owner::RunOwner;
use super::response::Response;
use super::state::{Answers, Outcome, Shared, State, Status};
use crate::error::RuntimeError;
use crate::prompt::{Prompt, ResumeFrom};
use crate::report::Report;
use crate::stream::{ItemStream, PartialBlock, ReasoningStream, StartAt, Stream, TextStream, ThreadEvent};

/// A conversation. Clones are handles to the same thread.
///
/// A separate task drives runs: dropping a future of this handle stops nothing, [`Thread::abort`] does.
#[derive(Clone, Debug)]
pub struct Thread(pub(crate) Arc<Shared>);

/// Snapshot of a thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Status of the thread.
    pub status: Status,
    /// The model of the next run.
    pub model: Option<ModelName>,
    /// The transcript, with what a run has appended so far.
    pub messages: Prefix,
    /// Current partial answer; `None` outside of a model call.
    pub answer: Option<Vec<PartialBlock>>,
    /// Calls in progress, in the order of their start.
    pub pending_calls: Vec<CallId>,
    /// Problem of the last run.
    pub error: Option<String>,
    /// How many messages wait.
    pub waiting: usize,
}

impl Snapshot {
    /// A thread in this status with this transcript, and nothing else.
    pub fn new(status: Status, messages: Prefix) -> Self {
        let (answer, pending_calls) = (None, Vec::new());
        Self { status, model: None, messages, answer, pending_calls, error: None, waiting: 0 }
    }
}

/// A stop in progress. Dropping it changes nothing.
#[derive(Debug)]
pub struct Stopping {
    thread: Arc<Shared>,
    /// The claim that was stopped.
    claim: Option<u64>,
}

impl Stopping {
    /// Whether there was anything to stop.
    pub fn any(&self) -> bool {
        self.claim.is_some()
    }

    /// Completes when what was stopped has ended; at once when there was nothing. Not to be awaited inside of
    /// the run that is being stopped.
    pub async fn ended(self) {
        let Some(claim) = self.claim else { return };
        self.thread.until(|state| state.claims != claim || state.status == Status::Idle).await;
    }
}

impl Shared {
    /// Waits until the thread is as wanted.
    async fn until(&self, wanted: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if wanted(&self.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl Thread {
    /// Id of the thread.
    pub fn id(&self) -> &ThreadId {
        &self.0.id
    }

    /// Prompts the thread, and waits until it is idle again: for this prompt's run and, when that was
    /// completed, for the messages that waited behind it. Gives the last of these runs. A prompt without
    /// messages resumes earlier work, see [`Thread::resume`].
    ///
    /// Awaiting it returns [`RuntimeError::Busy`] immediately while the thread is busy, even inside its run, unless
    /// it waits [in turn](Response::in_turn). The end of a run is never an error.
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Response {
        Response::new(self.clone(), prompt.into())
    }

    /// Resumes earlier work: see [`ResumeFrom`]. A transcript that ends with an answer continues with queued steering, or
    /// else with the next queued message.
    ///
    /// Awaiting it gives, as [`Thread::prompt`], [`RuntimeError::Busy`]; [`RuntimeError::EmptyTranscript`], and
    /// [`RuntimeError::NothingToResume`] when the last run completed and nothing waits; [`RuntimeError::Resume`] when a
    /// continuation or a checkpoint does not fit; [`RuntimeError::NoCheckpoints`] and [`RuntimeError::NoCheckpoint`] when
    /// there is no checkpoint. Then nothing was started.
    pub fn resume(&self, from: ResumeFrom) -> Response {
        self.prompt(Prompt::resuming(from))
    }

    /// Prompts the thread with a skill and what else is said, joined by blank lines. Hidden skills can be asked for.
    ///
    /// # Errors
    /// [`RuntimeError::UnknownSkill`]; as [`Thread::prompt`].
    pub async fn prompt_skill(&self, name: &str, additional: &[&str]) -> Result<Report, RuntimeError> {
        let skills = self.0.lock().settled.config.skills.clone();
        let message = skills.invoke(name, additional);
        let message = message.ok_or_else(|| RuntimeError::UnknownSkill { name: name.to_owned() })?;
        self.prompt(UserMessage::text(message).from_origin("skill")).await
    }

    /// Prompts the thread with a template, expanded with these arguments.
    ///
    /// # Errors
    /// [`RuntimeError::UnknownTemplate`]; as [`Thread::prompt`].
    pub async fn prompt_template(&self, name: &str, arguments: &[&str]) -> Result<Report, RuntimeError> {
        let templates = self.0.lock().settled.config.templates.clone();
        let message = templates.expand(name, arguments);
        let message = message.ok_or_else(|| RuntimeError::UnknownTemplate { name: name.to_owned() })?;
        self.prompt(UserMessage::text(message).from_origin("template")).await
    }

    /// The run of this conversation that was saved last and can be resumed from its
    /// [checkpoint](ResumeFrom::Checkpoint); `None` when there is none, or no store of checkpoints.
    ///
    /// # Errors
    /// When the store, or the session, cannot be read.
    pub async fn unfinished_run(&self) -> Result<Option<RunId>, RuntimeError> {
        let settled = Arc::clone(&self.0.lock().settled);
        let Some(store) = &settled.config.ports.checkpoints else { return Ok(None) };
        self.0.transcript().await?;
        let session = self.0.session.lock().await.as_ref().and_then(|session| session.session_id());
        let mut last: Option<(Time, RunId)> = None;
        for run in store.runs_boxed().await? {
            // One that cannot be read is told when it is resumed by its name.
            let Ok(Some(saved)) = store.latest_boxed(&run).await else { continue };
            let is_ours = RunResume::read(&saved).is_ok_and(|resumed| resumed.origin().session == session);
            if is_ours && last.as_ref().is_none_or(|(at, _)| *at <= saved.at) {
                last = Some((saved.at, run));
            }
        }
        Ok(last.map(|(_, run)| run))
    }

    pub(super) async fn answered(&self, waiter: oneshot::Receiver<Outcome>) -> Outcome {
        waiter.await.unwrap_or_else(|_| Err(RuntimeError::Lost { thread: self.0.id.clone() }))
    }

    /// Report of the messages so far: of the last run, immediately, while the thread is idle; otherwise of the run that
    /// empties the queue, or of the first one that does not complete. After an interruption, the following run counts.
    ///
    /// # Errors
    /// Why the last run could not begin; [`RuntimeError::Closed`] when the thread was closed before its first run.
    pub async fn response(&self) -> Result<Report, RuntimeError> {
        let waiter = {
            let mut state = self.0.lock();
            if state.cancel.is_none() {
                if let Some(last) = &state.last {
                    return last.clone();
                }
                if state.closed {
                    return Err(RuntimeError::Closed { thread: self.0.id.clone() });
                }
            }
            let (sender, waiter) = oneshot::channel();
            state.waiters.push(sender);
            waiter
        };
        self.answered(waiter).await
    }

    /// Completes when the thread is idle.
    pub async fn wait_idle(&self) {
        self.0.until(|state| state.status == Status::Idle).await;
    }

    /// Status of the thread.
    pub fn status(&self) -> Status {
        let status = self.0.lock().status.clone();
        self.0.shown(status)
    }

    /// Stops the current run or compaction. Finished work is kept, and queued messages start the
    /// next run. Work that does not listen is given the configuration's grace, then the run ends without it.
    pub fn abort(&self, reason: impl Into<Arc<str>>) -> Stopping {
        let mut state = self.0.lock();
        let stopped = self.0.stop(&mut state, reason.into());
        let claim = stopped.then_some(state.claims);
        drop(state);
        Stopping { thread: Arc::clone(&self.0), claim }
    }

    /// The transcript, with what a run has appended so far.
    ///
    /// # Errors
    /// When the session cannot be read; [`RuntimeError::Closed`] once the thread is closed.
    pub async fn messages(&self) -> Result<Prefix, RuntimeError> {
        self.0.transcript().await
    }

    /// Where the last run of this process ended, if a call of it is pending with separate work, and the requests of that.
    pub(crate) fn pending_work(&self, call: &CallId) -> Option<(Continuation, String)> {
        let state = self.0.lock();
        let Some(Ok(last)) = &state.last else { return None };
        let continuation = last.end.continuation.as_deref()?;
        let pending = continuation.pending.iter().find(|pending| pending.call_id == *call)?;
        let asked = pending.work.as_ref()?.requests.first()?.summary.clone();
        Some((continuation.clone(), asked))
    }

    /// Snapshot of the thread.
    ///
    /// # Errors
    /// When the session cannot be read; [`RuntimeError::Closed`] once the thread is closed.
    pub async fn snapshot(&self) -> Result<Snapshot, RuntimeError> {
        let messages = self.0.transcript().await?;
        let (answer, pending_calls) = self.0.event_log.live(|live| {
            let answer = live.answering.then(|| live.answer.blocks().to_vec());
            (answer, live.calls.clone())
        });
        let state = self.0.lock();
        let error = match &state.last {
            Some(Err(error)) => Some(error.to_string()),
            Some(Ok(report)) if state.cancel.is_none() => report.problem(),
            Some(Ok(_)) | None => None,
        };
        Ok(Snapshot {
            status: self.0.shown(state.status.clone()),
            model: state.settled.config.model_name.clone(),
            messages,
            answer,
            pending_calls,
            error,
            waiting: state.queue.len(),
        })
    }

    /// Calls of the current run that were announced for approval (`approval_requested`) and have no decision yet, in the
    /// order of their announcements. Without those of sub-agents, which are announced in separate runs.
    pub fn awaiting_approval(&self) -> Vec<CallId> {
        self.0.event_log.live(|live| live.held.clone())
    }

    /// Events of the thread.
    pub fn events(&self, from: StartAt) -> Stream {
        Stream::new(Arc::clone(&self.0), from)
    }

    /// The text of answers.
    pub fn text(&self, from: StartAt) -> TextStream {
        TextStream::new(self.events(from))
    }

    /// Reasoning of the model.
    pub fn reasoning(&self, from: StartAt) -> ReasoningStream {
        ReasoningStream::new(self.events(from))
    }

    /// Messages and the blocks of answers, as they grow.
    pub fn items(&self, from: StartAt) -> ItemStream {
        ItemStream::new(self.events(from))
    }

    /// Replaces the history of an idle thread. One that breaks the pairing of calls and results is repaired
    /// ([`transcript::repair`](harness_core::transcript::repair)); returns what was repaired.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while the thread is at work; [`RuntimeError::Session`] when its session holds a
    /// history and cannot be replaced.
    pub async fn seed_history<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Defect>, RuntimeError> {
        let messages: Vec<Arc<Message>> =
            messages.into_iter().map(|message| Arc::new(message.into())).collect();
        let Repaired { messages, defects, .. } = transcript::repair(&messages);
        let messages: Vec<_> = messages.into_iter().map(|(message, _)| message).collect();
        let owner = self.hold()?;
        let settled = Arc::clone(&self.0.lock().settled);
        let (memory, session) = match self.0.open(&settled.config).await {
            Ok(opened) => opened,
            Err(error) => {
                owner.release();
                return Err(error);
            }
        };
        let replaced = self.replace(session.as_deref(), &messages).await;
        let seeded = match replaced {
            Ok(true) => {
                let (log, stored): (Transcript, _) = (messages.iter().cloned().collect(), messages.len());
                Ok(Memory { log, stored, ..Memory::default() })
            }
            Ok(false) if self.0.parts.sessions.is_none() || memory.stored == 0 => {
                Ok(Memory::seeded(messages.into_iter().collect()))
            }
            Ok(false) => Err(SessionError::new(
                "session.not_replaceable",
                format!("the session of thread `{}` holds a history and cannot be replaced", self.0.id),
            )),
            Err(error) => Err(error),
        };
        let done = match seeded {
            Ok(seeded) => {
                self.0.keep(seeded);
                Ok(defects)
            }
            Err(error) => {
                self.0.keep(memory);
                Err(error.into())
            }
        };
        owner.release();
        done
    }

    async fn replace(
        &self,
        session: Option<&dyn DynSession>,
        messages: &[Arc<Message>],
    ) -> Result<bool, SessionError> {
        let Some(session) = session else { return Ok(false) };
        let mut head = EntryHead::new(self.0.parts.clock.now(), None, 0, None);
        head.descriptor.clone_from(&self.0.lock().settled.config.origin.descriptor_hash);
        session.replace_boxed(&head, messages).await
    }

    /// Compacts the transcript of an idle thread permanently, whatever the compactor's trigger. A session
    /// keeps everything, unless [`ThreadConfig::forget_compacted`](crate::ThreadConfig::forget_compacted) is set.
    /// `instructions` say what a summary is
    /// to keep. Gives what was done; `None` when there was nothing to do. [`Thread::abort`] stops it.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while the thread is at work; [`RuntimeError::Compaction`] without a compactor, when
    /// it failed, was stopped, or while calls wait; [`RuntimeError::Session`].
    pub async fn compact(
        &self,
        instructions: Option<String>,
    ) -> Result<Option<Arc<CompactionNote>>, RuntimeError> {
        let owner = self.hold()?;
        let done = Box::pin(self.shorten(instructions)).await;
        owner.release();
        done
    }

    async fn shorten(
        &self,
        instructions: Option<String>,
    ) -> Result<Option<Arc<CompactionNote>>, RuntimeError> {
        let (settled, cancel) = {
            let state = self.0.lock();
            (Arc::clone(&state.settled), state.cancel.clone().unwrap_or_default())
        };
        let (memory, session) = self.0.open(&settled.config).await?;
        let ports = self.0.ports(&settled, session.clone(), Vec::new());
        let origin = self.0.origin(&settled.config, session.as_deref());
        let Memory { log, stored, open_calls, view, waiting, stop, torn_tail, repairs, .. } = memory;
        let mut machine =
            settled.run(settled.config.run.mode, origin, log).with_view(view).with_stored(stored);
        let done = compact(&mut machine, &ports, &cancel, instructions).await;
        let unstored = done.as_ref().err().is_some_and(|fault| fault.source_part == FaultSource::Session);
        if unstored {
            // The session counts: it is read again.
            self.0.lock().opened = false;
        } else {
            let shorter = Memory::of(machine, open_calls, waiting);
            self.0.keep(Memory { stop, torn_tail, repairs, ..shorter });
        }
        let note = done.map_err(|fault| {
            if fault.source_part == FaultSource::Session {
                return SessionError::new(fault.code, fault.message).into();
            }
            RuntimeError::Compaction(fault)
        })?;
        if note.is_some() && settled.config.forget_compacted {
            let shown: Vec<Arc<Message>> =
                self.0.event_log.live(|live| live.base().iter().cloned().collect());
            self.replace(session.as_deref(), &shown).await?;
        }
        Ok(note)
    }

    /// Makes a free thread busy without a run.
    fn hold(&self) -> Result<RunOwner, RuntimeError> {
        let mut state = self.0.lock();
        self.0.free(&state)?;
        state.status = Status::Compacting;
        state.cancel = Some(Cancel::new());
        state.claims += 1;
        drop(state);
        Ok(RunOwner::of(&self.0))
    }

    /// Lets go of the transcript, the session and the kept events of an idle thread; they are loaded again when
    /// they are needed. Whether that was possible: nothing is unloaded that no session holds.
    pub fn unload(&self) -> bool {
        self.0.unload()
    }

    /// Closes the thread: stops its work, drops its queue and ends its streams. The session stays.
    pub async fn close(&self) {
        let mut answers = Answers::default();
        {
            let mut state = self.0.lock();
            state.closed = true;
            let waiting: Vec<_> = state.queue.iter().map(|entry| entry.id.clone()).collect();
            for entry in waiting {
                if state.queue.remove_waiting(&entry).is_some() {
                    let change = crate::stream::QueueChange::Removed;
                    self.0.event_log.emit(ThreadEvent::Queue { entry, change });
                }
            }
            if !self.0.stop(&mut state, Arc::from("closed")) && state.status == Status::Idle {
                self.0.event_log.close();
                answers = self.0.stranded(&mut state);
            }
        }
        answers.send();
        self.wait_idle().await;
        self.0.shut().await;
        self.0.parts.forget(&self.0);
    }
}
