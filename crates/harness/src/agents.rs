//! A descriptor's graph with its tools bound.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use harness_core::port::{AgentConfig, AgentSource, DynAgentSource, PrepareAsk};
use harness_core::tool::{DynTool, ToolScope};
use harness_core::{Fault, Json, ModelName, ToolName};
use harness_descriptor::{Agent, Descriptor, Graph, GraphAgents, Registry};
use harness_tools::{Binding, Source, Surroundings, WithSurroundings};

use crate::error::{HarnessError, SetupFault};
use crate::instructions::WithMore;
use crate::until_done::schemas;

/// A graph whose tools are bound: what [`Builder::graph`](crate::Builder::graph) takes.
///
/// ```
/// use std::sync::Arc;
///
/// use harness::core::tool::{DynTool, tool_fn};
/// use harness::descriptor::load_text;
/// use harness::{BoundGraph, HarnessError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order { id: u32 }
///
/// let descriptor = load_text("
/// runtime: { entry_agent: desk }
/// tools: { find: { target: orders.find } }
/// agents: { desk: { model: small, instructions: Be brief., tools: [find] } }
/// ").map_err(HarnessError::from)?;
/// let find = tool_fn("find_order", "Finds an order", |order: Order, _| async move {
///     Ok::<_, std::io::Error>(format!("order {} is on its way", order.id))
/// });
/// let graph = BoundGraph::bind(&descriptor, [("orders.find", Arc::new(find) as Arc<dyn DynTool>)])?;
/// assert_eq!(graph.graph().agents().len(), 1);
/// # Ok::<(), HarnessError>(())
/// ```
#[derive(Clone)]
pub struct BoundGraph {
    graph: Arc<Graph>,
    tools: Vec<Arc<dyn DynTool>>,
    sources: Vec<Source>,
    /// Names that stand for all tools of a source.
    all_of: Vec<(ToolName, Source)>,
}

impl fmt::Debug for BoundGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.iter().map(|tool| &tool.tool_def().name).collect::<Vec<_>>();
        f.debug_struct("BoundGraph")
            .field("hash", &self.hash())
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

impl BoundGraph {
    /// Builds the graph of a descriptor with the tools that its targets stand for; further tools are
    /// left out.
    ///
    /// # Errors
    /// The first error of the descriptor, including a target without a tool.
    pub fn bind<T: Into<String>>(
        descriptor: &Descriptor,
        tools: impl IntoIterator<Item = (T, Arc<dyn DynTool>)>,
    ) -> Result<Self, HarnessError> {
        Self::bind_with(descriptor, tools, |_| None)
    }

    /// Like [`bind`](Self::bind), resolving the targets that are not among the tools with `resolve`. It may return tools of a
    /// source with a dynamic list, such as an MCP server.
    ///
    /// # Errors
    /// As [`bind`](Self::bind). A tool that a source lacks is found when an agent is prepared.
    pub fn bind_with<T: Into<String>>(
        descriptor: &Descriptor,
        tools: impl IntoIterator<Item = (T, Arc<dyn DynTool>)>,
        resolve: impl Fn(&str) -> Option<Binding>,
    ) -> Result<Self, HarnessError> {
        let mut bindings: HashMap<String, Binding> =
            tools.into_iter().map(|(target, tool)| (target.into(), Binding::Tool(tool))).collect();
        for target in descriptor.tool_targets() {
            if !bindings.contains_key(&target)
                && let Some(binding) = resolve(&target)
            {
                bindings.insert(target, binding);
            }
        }
        let registry = bindings.iter().fold(Registry::new(), |registry, (target, binding)| {
            registry.bind(target.as_str(), binding.name().as_str(), binding.description())
        });
        let graph = Graph::build(descriptor, &registry)?;
        let mut bound =
            Self { graph: Arc::new(graph), tools: Vec::new(), sources: Vec::new(), all_of: Vec::new() };
        bound.use_bindings(&bindings)?;
        Ok(bound)
    }

    /// Takes what the agents use, each once.
    fn use_bindings(&mut self, bindings: &HashMap<String, Binding>) -> Result<(), HarnessError> {
        let mut seen = HashMap::<Arc<str>, Arc<str>>::new();
        let graph = Arc::clone(&self.graph);
        for tool in graph.agents().flat_map(Agent::tools) {
            match seen.get(&tool.name) {
                Some(target) if *target == tool.target => continue,
                Some(target) => {
                    return Err(HarnessError::SameName {
                        name: tool.name.to_string(),
                        targets: [target.to_string(), tool.target.to_string()],
                    });
                }
                None => seen.insert(Arc::clone(&tool.name), Arc::clone(&tool.target)),
            };
            match bindings.get(&*tool.target) {
                Some(Binding::Tool(tool)) => self.tools.push(Arc::clone(tool)),
                Some(Binding::One { source, .. }) => self.sources.push(source.clone()),
                Some(all @ Binding::All(source)) => {
                    self.all_of.push((all.name(), source.clone()));
                    self.sources.push(source.clone());
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Sets the version of the tools, for records and the digest of their candidates. Default none.
    #[must_use]
    pub fn with_registry_version(mut self, version: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.graph).set_registry_version(version.into());
        self
    }

    /// Graph of the descriptor.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The hash that names exactly this graph.
    pub fn hash(&self) -> String {
        self.graph.metadata().descriptor_hash.to_string()
    }

    /// The tools at hand that its agents use, each once.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }

    /// The sources that its agents use tools of.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Invalid output schemas of its agents.
    pub(crate) fn output_faults(&self) -> Vec<SetupFault> {
        let schemas = schemas();
        let fault = |agent: &Agent| {
            let schema = Json::of(agent.output()?).and_then(|schema| schema.to()).ok()?;
            let problem = schemas.check_schema(&schema).err()?;
            Some(SetupFault::Output { agent: agent.id().to_owned(), problem })
        };
        self.graph.agents().filter_map(fault).collect()
    }

    /// Its agents, who get the tools that sources have in a turn.
    fn agents(&self, agents: Arc<GraphAgents>) -> Arc<dyn DynAgentSource> {
        if self.all_of.is_empty() {
            return agents;
        }
        Arc::new(Expanding { agents, all_of: self.all_of.clone() })
    }
}

/// The agents of a graph, with names that stand for all tools of a source replaced by theirs.
struct Expanding {
    agents: Arc<GraphAgents>,
    all_of: Vec<(ToolName, Source)>,
}

impl AgentSource for Expanding {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = self.agents.prepare(ask).await?;
        let Some(listed) = &config.tools else { return Ok(config) };
        let scope = ToolScope::new(Arc::clone(&ask.origin), None);
        let mut names: Vec<ToolName> = Vec::with_capacity(listed.len());
        for name in listed.iter() {
            let names_of = match self.all_of.iter().find(|(all, _)| all == name) {
                Some((_, source)) => source.names(&scope).await?,
                None => vec![name.clone()],
            };
            for name in names_of {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        config.tools = Some(names.into());
        Ok(config)
    }
}

/// Additions to the agents of a builder.
pub(crate) struct AgentDecorator {
    /// The graph that they come from.
    pub(crate) bound: Option<BoundGraph>,
    /// The model that is requested for all of them.
    pub(crate) model: Option<ModelName>,
    /// Tools that every agent has.
    pub(crate) common: Vec<ToolName>,
    /// Texts after their instructions.
    pub(crate) more: Vec<Arc<str>>,
    /// Where they work.
    pub(crate) surroundings: Option<Surroundings>,
}

impl AgentDecorator {
    /// The agents of the graph.
    pub(crate) fn graph(&self, agents: Arc<GraphAgents>) -> Arc<dyn DynAgentSource> {
        let agents = match &self.bound {
            Some(bound) => bound.agents(agents),
            None => agents,
        };
        self.over(agents)
    }

    /// Agents of another source.
    pub(crate) fn over(&self, mut agents: Arc<dyn DynAgentSource>) -> Arc<dyn DynAgentSource> {
        if let Some(model) = &self.model {
            agents = Arc::new(WithModel { agents, model: model.clone() });
        }
        if !self.common.is_empty() {
            agents = Arc::new(WithCommonTools { agents, names: self.common.clone() });
        }
        if !self.more.is_empty() {
            agents = Arc::new(WithMore::new(agents, &self.more));
        }
        match &self.surroundings {
            Some(surroundings) => Arc::new(WithSurroundings::new(agents, surroundings.clone())),
            None => agents,
        }
    }
}

/// Agents for whom one model is requested.
struct WithModel {
    agents: Arc<dyn DynAgentSource>,
    model: ModelName,
}

impl AgentSource for WithModel {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = self.agents.prepare_boxed(ask).await?;
        config.model = Some(self.model.clone());
        Ok(config)
    }
}

/// Agents who have some tools beside those that they list.
struct WithCommonTools {
    agents: Arc<dyn DynAgentSource>,
    names: Vec<ToolName>,
}

impl AgentSource for WithCommonTools {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let mut config = self.agents.prepare_boxed(ask).await?;
        let Some(listed) = &config.tools else { return Ok(config) };
        let missing = self.names.iter().filter(|name| !listed.contains(name));
        config.tools = Some(listed.iter().chain(missing).cloned().collect());
        Ok(config)
    }
}
