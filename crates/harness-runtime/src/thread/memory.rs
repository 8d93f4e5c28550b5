//! The transcript of a thread between its runs.

use std::sync::Arc;

use harness_core::machine::ViewState;
use harness_core::message::{Message, ModelOutput};
use harness_core::port::{DynSession, OpenCall, SessionError, TornTail, TranscriptRepair};
use harness_core::run::Run;
use harness_core::transcript::{Prefix, Transcript};
use harness_core::{AgentId, End, Outcome, StopReason};

use super::state::Shared;
use crate::config::ThreadConfig;
use crate::error::RuntimeError;

/// Transcript and state of a thread between its runs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) log: Transcript,
    /// Messages of it that the session holds.
    pub(crate) stored: usize,
    pub(crate) open_calls: Vec<OpenCall>,
    pub(crate) view: ViewState,
    /// Messages that were pushed in while calls were parked.
    pub(crate) waiting: Vec<Arc<Message>>,
    /// Mismatch of the session and the descriptor of this thread.
    pub(crate) misfit: Option<SessionError>,
    /// Stop reason of the last run, if known.
    pub(crate) stop: Option<StopReason>,
    /// Unfinished line of the session, until a run reports it.
    pub(crate) torn_tail: Option<TornTail>,
    /// Repairs of the session, until a run reports them.
    pub(crate) repairs: Arc<[TranscriptRepair]>,
}

impl Memory {
    /// A history that no session holds.
    pub(crate) fn seeded(log: Transcript) -> Self {
        Self { log, ..Self::default() }
    }

    /// State after a run or a compaction.
    pub(crate) fn of(run: Run, open_calls: Vec<OpenCall>, waiting: Vec<Arc<Message>>) -> Self {
        let (stored, view) = (run.stored(), run.view_state().clone());
        Self { log: run.into_log(), stored, open_calls, view, waiting, ..Self::default() }
    }

    /// State after a run has ended.
    pub(crate) fn after(run: Run, end: &End) -> Self {
        let waiting = end.continuation.as_ref().map(|made| made.waiting.clone()).unwrap_or_default();
        let open_calls = run.open_calls();
        Self { stop: Some(end.reason()), ..Self::of(run, open_calls, waiting) }
    }

    /// Independent copy.
    pub(super) fn copied(&self) -> Self {
        Self {
            log: self.log.iter().cloned().collect(),
            stored: self.stored,
            open_calls: self.open_calls.clone(),
            view: self.view.clone(),
            waiting: self.waiting.clone(),
            misfit: self.misfit.clone(),
            stop: self.stop,
            torn_tail: self.torn_tail,
            repairs: Arc::clone(&self.repairs),
        }
    }

    /// Whether a session holds all of it.
    fn is_stored(&self) -> bool {
        self.stored == self.log.len() && self.waiting.is_empty()
    }

    /// Stop reason of a completed run, after which nothing can be resumed. A run without a stored end has completed when it
    /// `is_plain` and has a final answer.
    pub(super) fn completed(&self, is_plain: bool) -> Option<StopReason> {
        let answer = self.log.last()?.as_assistant()?;
        match self.stop {
            Some(reason) => (reason.outcome() == Outcome::Completed).then_some(reason),
            None if is_plain && matches!(answer.output(), ModelOutput::FinalAnswer) => {
                Some(StopReason::AnswerFinalized)
            }
            None => None,
        }
    }

    /// The agent to which the last handoff went, or else the one that spoke last.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        self.log.iter().rev().find_map(|message| match &**message {
            Message::ToolResult(result) => result.handed_to(),
            Message::Assistant(answer) => answer.agent.clone(),
            Message::System(_) | Message::User(_) | Message::Custom(_) | _ => None,
        })
    }
}

impl Shared {
    /// Takes the transcript for a run, loading it if necessary, and makes it the current one.
    pub(crate) async fn open(
        &self,
        config: &ThreadConfig,
    ) -> Result<(Memory, Option<Arc<dyn DynSession>>), RuntimeError> {
        let mut session = self.session.lock().await;
        let memory = self.load(&mut session).await?;
        if let Some(misfit) = memory.misfit.clone().filter(|_| !config.any_descriptor) {
            self.keep(memory);
            return Err(RuntimeError::OtherDescriptor(misfit));
        }
        self.event_log.live(|live| live.reset(memory.log.prefix()));
        self.lock().opened = true;
        Ok((memory, session.clone()))
    }

    /// Copy of the transcript for the next run, loaded if necessary.
    pub(crate) async fn look(&self) -> Result<Memory, RuntimeError> {
        let mut session = self.session.lock().await;
        if self.lock().opened {
            return Err(self.busy());
        }
        let memory = self.load(&mut session).await?;
        let copy = memory.copied();
        self.keep(memory);
        Ok(copy)
    }

    /// The transcript as it is now, loaded when it is not there.
    pub(crate) async fn transcript(&self) -> Result<Prefix, RuntimeError> {
        let mut session = self.session.lock().await;
        {
            let state = self.lock();
            if state.opened {
                drop(state);
                return Ok(self.event_log.live(|live| live.transcript()));
            }
            if state.closed && state.memory.is_none() {
                // Its session may be open elsewhere.
                return Err(RuntimeError::Closed { thread: self.id.clone() });
            }
        }
        let memory = self.load(&mut session).await?;
        let log = memory.log.prefix();
        self.keep(memory);
        Ok(log)
    }

    /// Puts the transcript back.
    pub(crate) fn keep(&self, memory: Memory) {
        self.event_log.live(|live| live.reset(memory.log.prefix()));
        let mut state = self.lock();
        (state.memory, state.opened) = (Some(memory), false);
    }

    async fn load(&self, session: &mut Option<Arc<dyn DynSession>>) -> Result<Memory, RuntimeError> {
        if let Some(memory) = self.lock().memory.take() {
            return Ok(memory);
        }
        let Some(sessions) = &self.parts.sessions else { return Ok(Memory::default()) };
        let opened = match session.take() {
            Some(opened) => opened,
            None => sessions.open_boxed(&self.id).await?,
        };
        let loaded = opened.load_boxed().await?;
        *session = Some(opened);
        if let Some(torn) = &loaded.torn_tail {
            tracing::warn!(thread = %self.id, ?torn, "an unfinished line of the session was left out");
        }
        let (settled, stored_states) = {
            let state = self.lock();
            (Arc::clone(&state.settled), state.stored_states.clone())
        };
        let misfit = loaded.check_descriptor(settled.config.origin.descriptor_hash.as_deref()).err();
        let origin = self.origin(&settled.config, session.as_deref());
        stored_states.load(&settled.config.ports, &origin, loaded.states);
        for repair in &loaded.repairs {
            tracing::warn!(thread = %self.id, %repair, "the transcript of the session was repaired");
        }
        let log: Transcript = loaded.messages.into_iter().collect();
        Ok(Memory {
            stored: log.len(),
            log,
            open_calls: loaded.open_calls,
            view: ViewState { plan: loaded.plan, measured: None },
            waiting: Vec::new(),
            misfit,
            stop: loaded.stop,
            torn_tail: loaded.torn_tail,
            repairs: loaded.repairs.into(),
        })
    }

    /// Closes the session of a closed thread.
    pub(crate) async fn shut(&self) {
        let mut session = self.session.lock().await;
        *session = None;
        self.lock().memory = None;
    }

    /// Drops the event buffer of an idle thread.
    pub(crate) fn forget(&self) {
        let state = self.lock();
        if state.cancel.is_none() {
            self.event_log.forget();
        }
    }

    /// Lets go of the transcript, the session and the event log of an idle thread, when the session holds all of it.
    /// Whether that was so.
    pub(crate) fn unload(&self) -> bool {
        if self.parts.sessions.is_none() {
            return false;
        }
        let Ok(mut session) = self.session.try_lock() else { return false };
        let mut state = self.lock();
        let idle = state.cancel.is_none() && state.queue.iter().next().is_none();
        if !idle || !state.memory.as_ref().is_some_and(Memory::is_stored) {
            return false;
        }
        (state.memory, state.last, *session) = (None, None, None);
        self.event_log.forget();
        self.event_log.live(|live| live.reset(Prefix::default()));
        true
    }
}
