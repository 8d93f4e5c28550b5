//! Puts the parts together.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use harness_control::ControlSpec;
use harness_core::decide::policy::{NotConfigured, Policy};
use harness_core::decide::{DynCheck, DynGate, Guarded, gate};
use harness_core::driver::Ports;
use harness_core::event::{Fold, Subscription};
use harness_core::limits::Limits;
use harness_core::port::{
    AgentSource, Approver, CheckpointStore, Clock, Compactor, ContextPipeline, Ids, Model, Secret, Session,
    SingleAgent, Steering,
};
use harness_core::run::RunSpec;
use harness_core::tool::{DynTool, DynToolRegistry, Tool, ToolRegistry, Toolbox};
use harness_core::{Millis, ModelName, Origin, Redactor, ThreadId, ToolName};
use harness_descriptor::{CompactionSetting, Map};
use harness_host::Params;
use harness_memory::layer::{ItemSchemas, Pipeline};
use harness_record::Recording;
use harness_tools::{Combined, Modes, Source, WorkTools};

use crate::agents::{AgentDecorator, BoundGraph};
use crate::compaction::compactor;
use crate::error::{HarnessError, SetupFault};
use crate::harness::Harness;
use crate::layers::ConfiguredMemory;
use crate::sessions::OneSession;
use crate::subagents::SubagentSetup;
use crate::system::{SystemClock, SystemIds};
use crate::threads::{Threads, new_context};
use crate::until_done::{ControlParts, missing_tools};

/// Puts a harness together: every method is one seam, and only the model is needed. Made by
/// [`Harness::new`].
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
/// let harness = Harness::new(Hosted)
///     .instructions("You are brief.")
///     .session(harness::session::MemorySession::new())
///     .limits(|limits| limits.tool_calls = 40)
///     .build()?;
/// # Ok::<(), harness::HarnessError>(())
/// ```
#[must_use = "call `build`"]
pub struct Builder {
    pub(crate) ports: Ports,
    pub(crate) spec: RunSpec,
    pub(crate) origin: Origin,
    pub(crate) any_descriptor: bool,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    /// Tools that every agent has.
    pub(crate) common: Vec<ToolName>,
    /// Texts at the end of every agent's instructions.
    pub(crate) more: Vec<Arc<str>>,
    registry: Option<Arc<dyn DynToolRegistry>>,
    sources: Vec<Source>,
    /// How often agents were given; once is right.
    agents_given: usize,
    graph: Option<BoundGraph>,
    /// The model of every agent, whatever it names itself.
    model_name: Option<ModelName>,
    context: Map,
    tool_policy: Option<Guarded<dyn DynGate>>,
    handoff_policy: Option<Guarded<dyn DynGate>>,
    default_deny: bool,
    wrappers: Vec<WrapTools>,
    pub(crate) recording: Option<Recording>,
    pub(crate) control: ControlParts,
    /// How a descriptor wants the model to be shown less.
    compaction: Option<CompactionSetting>,
    /// Memory of a registry file.
    pub(crate) memory: ConfiguredMemory,
    pub(crate) items: Option<ItemSchemas>,
    /// Work items that tools among the given ones keep.
    pub(crate) work: Option<WorkTools>,
    pub(crate) team: SubagentSetup,
    pub(crate) threads: Threads,
}

/// Puts something between a harness and its tools.
type WrapTools = Box<dyn FnOnce(Arc<dyn DynToolRegistry>) -> Arc<dyn DynToolRegistry> + Send>;

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("ports", &self.ports)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(model: impl Model + 'static) -> Self {
        Self {
            ports: Ports::new(Arc::new(model), Arc::new(SystemClock::new())),
            spec: RunSpec::default(),
            origin: Origin::default(),
            any_descriptor: false,
            ids: Arc::new(SystemIds::new()),
            tools: Vec::new(),
            common: Vec::new(),
            more: Vec::new(),
            registry: None,
            sources: Vec::new(),
            agents_given: 0,
            graph: None,
            model_name: None,
            context: Map::new(),
            tool_policy: None,
            handoff_policy: None,
            default_deny: false,
            wrappers: Vec::new(),
            recording: None,
            control: ControlParts::default(),
            compaction: None,
            memory: ConfiguredMemory::default(),
            items: None,
            work: None,
            team: SubagentSetup::default(),
            threads: Threads::default(),
        }
    }

    /// One more tool. Default none.
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// One more tool, which others may use, too.
    pub fn shared_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// One more tool, which every agent may call, also one that lists others: the means to read on in what
    /// was stored elsewhere, for example, or to search a memory. A descriptor's hash does not know of it.
    pub fn common_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.common.push(tool.tool_def().name.clone());
        self.shared_tool(tool)
    }

    /// One more source of tools whose list may change, beside single tools; an MCP server, for example.
    pub fn source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }

    /// A source of tools whose list may change, in place of single tools.
    pub fn registry(mut self, registry: impl ToolRegistry + 'static) -> Self {
        self.registry = Some(Arc::new(registry));
        self
    }

    /// Puts something between the harness and its tools: it is given the registry of all of them (a replay
    /// of recorded results, a cache). Wrappers lie around each other in the order in which they are given.
    pub fn wrap_tools<R: ToolRegistry + 'static>(
        mut self,
        wrap: impl FnOnce(Arc<dyn DynToolRegistry>) -> R + Send + 'static,
    ) -> Self {
        self.wrappers.push(Box::new(|inner| Arc::new(wrap(inner))));
        self
    }

    /// The instructions of the one agent there is. Default none.
    pub fn instructions(self, text: impl Into<Arc<str>>) -> Self {
        self.agents(SingleAgent::new(text))
    }

    /// A source of agents of your own.
    pub fn agents(mut self, agents: impl AgentSource + 'static) -> Self {
        self.agents_given += 1;
        self.ports.agents = Arc::new(agents);
        self
    }

    /// The agents of a descriptor, and the tools that they use. Its `max_iterations`, if it has one, is the
    /// limit of [`max_iterations`](Self::max_iterations), and its section `run` configures runs and their
    /// control; what is set later replaces that. Where it asks for compaction and no
    /// [`compactor`](Self::compactor) is given, there is one whose summaries the model writes.
    pub fn graph(mut self, bound: BoundGraph) -> Self {
        if let Some(limit) = bound.graph().max_iterations() {
            self = self.max_iterations(limit.get());
        }
        if let Some(run) = bound.graph().run() {
            run.apply(&mut self.spec);
            self.control.spec = run.control(self.spec.mode).or(self.control.spec);
            self.compaction = run.compaction;
        }
        self.agents_given += 1;
        self.origin.descriptor_hash = Some(bound.hash().into());
        self.tools.extend(bound.tools().iter().cloned());
        self.sources.extend(bound.sources().iter().cloned());
        self.graph = Some(bound);
        self
    }

    /// Requests this model for every agent, whatever its descriptor names. Requests, events, spans, records and
    /// the digest of the candidate name it. Default: the model of each agent.
    pub fn model_name(mut self, name: impl Into<ModelName>) -> Self {
        self.model_name = Some(name.into());
        self
    }

    /// Continues sessions that were started under another descriptor: an explicit choice, because agents and
    /// tools may not be what they were. Default: such a session is rejected with `session.other_descriptor`.
    pub fn any_descriptor(mut self) -> Self {
        self.any_descriptor = true;
        self
    }

    /// Values laid over the defaults of the descriptor's context, in every prompt. Default none. With
    /// [`graph`](Self::graph) they are values of paths that the descriptor declares; others are refused.
    pub fn context(mut self, overrides: Map) -> Self {
        self.context = overrides;
        self
    }

    /// Where the transcript is kept. Without, it is kept as long as the harness lives.
    pub fn session(mut self, session: impl Session + 'static) -> Self {
        self.ports.session = Some(Arc::new(session));
        self
    }

    /// Where the state of runs is kept: before each turn of a run, until it has ended as
    /// completed. Default nowhere.
    pub fn checkpoints(mut self, store: impl CheckpointStore + 'static) -> Self {
        self.ports.checkpoints = Some(Arc::new(store));
        self
    }

    /// One more gate of tool calls and handoffs, asked after those that were given before.
    ///
    /// ```
    /// use harness::prelude::*;
    ///
    /// # fn careful(model: impl Model + 'static) -> Result<Harness, harness::HarnessError> {
    /// Harness::new(model)
    ///     .gate(gate::needs_approval("payments", |call| {
    ///         (call.call.name.as_str() == "pay").then(|| "money leaves the account".to_owned())
    ///     }))
    ///     .build()
    /// # }
    /// ```
    pub fn gate(mut self, gate: Guarded<dyn DynGate>) -> Self {
        self.ports.gates.push(gate);
        self
    }

    /// The policy of tool calls, in place of one given before. Policies are asked after all gates, so that they decide
    /// about what would be executed.
    pub fn tool_policy(mut self, policy: impl Policy + 'static) -> Self {
        self.tool_policy = Some(gate::policy(policy));
        self
    }

    /// The policy of handoffs, in place of one given before.
    pub fn handoff_policy(mut self, policy: impl Policy + 'static) -> Self {
        self.handoff_policy = Some(gate::handoff_policy(policy));
        self
    }

    /// Denies tool calls without a policy of tools, and handoffs without a policy of handoffs.
    pub fn default_deny(mut self) -> Self {
        self.default_deny = true;
        self
    }

    /// One more check of prompts, answers or ends, called after earlier ones. Chunks of a streamed answer may be
    /// emitted before.
    ///
    /// ```
    /// use harness::prelude::*;
    ///
    /// # fn careful(model: impl Model + 'static) -> Result<Harness, harness::HarnessError> {
    /// Harness::new(model)
    ///     .check(check::guardrail("no-secrets", Points::PROMPT.and(Points::ANSWER), |text| {
    ///         text.contains("hunter2").then(|| "it holds a password".to_owned())
    ///     }))
    ///     .build()
    /// # }
    /// ```
    pub fn check(mut self, check: Guarded<dyn DynCheck>) -> Self {
        self.ports.checks.push(check);
        self
    }

    /// Decides held calls. Without an approver, a held call ends the run as pending.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.ports.approver = Some(Arc::new(approver));
        self
    }

    /// A queue of messages that are injected between iterations.
    pub fn steering(mut self, steering: impl Steering + 'static) -> Self {
        self.ports.steering = Some(Arc::new(steering));
        self
    }

    /// Memory: the layers of a pipeline contribute to every view, its gate decides on tool calls after the gates that
    /// were given before, and every agent has its tools. Default none. See also
    /// [`memory_setting`](Self::memory_setting).
    pub fn memory(self, pipeline: Pipeline) -> Self {
        let builder = pipeline.tools().into_iter().fold(self, Self::common_tool);
        builder.gate(pipeline.gate()).layers(pipeline)
    }

    /// Item schemas of the whole conversation. A tool call that they do not accept is denied; in place of a tool result the
    /// model receives the error `item_schema_mismatch`; a prompt with a custom message of an unknown type is refused
    /// (`guardrail_triggered`). Sub-agents, and layers of a [`memory_setting`](Self::memory_setting), have them, too; a
    /// [`memory`](Self::memory) of your own has those of its [`LayerSetup`](harness_memory::layer::LayerSetup::schemas).
    /// Default none.
    ///
    /// ```
    /// use harness::memory::layer::{ItemCategory, ItemSchema, ItemSchemas};
    /// use harness::prelude::*;
    ///
    /// # fn build(model: impl Model + 'static) -> Result<Harness, harness::HarnessError> {
    /// let receipt = ItemSchema::new("receipt", |item| item.text().contains("\"data\":{\"receipt\":"));
    /// let schemas = ItemSchemas::default()
    ///     .with(ItemCategory::ToolResults, receipt.of_tool("pay"))
    ///     .with(ItemCategory::Items, ItemSchema::of_type("shop:order"));
    /// Harness::new(model).item_schemas(schemas).build()
    /// # }
    /// ```
    pub fn item_schemas(mut self, schemas: ItemSchemas) -> Self {
        self.items = Some(schemas);
        self
    }

    /// Replaces a [`memory`](Self::memory) by a custom port.
    pub fn layers(mut self, layers: impl ContextPipeline + 'static) -> Self {
        self.ports.layers = Some(Arc::new(layers));
        self
    }

    /// Compacts the view, in place of the compaction of the descriptor. Default none.
    pub fn compactor(mut self, compactor: impl Compactor + 'static) -> Self {
        self.ports.compactor = Some(Arc::new(compactor));
        self
    }

    /// Changes the limits of a turn. Default the default.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.spec.turn.limits);
        self
    }

    /// Model calls at most, of a turn and of all turns of a run together. Default 32 and 1,000, or what the
    /// descriptor says.
    pub fn max_iterations(mut self, limit: u32) -> Self {
        self.spec.turn.limits.iterations = limit;
        self.spec.limits.amount.iterations = limit;
        self
    }

    /// Changes everything that configures a run. Default [`RunSpec::default`]; which ports there are is
    /// filled in.
    pub fn spec(mut self, change: impl FnOnce(&mut RunSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// How long aborted work may still answer. Default 2 s.
    pub fn grace(mut self, grace: Millis) -> Self {
        self.ports.grace = grace;
        self
    }

    /// Secrets that nothing of a run may hold: they are taken out of tool results, answers, prompts and errors before
    /// those are emitted, stored or sent to a model. Adds to those given before; see [`Redactor`].
    pub fn secrets(self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        let redactor = self.ports.redactor.clone().unwrap_or_default();
        secrets.into_iter().for_each(|secret| redactor.add(&secret));
        self.redactor(redactor)
    }

    /// Host parameters: data of the application that its [tools](harness_core::tool::ToolCx::params), those of
    /// sub-agents, and built prompts read. The model does not see them. Default `{}`.
    ///
    /// ```
    /// use harness::core::Json;
    /// use harness::core::tool::ToolError;
    /// use harness::host::Params;
    /// # use harness::prelude::*;
    ///
    /// # fn build(model: impl Model + 'static) -> Result<Harness, Box<dyn std::error::Error>> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Ask {}
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Settings {
    ///     region: String,
    /// }
    ///
    /// let place = tool_fn("place", "Says where the data is.", |_: Ask, cx| async move {
    ///     let settings: Settings = cx.params.to().map_err(|error| ToolError::new("params", error.to_string()))?;
    ///     Ok::<_, ToolError>(settings.region)
    /// });
    /// let params = Params::new(Json::parse(r#"{ "region": "eu" }"#)?);
    /// Ok(Harness::new(model).tool(place).params(params).build()?)
    /// # }
    /// ```
    pub fn params(mut self, params: Params) -> Self {
        self.ports.params = params.json().clone();
        self
    }

    /// A redactor that the host adds secrets to as it learns of them, in place of one given before.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.ports.redactor = Some(redactor);
        self
    }

    /// An inline listener: quick and trusted.
    pub fn fold(mut self, fold: impl Fold + 'static) -> Self {
        self.ports.hub.fold(fold);
        self
    }

    /// A listener at its own pace, over a ring of at most `capacity` entries. It ends with the harness.
    pub fn subscribe(&mut self, capacity: usize) -> Subscription {
        self.ports.hub.subscribe(capacity)
    }

    /// Records every run that ends, in its [`Report`](harness_runtime::Report) and to the sinks of `recording`. Context
    /// fields with `redact: true` are redacted, as are the values of `recording`. The candidate gets the descriptor hash, the
    /// registry version, the model of the first agent and the version of this library. Default no record.
    pub fn record(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// The user that the work is for: whose facts a memory keeps and shows. Default none.
    pub fn user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.origin.user = Some(user.into());
        self
    }

    /// The workspace that the work belongs to, for facts that all who work there share. Default none.
    pub fn workspace(mut self, workspace: impl Into<Arc<str>>) -> Self {
        self.origin.workspace = Some(workspace.into());
        self
    }

    /// The name of the conversation, in events and in the idempotency keys of calls. Default none.
    pub fn thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.origin.thread = Some(thread.into());
        self
    }

    /// The clock. Default [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.ports.clock = clock;
        self
    }

    /// Where run ids come from. Default [`SystemIds`].
    pub fn ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Checks everything and puts it together as one conversation.
    ///
    /// # Errors
    /// [`HarnessError::Setup`] with all problems.
    pub fn build(mut self) -> Result<Harness, HarnessError> {
        let thread = self.origin.thread.take().unwrap_or_else(|| ThreadId::from(""));
        if let Some(session) = self.ports.session.take() {
            self.threads.sessions = Some(Arc::new(OneSession { thread: thread.clone(), session }));
        }
        Ok(Harness::of(self.into_runtime()?, thread))
    }

    /// Everything in its place, but for what belongs to one conversation or to one run.
    pub(crate) fn assemble(mut self) -> Result<Assembled, HarnessError> {
        self = self.with_configured_memory()?;
        if let Some(bound) = &self.graph {
            new_context(bound, "", self.context.clone(), &*self.ports.clock)?;
        }
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(HarnessError::Setup(faults));
        }
        let of_subagents = SubagentSetup::tools_of_subagents(&self.tools);
        let given = self.work.take();
        let (missing, work) =
            missing_tools(self.control.spec.as_ref(), &self.tools, given.clone(), &self.ports.clock);
        self.team.add_states(given.or_else(|| work.clone()), &mut self.ports);
        self = missing.into_iter().fold(self, Self::common_tool);
        let control = match self.control.into_parts() {
            Some((control, facts)) => {
                self.ports.facts = Some(facts);
                Some(control)
            }
            None => None,
        };
        if let (Some(setting), None) = (self.compaction, &self.ports.compactor) {
            self.ports.compactor = Some(Arc::new(compactor(setting, &self.ports.model)));
        }
        let together = |tools: Vec<Arc<dyn DynTool>>| -> Arc<dyn DynToolRegistry> {
            match &self.registry {
                Some(registry) if tools.is_empty() => Arc::clone(registry),
                Some(registry) => {
                    Arc::new(Combined::new(Toolbox::new(tools), [Source::new("", Arc::clone(registry))]))
                }
                None if self.sources.is_empty() => Arc::new(Toolbox::new(tools)),
                None => Arc::new(Combined::new(Toolbox::new(tools), self.sources.clone())),
            }
        };
        let mut of_subagents = together(of_subagents);
        self.ports.tools = together(self.tools);
        if let Some(schemas) = &self.items {
            of_subagents = schemas.checked_results(of_subagents);
            apply(schemas, &mut self.ports);
        }
        for wrap in self.wrappers {
            self.ports.tools = wrap(self.ports.tools);
        }
        if self.default_deny {
            self.tool_policy.get_or_insert_with(|| gate::policy(NotConfigured));
            self.handoff_policy.get_or_insert_with(|| gate::handoff_policy(NotConfigured));
        }
        self.ports.gates.extend(self.tool_policy.into_iter().chain(self.handoff_policy));
        let around = AgentDecorator {
            bound: self.graph,
            model: self.model_name,
            common: self.common,
            more: self.more,
            surroundings: self.team.surroundings(&self.ports.clock),
        };
        let modes = self.team.install(&self.ports, of_subagents);
        let (ports, spec, origin, ids, context) =
            (self.ports, self.spec, self.origin, self.ids, self.context);
        Ok(Assembled { ports, spec, control, around, modes, origin, ids, context, work })
    }

    fn faults(&self) -> Vec<SetupFault> {
        let mut faults = Vec::new();
        if self.agents_given > 1 {
            faults.push(SetupFault::AgentsTwice { given: self.agents_given });
        }
        if self.registry.is_some() && !(self.tools.is_empty() && self.sources.is_empty()) {
            faults.push(SetupFault::ToolsTwice);
        }
        let mut names = HashSet::new();
        for tool in &self.tools {
            let name = &tool.tool_def().name;
            if !names.insert(name) {
                faults.push(SetupFault::SameTool { name: name.to_string() });
            }
        }
        faults.extend(self.spec.check().into_iter().map(SetupFault::from));
        faults.extend(self.graph.as_ref().map(BoundGraph::output_faults).unwrap_or_default());
        let is_closed = self.registry.is_none() && self.sources.is_empty();
        faults.extend(self.control.faults(self.spec.mode, is_closed.then_some(&*self.tools)));
        faults
    }
}

/// Applies item schemas to tool calls, results and prompts.
fn apply(schemas: &ItemSchemas, ports: &mut Ports) {
    ports.tools = schemas.checked_results(Arc::clone(&ports.tools));
    ports.gates.push(schemas.gate());
    ports.checks.push(schemas.check_prompts());
}

/// Parts of a built harness.
pub(crate) struct Assembled {
    /// Ports with the agents as given, without additions.
    pub(crate) ports: Ports,
    pub(crate) spec: RunSpec,
    /// Control of each run; `None` leaves its checks of the end.
    pub(crate) control: Option<Arc<ControlSpec>>,
    pub(crate) around: AgentDecorator,
    pub(crate) modes: Option<Modes>,
    pub(crate) origin: Origin,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) context: Map,
    pub(crate) work: Option<WorkTools>,
}
