//! The harness: one thread of conversation, ready to be prompted.

use std::fmt;
use std::sync::Arc;

use harness_core::continuation::{Continuation, Resume, ResumeError};
use harness_core::driver::{Ports, compact, drive};
use harness_core::machine::{Origin, Start};
use harness_core::message::{Message, UserMessage};
use harness_core::port::{CompactionNote, Ids, Model, SessionError};
use harness_core::run::{Run, RunSpec};
use harness_core::transcript::Prefix;
use harness_core::{Cancel, FaultSource};
use harness_descriptor::{ContextInput, GraphAgents, Map};
use harness_tools::Modes;

use crate::builder::Builder;
use crate::error::HarnessError;
use crate::prompt::{Options, Prompt, TakenUp};
use crate::recording::{Recorded, Recorder};
use crate::report::Report;
use crate::thread::Thread;

/// What a builder hands over.
pub(crate) struct Parts {
    pub(crate) ports: Ports,
    pub(crate) spec: Arc<RunSpec>,
    pub(crate) modes: Option<Modes>,
    pub(crate) origin: Origin,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) graph: Option<Arc<GraphAgents>>,
    pub(crate) context: Map,
    pub(crate) recorder: Option<Recorder>,
}

/// One thread of conversation: its agents, tools, session and limits.
///
/// It is prompted any number of times, one run at a time; a second prompt waits for the first.
pub struct Harness {
    parts: Parts,
    thread: tokio::sync::Mutex<Thread>,
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("ports", &self.parts.ports).finish_non_exhaustive()
    }
}

impl Harness {
    /// Begins to put a harness together around a model.
    #[expect(clippy::new_ret_no_self, reason = "a harness is made by its builder")]
    pub fn new(model: impl Model + 'static) -> Builder {
        Builder::new(model)
    }

    pub(crate) fn of(parts: Parts) -> Self {
        Self { parts, thread: tokio::sync::Mutex::default() }
    }

    /// Says something to the agents. Await it for the [`Report`].
    pub fn prompt(&self, text: impl Into<String>) -> Prompt<'_> {
        self.prompt_message(UserMessage::text(text))
    }

    /// What configures its runs, with everything that the builder filled in.
    pub fn spec(&self) -> Arc<RunSpec> {
        Arc::clone(&self.parts.spec)
    }

    /// Says something that is more than text.
    pub fn prompt_message(&self, message: impl Into<Message>) -> Prompt<'_> {
        Prompt::new(self, Some(message.into()))
    }

    /// Goes on where the conversation stopped: calls that a crash or a pending approval left open are
    /// settled, then the model is asked.
    pub fn resume(&self) -> Prompt<'_> {
        Prompt::new(self, None)
    }

    /// Takes up work that an earlier run left: answers its question, decides about the calls that it parked,
    /// or gives more of what had run out. The continuation is that run's
    /// [`End::continuation`](harness_core::End::continuation); it is used once.
    ///
    /// Awaiting it gives [`HarnessError::Resume`] when the continuation does not belong to this
    /// conversation, was used already, or waits for something else; then nothing has begun.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// use harness::core::continuation::{CallDecision, Resume};
    ///
    /// # async fn example(harness: Harness) -> Result<(), harness::HarnessError> {
    /// let report = harness.prompt("Pay Ada 5 cents").await?;
    /// if let Some(parked) = report.end.continuation.as_deref() {
    ///     let decisions = parked.pending.iter().map(|call| CallDecision::granted(call.call_id.as_str()));
    ///     let report = harness.resume_with(parked.clone(), Resume::decided(decisions)).await?;
    ///     println!("{}", report.answer());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_with(&self, continuation: Continuation, resume: Resume) -> Prompt<'_> {
        Prompt::resuming(self, continuation, resume)
    }

    /// Makes the conversation shorter for good, by the builder's compactor and whatever its trigger says:
    /// later prompts begin with the shorter transcript. A session keeps everything that it holds.
    /// `instructions` say what a summary is to keep.
    ///
    /// Gives what was done; `None` when there was nothing to do. A continuation of an earlier run does not
    /// fit the shorter conversation any more.
    ///
    /// # Errors
    /// [`HarnessError::Busy`] while a run is going on; [`HarnessError::Compaction`] when there is no compactor,
    /// when it failed or was cancelled, and while calls wait for a decision; [`HarnessError::Session`] when the
    /// session cannot be read or written.
    pub async fn compact(
        &self,
        instructions: Option<String>,
        cancel: &Cancel,
    ) -> Result<Option<Arc<CompactionNote>>, HarnessError> {
        let Parts { ports, spec, .. } = &self.parts;
        let mut thread = self.thread.try_lock().map_err(|_| HarnessError::Busy)?;
        let opened = thread.open(ports.session.as_deref()).await?;
        let mut origin = self.parts.origin.clone();
        if let Some(session) = &ports.session {
            origin.session = session.session_id();
        }
        let machine = Run::new(Arc::clone(spec), origin, opened.log).with_view(opened.view);
        let done = compact(thread.begin(machine), ports, cancel, instructions).await;
        thread.settle(opened.open_calls, &done);
        done.map_err(|fault| {
            if fault.source_part == FaultSource::Session {
                let told = fault.into_parts();
                return SessionError::new(told.code, told.message).into();
            }
            HarnessError::Compaction(fault)
        })
    }

    pub(crate) async fn run(
        &self,
        message: Option<Message>,
        options: Options,
    ) -> Result<Report, HarnessError> {
        let Parts { ports, spec, ids, graph, recorder, .. } = &self.parts;
        let mut thread = self.thread.lock().await;
        let opened = thread.open(ports.session.as_deref()).await?;
        let agent = options.agent.or_else(|| {
            opened.agent.filter(|agent| {
                graph.as_ref().is_none_or(|agents| agents.graph().agent(agent.as_str()).is_some())
            })
        });
        let mut snapshot = None;
        if let Some(agents) = graph {
            let said = match &message {
                Some(message) => message.joined_text(),
                None => opened.last_said,
            };
            let overrides = options.context.as_ref().unwrap_or(&self.parts.context);
            let input = ContextInput::new(ports.clock.now().iso()).message(said).overrides(overrides.clone());
            match agents.graph().create_context(&input) {
                Ok(context) => {
                    agents.set_context(context);
                    snapshot = Some(agents.context());
                }
                Err(error) => {
                    thread.put_back(opened.log, opened.open_calls, opened.view);
                    return Err(error.into());
                }
            }
        }
        let mut origin = self.parts.origin.clone();
        origin.run = Some(ids.run_id());
        if let Some(session) = &ports.session {
            origin.session = session.session_id();
        }
        let start = match begin(message, options.taken_up, &origin, &opened.log, thread.waiting()) {
            Ok(start) => start.with_agent(agent).with_open_calls(opened.open_calls),
            Err(error) => {
                thread.put_back(opened.log, opened.open_calls, opened.view);
                return Err(error.into());
            }
        };
        if let Some(recorder) = recorder {
            recorder.begin(snapshot.as_deref(), opened.log.iter().cloned());
        }
        let spec = spec_in(self.parts.modes.as_ref(), spec);
        let machine = Run::new(spec, origin, opened.log).with_view(opened.view);
        let machine = thread.begin(machine);
        let end = drive(machine, ports, &options.cancel, start).await;
        let transcript = thread.finish(&end);
        let recorded = match recorder {
            Some(recorder) => recorder.finish().await,
            None => Recorded::default(),
        };
        Ok(Report::new(end, transcript, opened.torn_tail, recorded))
    }
}

/// What configures a run that begins in the mode that it is now.
fn spec_in(modes: Option<&Modes>, spec: &Arc<RunSpec>) -> Arc<RunSpec> {
    let mode = modes.map_or(spec.mode, |modes| modes.stop_mode(spec.mode));
    if mode == spec.mode {
        return Arc::clone(spec);
    }
    let mut spec = RunSpec::clone(spec);
    spec.mode = mode;
    Arc::new(spec)
}

/// What a run begins with.
fn begin(
    message: Option<Message>,
    taken_up: Option<TakenUp>,
    origin: &Origin,
    log: &Prefix,
    waiting: &[Arc<Message>],
) -> Result<Start, ResumeError> {
    let start = message.map_or_else(Start::resume, Start::prompt).with_waiting(waiting.to_vec());
    match taken_up {
        None => Ok(start),
        Some(TakenUp { continuation, resume: Some(resume) }) => continuation.start(resume, origin, log),
        Some(TakenUp { continuation, resume: None }) => {
            continuation.verify(origin, log)?;
            Ok(start.with_waiting(continuation.waiting.clone()).with_continuation(Some(*continuation)))
        }
    }
}
