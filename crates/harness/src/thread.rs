//! What a harness keeps from one run to the next.

use std::sync::Arc;

use harness_core::machine::ViewState;
use harness_core::message::{Message, ModelOutput};
use harness_core::port::{DynSession, Loaded, OpenCall, OtherDescriptor, TornTail, TranscriptRepair};
use harness_core::run::Run;
use harness_core::transcript::{Prefix, Transcript};
use harness_core::{AgentId, End, Fault, FaultSource, Outcome, StopReason};
use serde::Deserialize;

use crate::HarnessError;

/// A thread between, and during, its runs.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// What the last run left; `None` before the first, and when what is in memory is not what the session
    /// holds.
    idle: Option<Idle>,
    /// The run that is on; it stays here when its future is dropped.
    running: Option<Run>,
    /// Messages that were pushed in while calls were parked.
    waiting: Vec<Arc<Message>>,
    /// Why the last run ended, as far as that is known.
    stop: Option<StopReason>,
}

#[derive(Debug)]
struct Idle {
    log: Transcript,
    open_calls: Vec<OpenCall>,
    view: ViewState,
}

/// A transcript that a run can begin with.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) log: Transcript,
    pub(crate) open_calls: Vec<OpenCall>,
    /// What an earlier compaction left in force.
    pub(crate) view: ViewState,
    /// The agent that is active at its end.
    pub(crate) agent: Option<AgentId>,
    /// The user's last message.
    pub(crate) last_said: String,
    /// An unfinished line that the session left out.
    pub(crate) torn_tail: Option<TornTail>,
    /// Calls and results that were repaired when the session was read.
    pub(crate) repairs: Vec<TranscriptRepair>,
}

impl Thread {
    /// The transcript, from memory or from the session.
    ///
    /// `check` judges what a session holds, before anything is made of it.
    pub(crate) async fn open(
        &mut self,
        session: Option<&dyn DynSession>,
        check: impl FnOnce(&Loaded) -> Result<(), OtherDescriptor>,
    ) -> Result<Opened, HarnessError> {
        let (mut torn_tail, mut repairs) = (None, Vec::new());
        let dropped = self.running.take();
        let Idle { log, open_calls, view } = match (self.idle.take(), session, dropped) {
            (Some(idle), _, _) => idle,
            (None, Some(session), _) => {
                let loaded = session.load_boxed().await?;
                check(&loaded)?;
                (torn_tail, repairs) = (loaded.torn_tail, loaded.repairs);
                self.stop = loaded.stop;
                Idle {
                    log: loaded.messages.into_iter().collect(),
                    open_calls: loaded.open_calls,
                    view: ViewState::of(loaded.plan),
                }
            }
            (None, None, Some(run)) => {
                let (open_calls, view) = (run.open_calls(), run.view_state().clone());
                Idle { log: run.into_log(), open_calls, view }
            }
            (None, None, None) => {
                Idle { log: Transcript::default(), open_calls: Vec::new(), view: ViewState::default() }
            }
        };
        let agent = active_agent(&log);
        let last_said = log.iter().rev().find(|message| matches!(&***message, Message::User(_)));
        let last_said = last_said.map(|message| message.joined_text()).unwrap_or_default();
        Ok(Opened { log, open_calls, view, agent, last_said, torn_tail, repairs })
    }

    /// A run that could not begin.
    pub(crate) fn restore(&mut self, log: Transcript, open_calls: Vec<OpenCall>, view: ViewState) {
        self.idle = Some(Idle { log, open_calls, view });
    }

    /// Why nothing is left to resume: the last run completed, and nothing was said since. A run whose end nobody
    /// wrote down has completed when it `is_plain`, and its final answer is there.
    pub(crate) fn completed(&self, log: &Prefix, is_plain: bool) -> Option<StopReason> {
        let answer = log.last()?.as_assistant()?;
        match self.stop {
            Some(reason) => (reason.outcome() == Outcome::Completed).then_some(reason),
            None if is_plain && matches!(answer.output(), ModelOutput::FinalAnswer) => {
                Some(StopReason::AnswerFinalized)
            }
            None => None,
        }
    }

    /// A run begins: from now on nothing is known of its end.
    pub(crate) fn start(&mut self, run: Run) -> &mut Run {
        self.stop = None;
        self.begin(run)
    }

    /// A run, or a compaction, begins.
    pub(crate) fn begin(&mut self, run: Run) -> &mut Run {
        self.running.insert(run)
    }

    /// A run ended. When the session does not hold all of it, the session counts, and the next run reads it
    /// again.
    pub(crate) fn finish(&mut self, end: &End) -> Prefix {
        let open_calls = self.running.as_ref().map(Run::open_calls).unwrap_or_default();
        let view = self.running.as_ref().map(|run| run.view_state().clone()).unwrap_or_default();
        let log = self.running.take().map(Run::into_log).unwrap_or_default();
        let transcript = log.prefix();
        self.stop = Some(end.reason());
        self.waiting = end.continuation.as_ref().map(|made| made.waiting.clone()).unwrap_or_default();
        if end.persist_failed.is_none() {
            self.restore(log, open_calls, view);
        }
        transcript
    }

    /// No run, only a compaction, which may have failed: when it could not be stored, the session counts.
    pub(crate) fn settle<T>(&mut self, open_calls: Vec<OpenCall>, done: &Result<T, Fault>) {
        let Some(run) = self.running.take() else { return };
        let view = run.view_state().clone();
        let stored = done.as_ref().err().is_none_or(|fault| fault.source_part != FaultSource::Session);
        if stored {
            self.restore(run.into_log(), open_calls, view);
        }
    }

    /// Messages that were pushed in while calls were parked.
    pub(crate) fn waiting(&self) -> &[Arc<Message>] {
        &self.waiting
    }
}

/// The agent to which the last handoff went, or else the one that spoke last.
fn active_agent(log: &Transcript) -> Option<AgentId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Moved {
        handoff_to: AgentId,
        accepted: bool,
    }
    log.iter().rev().find_map(|message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => {
            let moved: Moved = result.structured.as_ref()?.to().ok()?;
            (moved.accepted && !result.is_error).then_some(moved.handoff_to)
        }
        Message::Assistant(answer) => answer.agent.clone(),
        Message::System(_) | Message::User(_) | Message::Custom(_) | _ => None,
    })
}
