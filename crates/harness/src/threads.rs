//! Many conversations with the same parts.

use std::sync::Arc;

use harness_control::UntilDone;
use harness_control::work::WorkLedger;
use harness_core::event::Fold;
use harness_core::port::Clock;
use harness_core::{Fault, FaultSource, Json};
use harness_descriptor::{ContextInput, DescriptorError, GraphAgents, Map, Value};
use harness_record::Recording;
use harness_runtime::skill::SkillSet;
use harness_runtime::template::TemplateSet;
use harness_runtime::{
    DynSessions, Limits, NewControl, PrepareRun, RunSetup, Runtime, RuntimeBuilder, SeeRestored, Sessions,
    ThreadConfig,
};
use harness_telemetry::Spans;
use harness_tools::Modes;

use crate::agents::{AgentDecorator, BoundGraph};
use crate::builder::{Assembled, Builder};
use crate::error::{HarnessError, SetupFault};
use crate::recording::completed;
use crate::until_done::schemas;

/// Settings of threads.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) sessions: Option<Arc<dyn DynSessions>>,
    limits: Option<ChangeLimits>,
    host: Option<ChangeHost>,
    listeners: Vec<Arc<harness_runtime::Listen>>,
    /// Spans, with a separate observer for each run.
    pub(crate) spans: Option<Spans>,
    pub(crate) skills: SkillSet,
    pub(crate) templates: TemplateSet,
    /// Whether each run starts with the entry agent.
    from_entry: bool,
}

type ChangeLimits = Box<dyn FnOnce(&mut Limits) + Send>;
type ChangeHost = Box<dyn FnOnce(RuntimeBuilder) -> RuntimeBuilder + Send>;

/// Many conversations, see [`build_runtime`](Self::build_runtime).
impl Builder {
    /// Where the transcripts of the threads of a [runtime](Self::build_runtime) are kept. Without, they are kept
    /// as long as the runtime lives.
    pub fn sessions(mut self, sessions: impl Sessions + 'static) -> Self {
        self.threads.sessions = Some(Arc::new(sessions));
        self
    }

    /// Changes the bounds of the threads of a [runtime](Self::build_runtime). Default [`Limits::default`].
    pub fn thread_limits(mut self, change: impl FnOnce(&mut Limits) + Send + 'static) -> Self {
        self.threads.limits = Some(Box::new(change));
        self
    }

    /// Changes the [runtime](Self::build_runtime) itself before it is made: its working directory and its params.
    pub fn runtime_with(
        mut self,
        change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder + Send + 'static,
    ) -> Self {
        self.threads.host = Some(Box::new(change));
        self
    }

    /// Makes an inline observer for each run of the threads of a [runtime](Self::build_runtime). An observer of
    /// [`fold`](Self::fold) receives the events of all threads.
    pub fn fold_each<F: Fold + 'static>(mut self, make: impl Fn() -> F + Send + Sync + 'static) -> Self {
        self.threads.listeners.push(Arc::new(move |_| Box::new(make())));
        self
    }

    /// Starts every run with the entry agent, even when the conversation was handed off. Default: a run continues with the
    /// agent of the last one.
    pub fn runs_from_entry(mut self) -> Self {
        self.threads.from_entry = true;
        self
    }

    /// Checks everything and puts it together as a runtime of any number of threads, which share the parts and
    /// nothing else. Each thread has its mode.
    ///
    /// ```
    /// use harness::prelude::*;
    /// # struct Hosted;
    /// # impl Model for Hosted {
    /// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
    /// #         Ok(AssistantMessage::text("hi"))
    /// #     }
    /// # }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let runtime = Harness::new(Hosted).instructions("You are brief.").build_runtime()?;
    /// let (ada, bob) = (runtime.thread("ada"), runtime.thread("bob"));
    /// let (to_ada, to_bob) = tokio::join!(ada.prompt("Hello"), bob.prompt("Hello"));
    /// assert_eq!((to_ada?.answer(), to_bob?.answer()), ("hi", "hi"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HarnessError::Setup`] with all problems: also for what belongs to a single conversation (a session, its
    /// name, a steering queue).
    pub fn build_runtime(self) -> Result<Runtime, HarnessError> {
        let single = [
            ("session", self.ports.session.is_some()),
            ("thread", self.origin.thread.is_some()),
            ("steering", self.ports.steering.is_some()),
        ];
        let single: Vec<SetupFault> = single
            .into_iter()
            .filter_map(|(part, given)| given.then_some(SetupFault::OfOneConversation { part }))
            .collect();
        match (self.into_runtime(), single.is_empty()) {
            (built, true) => built,
            (Ok(_), false) => Err(HarnessError::Setup(single)),
            (Err(HarnessError::Setup(faults)), false) => {
                Err(HarnessError::Setup(single.into_iter().chain(faults).collect()))
            }
            (Err(error), false) => Err(error),
        }
    }

    /// The runtime of one conversation, or of many.
    pub(crate) fn into_runtime(mut self) -> Result<Runtime, HarnessError> {
        let Threads { sessions, limits, host, mut listeners, spans, skills, templates, from_entry } =
            std::mem::take(&mut self.threads);
        if let Some(spans) = spans {
            listeners.push(Arc::new(move |_| Box::new(spans.clone())));
        }
        if let Some(recording) = &self.recording {
            let subagents = recording.subagents();
            self = self.watch_subagents(subagents);
        }
        let (recording, any_descriptor) = (self.recording.take(), self.any_descriptor);
        let assembled = self.assemble()?;
        let ids = Arc::clone(&assembled.ids);
        let mut config = config(assembled, recording, from_entry);
        config.listeners.extend(listeners);
        config.any_descriptor = any_descriptor;
        (config.skills, config.templates) = (skills, templates);
        let mut runtime = Runtime::builder(config, ids);
        if let Some(sessions) = sessions {
            runtime = runtime.shared_sessions(sessions);
        }
        if let Some(limits) = limits {
            runtime = runtime.limits(limits);
        }
        if let Some(change) = host {
            runtime = change(runtime);
        }
        Ok(runtime.build())
    }
}

fn config(assembled: Assembled, recording: Option<Recording>, from_entry: bool) -> ThreadConfig {
    let Assembled { ports, spec, control, around, modes, origin, context, work, .. } = assembled;
    let mut config = ThreadConfig::of(ports);
    config.origin = origin;
    config.schemas = schemas();
    let graph = around.bound.as_ref().map(|bound| &**bound.graph());
    if graph.is_some_and(|graph| graph.agents().any(|agent| agent.output().is_some())) {
        config.validate_output();
    }
    let secrets = config.ports.redactor.as_ref();
    config.record = recording.map(|recording| completed(recording, graph, &spec, secrets));
    config.run = spec;
    config.control = control.map(|control| {
        let new: Arc<NewControl> = Arc::new(move || Box::new(UntilDone::new(Arc::clone(&control))));
        new
    });
    config.restored = work.map(|work| {
        let restore: Arc<SeeRestored> = Arc::new(move |run| {
            if let Some(items) = WorkLedger::of(run) {
                work.restore(run.origin(), items);
            }
        });
        restore
    });
    if around.bound.is_none() {
        config.ports.agents = around.over(config.ports.agents);
    }
    let clock = Arc::clone(&config.ports.clock);
    config.prepare = prepare(around, context, modes, clock, from_entry);
    config
}

/// Agents with the context of their run, and the modes' part in it.
fn prepare(
    around: AgentDecorator,
    overrides: Map,
    modes: Option<Modes>,
    clock: Arc<dyn Clock>,
    from_entry: bool,
) -> Option<Arc<PrepareRun>> {
    if around.bound.is_none() && modes.is_none() {
        return None;
    }
    Some(Arc::new(move |setup: &mut RunSetup| {
        if let Some(modes) = &modes {
            let mode = modes.of(&setup.thread);
            setup.mode = mode.stop_mode(setup.mode);
            setup.steering = setup.steering.take().map(|queue| Arc::new(mode.notes(Some(queue))) as _);
        }
        if let Some(bound) = &around.bound {
            let overrides = match &setup.context {
                Some(own) => values(own)?,
                None => overrides.clone(),
            };
            let context = new_context(bound, &setup.said, overrides, &*clock);
            let context =
                context.map_err(|error| Fault::new(FaultSource::Agent, error.kind(), error.to_string()))?;
            let agents = Arc::new(GraphAgents::new(Arc::clone(bound.graph()), Value::Map(Map::new())));
            agents.set_context(context);
            setup.context = Json::of(&*agents.context()).ok();
            setup.agents = around.graph(agents);
            let last = setup.agent.take().filter(|_| !from_entry);
            setup.agent = last.filter(|agent| bound.graph().agent(agent.as_str()).is_some());
        }
        Ok(())
    }))
}

/// The values that a prompt lays over the context.
fn values(own: &Json) -> Result<Map, Fault> {
    if let Ok(Value::Map(values)) = own.to() {
        return Ok(values);
    }
    let why = "the values for the context are not an object";
    Err(Fault::new(FaultSource::Agent, "context", why))
}

/// The context of a graph's agents, made anew with these values laid over it.
pub(crate) fn new_context(
    bound: &BoundGraph,
    said: &str,
    overrides: Map,
    clock: &dyn Clock,
) -> Result<Value, DescriptorError> {
    bound.graph().check_values(&overrides)?;
    let input = ContextInput::new(clock.now().iso()).message(said).overrides(overrides);
    bound.graph().create_context(&input)
}
