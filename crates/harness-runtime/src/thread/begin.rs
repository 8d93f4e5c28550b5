//! Making a run: its start, the work that it resumes, and its machine.

use std::sync::Arc;

use harness_core::Origin;
use harness_core::machine::Start;
use harness_core::message::Message;
use harness_core::port::DynSession;
use harness_core::run::{Run, RunResume};
use harness_core::{EntryId, RunId};

use super::memory::Memory;
use super::state::{Begin, Shared, Status};
use crate::config::{ResolvedConfig, RunSetup};
use crate::error::RuntimeError;
use crate::prompt::{Prompt, ResumeFrom};

/// A run before its first step.
pub(super) struct Made {
    pub(super) machine: Run,
    pub(super) start: Start,
    pub(super) setup: RunSetup,
    /// The messages of the queue that it begins with.
    pub(super) entries: Vec<EntryId>,
}

impl Shared {
    /// Makes a run. The transcript is taken out of `memory`, unless there is an error.
    pub(super) async fn make(
        self: &Arc<Self>,
        run: &RunId,
        settled: &Arc<ResolvedConfig>,
        begin: Begin,
        memory: &mut Memory,
        session: Option<&dyn DynSession>,
    ) -> Result<Made, RuntimeError> {
        let mut origin = self.origin(&settled.config, session);
        origin.run = Some(run.clone());
        let saved = match &begin {
            Begin::Prompt(prompt) if matches!(prompt.from, ResumeFrom::Checkpoint(_)) => {
                let saved = saved(settled, run).await?;
                saved.fits(&origin, &memory.log)?;
                Some(saved)
            }
            Begin::Prompt(_) | Begin::Queue(..) => None,
        };
        let (mut start, entries) = self.start(begin, settled, memory, &origin)?;
        let mut setup = RunSetup::new(&self.id, run, memory.agent(), settled);
        setup.steering = Some(self.mailbox(settled));
        let setup = settled.set_up(setup, || said(&start.prompt, memory)).map_err(RuntimeError::Part)?;
        // A continuation and a checkpoint know their agent themselves.
        let active = setup.agent.clone().filter(|_| start.agent.is_none() && saved.is_none());
        start.agent = settled.agent.clone().or(start.agent).or(active);
        if start.continuation.is_none() {
            start.waiting.clone_from(&memory.waiting);
        }
        let start = start.with_open_calls(memory.open_calls.clone());
        let fresh = |memory: &mut Memory| {
            let (log, view) = (std::mem::take(&mut memory.log), std::mem::take(&mut memory.view));
            settled.run(setup.mode, origin, log).with_view(view).with_stored(memory.stored)
        };
        let machine = match saved {
            Some(saved) => {
                let mut copy = memory.copied();
                let machine = saved.onto(fresh(&mut copy))?;
                *memory = copy;
                if let Some(see) = &settled.config.restored {
                    see(&machine);
                }
                machine
            }
            None => fresh(memory),
        };
        Ok(Made { machine, start, setup, entries })
    }

    /// Start of the run.
    fn start(
        &self,
        begin: Begin,
        settled: &ResolvedConfig,
        memory: &Memory,
        origin: &Origin,
    ) -> Result<(Start, Vec<EntryId>), RuntimeError> {
        let Prompt { messages, from, .. } = match begin {
            Begin::Queue(entries, _) => return Ok(queued(entries)),
            Begin::Prompt(prompt) => *prompt,
        };
        let start = match from {
            ResumeFrom::Transcript if messages.is_empty() => return self.go_on(settled, memory),
            ResumeFrom::Transcript | ResumeFrom::Checkpoint(_) => prompt(messages),
            ResumeFrom::Continuation { continuation, resume } => {
                continuation.start_with(resume, messages, origin, &memory.log)?
            }
        };
        Ok((start, Vec::new()))
    }

    /// Resumes the transcript.
    fn go_on(
        &self,
        settled: &ResolvedConfig,
        memory: &Memory,
    ) -> Result<(Start, Vec<EntryId>), RuntimeError> {
        let thread = self.id.clone();
        let last = memory.log.last().ok_or(RuntimeError::EmptyTranscript { thread })?;
        if last.as_assistant().is_none() || memory.log.has_open_calls() {
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
        let entries = state.queue.take_beginning(config.config.follow_up_mode);
        drop(state);
        match memory.completed(settled.is_plain()) {
            Some(reason) if entries.is_empty() => Err(RuntimeError::NothingToResume { reason }),
            Some(_) | None => Ok(queued(entries)),
        }
    }
}

/// The last checkpoint of a run.
async fn saved(settled: &ResolvedConfig, run: &RunId) -> Result<RunResume, RuntimeError> {
    let config = &settled.config;
    let store = config.ports.checkpoints.as_ref().ok_or(RuntimeError::NoCheckpoints)?;
    let saved = store.latest_boxed(run).await?;
    let saved = saved.ok_or_else(|| RuntimeError::NoCheckpoint { run: run.clone() })?;
    let saved = RunResume::read(&saved)?;
    Ok(if config.any_descriptor { saved.under_any_descriptor() } else { saved })
}

fn prompt(messages: Vec<Arc<Message>>) -> Start {
    let mut start = Start::resume();
    start.prompt = messages;
    start
}

fn queued(entries: Vec<(EntryId, Arc<Message>)>) -> (Start, Vec<EntryId>) {
    let (ids, messages): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
    (prompt(messages), ids)
}

/// The text that a run begins with, or else what a user said last.
pub(super) fn said(prompt: &[Arc<Message>], memory: &Memory) -> String {
    if !prompt.is_empty() {
        return prompt.iter().map(|message| message.joined_text()).collect::<Vec<_>>().join("\n\n");
    }
    last_said(memory.log.iter())
}

/// Last message of a user.
pub(crate) fn last_said<'m>(log: impl DoubleEndedIterator<Item = &'m Arc<Message>>) -> String {
    let last = log.rev().find(|message| matches!(&***message, Message::User(_)));
    last.map(|message| message.joined_text()).unwrap_or_default()
}
