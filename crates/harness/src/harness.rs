//! The harness: one thread of conversation, ready to be prompted.

use std::fmt;
use std::sync::Arc;

use harness_control::work::WorkLedger;
use harness_control::{ControlSpec, UntilDone};
use harness_core::decide::Point;
use harness_core::driver::{Ports, compact, drive};
use harness_core::machine::{Resume, ResumeError, Start};
use harness_core::message::{Message, UserMessage};
use harness_core::outcome::Continuation;
use harness_core::port::{CompactionNote, Ids, Loaded, Model, SessionError};
use harness_core::run::{Run, RunResume, RunSpec};
use harness_core::transcript::{Prefix, Transcript};
use harness_core::{Cancel, FaultSource, Json, Origin, RunId, Time};
use harness_descriptor::{ContextInput, GraphAgents, Map};
use harness_record::{Recorded, RunRecorder, RunStart};
use harness_tools::{Modes, WorkTools};

use crate::builder::Builder;
use crate::error::HarnessError;
use crate::prompt::{Options, Prompt, ResumeFrom};
use crate::report::Report;
use crate::thread::{Opened, Thread};

/// What a builder hands over.
pub(crate) struct Parts {
    pub(crate) ports: Ports,
    pub(crate) spec: Arc<RunSpec>,
    /// What controls each run; `None` is nothing but its checks of the end.
    pub(crate) control: Option<Arc<ControlSpec>>,
    pub(crate) modes: Option<Modes>,
    pub(crate) any_descriptor: bool,
    pub(crate) origin: Origin,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) graph: Option<Arc<GraphAgents>>,
    pub(crate) context: Map,
    pub(crate) recorder: Option<RunRecorder>,
    /// The work tools that the builder gave, whose items a run that is taken up brings along.
    pub(crate) work: Option<WorkTools>,
}

/// One thread of conversation: its agents, tools, session and limits.
///
/// It is prompted any number of times, one run at a time; a second prompt waits for the first.
///
/// ```
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text(format!("I see {} messages.", request.view.len())))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let harness = Harness::new(Hosted).instructions("You count.").build()?;
/// assert_eq!(harness.prompt("Hello").await?.answer(), "I see 1 messages.");
/// assert_eq!(harness.prompt("And now?").await?.answer(), "I see 3 messages.");
/// # Ok::<(), harness::HarnessError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Says something to the agents. Await it for the [`Report`]. Blank text says nothing: the conversation is
    /// [resumed](Self::resume).
    pub fn prompt(&self, text: impl Into<String>) -> Prompt<'_> {
        self.prompt_message(UserMessage::text(text))
    }

    /// What configures its runs, with everything that the builder filled in.
    pub fn spec(&self) -> Arc<RunSpec> {
        Arc::clone(&self.parts.spec)
    }

    /// What controls its runs; `None` when a run ends with its first answer that the checks of the end accept.
    pub fn control(&self) -> Option<&ControlSpec> {
        self.parts.control.as_deref()
    }

    /// Says something that is more than text.
    pub fn prompt_message(&self, message: impl Into<Message>) -> Prompt<'_> {
        Prompt::new(self, Some(message.into()))
    }

    /// Goes on where the conversation stopped: calls that a crash or a pending approval left open are
    /// settled, then the model is asked.
    ///
    /// Awaiting it gives [`HarnessError::NothingToResume`] when the last run completed; then nothing was asked.
    pub fn resume(&self) -> Prompt<'_> {
        Prompt::new(self, None)
    }

    /// Takes up a run that an earlier process began, from its last checkpoint and the session: a crash, a limit
    /// or a cancellation ended it, and it was not completed. It counts on: turns, budgets, evidence, work items.
    /// The limits are those of this harness, so a run that had run out of something goes on with more of it;
    /// time in which no process had the run does not count.
    ///
    /// Awaiting it gives [`HarnessError::NoCheckpoints`] and [`HarnessError::NoCheckpoint`] when there is nothing
    /// to take up, and [`HarnessError::RunResume`] when the run does not belong to this conversation; then nothing
    /// has begun, and [`resume`](Self::resume) still goes on from the transcript alone.
    pub fn resume_run(&self, run: impl Into<RunId>) -> Prompt<'_> {
        Prompt::taking_up(self, run.into())
    }

    /// The run of this session that was saved last and can be [resumed](Self::resume_run); `None` when there is
    /// none, or no store of checkpoints.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unfinished_run(&self) -> Result<Option<RunId>, HarnessError> {
        let Parts { ports, .. } = &self.parts;
        let Some(store) = &ports.checkpoints else { return Ok(None) };
        let session = ports.session.as_ref().and_then(|session| session.session_id());
        let mut last: Option<(Time, RunId)> = None;
        for run in store.runs_boxed().await? {
            // One that cannot be read is told when it is taken up by its name.
            let Ok(Some(saved)) = store.latest_boxed(&run).await else { continue };
            let is_ours = RunResume::read(&saved).is_ok_and(|taken| taken.origin().session == session);
            if is_ours && last.as_ref().is_none_or(|(at, _)| *at <= saved.at) {
                last = Some((saved.at, run));
            }
        }
        Ok(last.map(|(_, run)| run))
    }

    async fn saved(&self, run: &RunId, any_descriptor: bool) -> Result<RunResume, HarnessError> {
        let store = self.parts.ports.checkpoints.as_ref().ok_or(HarnessError::NoCheckpoints)?;
        let saved = store.latest_boxed(run).await?;
        let saved = saved.ok_or_else(|| HarnessError::NoCheckpoint { run: run.clone() })?;
        let taken = RunResume::read(&saved)?;
        Ok(if any_descriptor { taken.under_any_descriptor() } else { taken })
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
    /// use harness::core::machine::{CallDecision, Resume};
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
        // No agent of a descriptor is asked.
        let opened = thread.open(ports.session.as_deref(), |_| Ok(())).await?;
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
        let Parts { ports, recorder, .. } = &self.parts;
        let message = message.filter(|message| !is_blank(message));
        let mut thread = self.thread.lock().await;
        let any_descriptor = options.any_descriptor || self.parts.any_descriptor;
        let saved = match &options.run {
            Some(run) => Some(self.saved(run, any_descriptor).await?),
            None => None,
        };
        let here = self.parts.origin.descriptor_hash.as_deref();
        let fits = |loaded: &Loaded| if any_descriptor { Ok(()) } else { loaded.check_descriptor(here) };
        let opened = thread.open(ports.session.as_deref(), fits).await?;
        let cancel = options.cancel.clone();
        let (start, origin) = match self.prepare(&thread, message, options, saved.as_ref(), &opened) {
            Ok(prepared) => prepared,
            Err(error) => {
                thread.restore(opened.log, opened.open_calls, opened.view);
                return Err(error);
            }
        };
        let start = start.with_open_calls(opened.open_calls);
        let machine = self.machine(saved, origin, opened.log)?;
        let machine = thread.start(machine.with_view(opened.view));
        let end = drive(machine, ports, &cancel, start).await;
        let transcript = thread.finish(&end);
        let recorded = match recorder {
            Some(recorder) => recorder.finish().await,
            None => Recorded::default(),
        };
        Ok(Report::new(end, transcript, opened.torn_tail, opened.repairs, recorded))
    }

    /// What a run starts with, and whose it is. Nothing has started when it cannot be made.
    fn prepare(
        &self,
        thread: &Thread,
        message: Option<Message>,
        options: Options,
        saved: Option<&RunResume>,
        opened: &Opened,
    ) -> Result<(Start, Origin), HarnessError> {
        let Parts { ports, control, ids, graph, recorder, .. } = &self.parts;
        let resumes = message.is_none() && saved.is_none() && options.resume_from.is_none();
        let is_plain =
            control.is_none() && !ports.checks.iter().any(|check| check.guard().points.has(Point::End));
        if let Some(reason) = thread.completed(&opened.log, is_plain).filter(|_| resumes) {
            return Err(HarnessError::NothingToResume { reason });
        }
        let last = opened.agent.clone().filter(|agent| {
            graph.as_ref().is_none_or(|agents| agents.graph().agent(agent.as_str()).is_some())
        });
        // A run that is resumed knows its agent itself.
        let agent = options.agent.or(if saved.is_some() { None } else { last });
        let said = message.as_ref().map_or_else(|| opened.last_said.clone(), Message::joined_text);
        let context = self.new_context(said, options.context.as_ref())?;
        let mut origin = self.parts.origin.clone();
        origin.run = Some(options.run.unwrap_or_else(|| ids.run_id()));
        if let Some(session) = &ports.session {
            origin.session = session.session_id();
        }
        if let Some(saved) = saved {
            saved.fits(&origin, &opened.log)?;
        }
        let start = begin(message, options.resume_from, &origin, &opened.log, thread.waiting())?;
        if let Some(recorder) = recorder {
            recorder.begin(RunStart::new(context, opened.log.iter().cloned()));
        }
        Ok((start.with_agent(agent), origin))
    }

    /// Makes the context of the agent graph anew for a prompt, and gives it as data; `None` without a graph.
    fn new_context(&self, said: String, given: Option<&Map>) -> Result<Option<Json>, HarnessError> {
        let Some(agents) = &self.parts.graph else { return Ok(None) };
        let overrides = given.unwrap_or(&self.parts.context);
        let now = self.parts.ports.clock.now().iso();
        let input = ContextInput::new(now).message(said).overrides(overrides.clone());
        agents.graph().check_values(overrides)?;
        agents.set_context(agents.graph().create_context(&input)?);
        Ok(Json::of(&*agents.context()).ok())
    }

    /// The run as a machine: as it was saved, or a new one.
    fn machine(
        &self,
        saved: Option<RunResume>,
        origin: Origin,
        log: Transcript,
    ) -> Result<Run, HarnessError> {
        let Parts { spec, control, work, modes, .. } = &self.parts;
        let fresh = Run::new(spec_in(modes.as_ref(), spec), origin, log);
        let fresh = match control {
            Some(control) => fresh.with_control(Box::new(UntilDone::new(Arc::clone(control)))),
            None => fresh,
        };
        let machine = match saved {
            Some(saved) => saved.onto(fresh)?,
            None => fresh,
        };
        if let (Some(work), Some(items)) = (work, WorkLedger::of(&machine)) {
            work.restore(machine.origin(), items);
        }
        Ok(machine)
    }
}

fn is_blank(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.is_blank())
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
    resume_from: Option<ResumeFrom>,
    origin: &Origin,
    log: &Prefix,
    waiting: &[Arc<Message>],
) -> Result<Start, ResumeError> {
    let start = message.map_or_else(Start::resume, Start::prompt).with_waiting(waiting.to_vec());
    match resume_from {
        None => Ok(start),
        Some(ResumeFrom { continuation, resume: Some(resume) }) => continuation.start(resume, origin, log),
        Some(ResumeFrom { continuation, resume: None }) => {
            continuation.verify(origin, log)?;
            Ok(start.with_waiting(continuation.waiting.clone()).with_continuation(Some(*continuation)))
        }
    }
}
