//! Configuration of a thread. A run captures it at its start; changes apply to the next run.

use std::fmt;
use std::sync::Arc;

use harness_core::decide::{DynCheck, Guarded, Point, check};
use harness_core::driver::Ports;
use harness_core::event::Fold;
use harness_core::message::Message;
use harness_core::outcome::StopMode;
use harness_core::port::{Clock, Control, DynAgentSource, DynModel, Model, Steering, ThinkingLevel};
use harness_core::run::{Run, RunSpec};
use harness_core::tool::{SchemaValidator, ShallowSchemas, ToolDef};
use harness_core::transcript::{Prefix, Transcript, View};
use harness_core::{AgentId, Fault, Json, ModelName, Origin, RunId, ThreadId, ToolName};
use harness_host::{DynSecrets, Params};
use harness_record::Recording;

use crate::queue::{LateSteering, QueueMode};
use crate::skill::SkillSet;
use crate::template::TemplateSet;

/// A model, and who it is: what a thread begins with ([`ThreadConfig::new`]), or asks from its next run on
/// ([`Thread::set_model`](crate::Thread::set_model)).
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelChoice {
    /// Model to call.
    pub model: Arc<dyn DynModel>,
    /// Name of the model, for agents without one.
    pub name: Option<ModelName>,
    /// Provider, for the lookup of its API key.
    pub provider: Arc<str>,
    /// The protocol, for the record.
    pub protocol: Option<Arc<str>>,
}

impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelChoice")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl ModelChoice {
    /// A model without a name.
    pub fn new(model: impl Model + 'static) -> Self {
        Self { model: Arc::new(model), name: None, provider: Arc::from(""), protocol: None }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<ModelName>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets provider and protocol.
    #[must_use]
    pub fn of(mut self, provider: impl Into<Arc<str>>, protocol: impl Into<Arc<str>>) -> Self {
        (self.provider, self.protocol) = (provider.into(), Some(protocol.into()));
        self
    }
}

/// Input of [`Instructions::Built`]: the parts that serve the iteration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PromptInfo {
    /// Name of the model.
    pub model: Option<ModelName>,
    /// How hard it thinks.
    pub thinking: Option<ThinkingLevel>,
    /// Tools of the request.
    pub tools: Arc<[ToolDef]>,
    /// The transcript: before the first request of a run without the run's own prompt, later with all that
    /// the run has appended. On a durable engine it always has the prompt.
    pub messages: Prefix,
    /// Skills of the thread.
    pub skills: SkillSet,
    /// Current working directory of the runtime ([`Runtime::set_root_cwd`](crate::Runtime::set_root_cwd)).
    pub cwd: Arc<str>,
    /// Host parameters of the runtime.
    pub params: Params,
}

/// Builds a system prompt.
pub type BuildPrompt = dyn Fn(&PromptInfo) -> String + Send + Sync;

/// Turns the view of a request into what the model is sent, behind compaction.
pub type ConvertView = dyn Fn(&View) -> Vec<Arc<Message>> + Send + Sync;

/// Makes a listener for one run of a thread.
pub type Listen = dyn Fn(&ThreadId) -> Box<dyn Fold> + Send + Sync;

/// Makes the control of one run.
pub type NewControl = dyn Fn() -> Box<dyn Control> + Send + Sync;

/// Receives a run that resumes from a checkpoint, before it starts.
pub type SeeRestored = dyn Fn(&Run) + Send + Sync;

/// Looks at a run before it begins, and changes what is its own.
pub type PrepareRun = dyn Fn(&mut RunSetup) -> Result<(), Fault> + Send + Sync;

/// Setup of a run before its start.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunSetup {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Id of the run.
    pub run: RunId,
    /// Text of its prompt; of a resumed run, the last text of a user.
    pub said: String,
    /// Agents of the run.
    pub agents: Arc<dyn DynAgentSource>,
    /// Agent at the start: the active agent of the thread; `None` is the entry agent.
    pub agent: Option<AgentId>,
    /// Treatment of an end that a check rejects.
    pub mode: StopMode,
    /// Messages to inject between iterations; `None` in a preview.
    pub steering: Option<Arc<dyn Steering>>,
    /// Context values of the prompt. The host replaces them by the whole context, for the record of the run.
    pub context: Option<Json>,
}

impl RunSetup {
    pub(crate) fn new(
        thread: &ThreadId,
        run: &RunId,
        agent: Option<AgentId>,
        settled: &ResolvedConfig,
    ) -> Self {
        Self {
            thread: thread.clone(),
            run: run.clone(),
            said: String::new(),
            agents: Arc::clone(&settled.config.ports.agents),
            agent,
            mode: settled.config.run.mode,
            steering: None,
            context: settled.context.clone(),
        }
    }
}

impl fmt::Debug for RunSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSetup")
            .field("thread", &self.thread)
            .field("run", &self.run)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The system prompt of a thread.
#[derive(Clone)]
#[non_exhaustive]
pub enum Instructions {
    /// Those of the agents.
    OfAgents,
    /// This text.
    Text(Arc<str>),
    /// Built before every iteration.
    Built(Arc<BuildPrompt>),
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfAgents => f.write_str("OfAgents"),
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Built(_) => f.write_str("Built"),
        }
    }
}

/// Everything that a run of a thread is made from. Cheap to clone: what is large is shared.
#[derive(Clone)]
#[non_exhaustive]
pub struct ThreadConfig {
    /// Ports of runs. The thread adds its session, tool updates and steering.
    pub ports: Ports,
    /// Name of the model, for agents without one. Default none.
    pub model_name: Option<ModelName>,
    /// Provider of the model, for the lookup of its API key. Default empty.
    pub provider: Arc<str>,
    /// The protocol to the model, for the record. Default none.
    pub protocol: Option<Arc<str>>,
    /// How hard it thinks. Default: as the adapter and its settings say.
    pub thinking: Option<ThinkingLevel>,
    /// The system prompt. Default: that of the agents.
    pub instructions: Instructions,
    /// Settings of requests, for agents without any.
    pub settings: Option<Json>,
    /// The names of the tools in use; those that are not registered match nothing. Default: all.
    pub active_tools: Option<Arc<[ToolName]>>,
    /// Whether [`Thread::compact`](crate::Thread::compact) removes from the session what it leaves out, and other
    /// branches with it. Default false: the session keeps everything. A store that cannot replace keeps it in
    /// either case.
    pub forget_compacted: bool,
    /// Whether sessions are continued that were started under another descriptor than that of `origin`.
    /// Default false: the thread rejects them.
    pub any_descriptor: bool,
    /// Skills.
    pub skills: SkillSet,
    /// Prompt templates.
    pub templates: TemplateSet,
    /// How much steering is delivered at once. Default one message.
    pub steering_mode: QueueMode,
    /// How many messages one run begins with. Default one.
    pub follow_up_mode: QueueMode,
    /// Delivery of steering that arrives after the answer. Default: the run continues with it.
    pub late_steering: LateSteering,
    /// Converts the view of a request.
    pub convert: Option<Arc<ConvertView>>,
    /// Provides the API key of each request.
    pub secrets: Option<Arc<dyn DynSecrets>>,
    /// Make listeners for each run, beside those of the ports and the streams of its thread.
    pub listeners: Vec<Arc<Listen>>,
    /// Inspects and changes each run before its start; an error prevents it.
    pub prepare: Option<Arc<PrepareRun>>,
    /// Records every run that ends: in its [`Report`](crate::Report) and to the sinks. Default no record.
    pub record: Option<Recording>,
    /// Receives each run that resumes from a checkpoint. Default none.
    pub restored: Option<Arc<SeeRestored>>,
    /// Assistant, user, data of the caller and descriptor of runs. The thread fills in ids and active tools.
    pub origin: Origin,
    /// Values laid over the defaults of the descriptor's context, unless a prompt has its own. Default none.
    pub context: Option<Json>,
    /// Limits and rules of runs.
    pub run: RunSpec,
    /// Validates answers against the JSON Schema of a prompt or an agent. Default: the top level only.
    pub schemas: Arc<dyn SchemaValidator>,
    /// Decides after each turn whether a run continues. Default: it ends with the first answer that its checks accept.
    pub control: Option<Arc<NewControl>>,
}

impl fmt::Debug for ThreadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadConfig")
            .field("ports", &self.ports)
            .field("model_name", &self.model_name)
            .field("thinking", &self.thinking)
            .field("active_tools", &self.active_tools)
            .field("steering_mode", &self.steering_mode)
            .field("follow_up_mode", &self.follow_up_mode)
            .finish_non_exhaustive()
    }
}

impl ThreadConfig {
    /// A model and a clock, and everything else by default.
    pub fn new(model: ModelChoice, clock: Arc<dyn Clock>) -> Self {
        let mut config = Self::of(Ports::new(Arc::clone(&model.model), clock));
        config.choose(model);
        config
    }

    /// These ports, and everything else by default.
    pub fn of(ports: Ports) -> Self {
        Self {
            ports,
            model_name: None,
            provider: Arc::from(""),
            protocol: None,
            thinking: None,
            instructions: Instructions::OfAgents,
            settings: None,
            active_tools: None,
            any_descriptor: false,
            forget_compacted: false,
            skills: SkillSet::default(),
            templates: TemplateSet::default(),
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
            late_steering: LateSteering::default(),
            convert: None,
            secrets: None,
            listeners: Vec::new(),
            prepare: None,
            record: None,
            restored: None,
            origin: Origin::default(),
            context: None,
            run: RunSpec::default(),
            schemas: Arc::new(ShallowSchemas),
            control: None,
        }
    }

    /// Adds the check of output schemas, once. Threads add it for prompts with a schema; agents with one require it.
    pub fn validate_output(&mut self) {
        let check = check::output(Arc::clone(&self.schemas));
        let is_there = |known: &Guarded<dyn DynCheck>| known.guard().name == check.guard().name;
        if !self.ports.checks.iter().any(is_there) {
            self.ports.checks.push(check);
        }
    }

    /// Another model.
    pub fn choose(&mut self, model: ModelChoice) {
        let ModelChoice { model, name, provider, protocol } = model;
        self.ports.model = model;
        (self.model_name, self.provider, self.protocol) = (name, provider, protocol);
    }
}

/// A configuration with what follows from it.
#[derive(Debug)]
pub(crate) struct ResolvedConfig {
    pub(crate) config: ThreadConfig,
    /// Start agent of one run.
    pub(crate) agent: Option<AgentId>,
    /// Context values of one run.
    pub(crate) context: Option<Json>,
    /// JSON Schema of the answer of one run.
    pub(crate) output: Option<Json>,
}

impl ResolvedConfig {
    pub(crate) fn new(config: ThreadConfig) -> Arc<Self> {
        let context = config.context.clone();
        Arc::new(Self { config, agent: None, context, output: None })
    }

    /// Applies the host's changes to a setup.
    pub(crate) fn set_up(
        &self,
        mut setup: RunSetup,
        said: impl FnOnce() -> String,
    ) -> Result<RunSetup, Fault> {
        if let Some(prepare) = &self.config.prepare {
            setup.said = said();
            prepare(&mut setup)?;
        }
        setup.agent = self.agent.clone().or(setup.agent);
        Ok(setup)
    }

    /// Whether a run ends with its first answer.
    pub(crate) fn is_plain(&self) -> bool {
        let checks = &self.config.ports.checks;
        self.config.control.is_none() && !checks.iter().any(|check| check.guard().points.has(Point::End))
    }

    /// A run in a mode.
    pub(crate) fn run(&self, mode: StopMode, origin: Origin, log: Transcript) -> Run {
        let run = Run::new(Arc::new(RunSpec { mode, ..self.config.run.clone() }), origin, log);
        match &self.config.control {
            Some(new) => run.with_control(new()),
            None => run,
        }
    }
}
