//! A descriptor's graph as the source of agents, and its tools bound to a registry.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use harness_core::port::{AgentBrief, AgentSource, DynTool, PrepareAsk, ToolDef};
use harness_core::{AgentId, Fault, FaultSource, Json, ModelName, ToolName};
use harness_descriptor::{Agent, ContextInput, Descriptor, Graph, Map, Offer, Registry, Value};

use crate::error::HarnessError;

/// A graph whose tools are bound: what [`Builder::graph`](crate::Builder::graph) takes.
///
/// ```
/// use std::sync::Arc;
///
/// use harness::core::port::{DynTool, tool_fn};
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
    /// The first fault of the descriptor, a target without a tool included.
    pub fn bind<T: Into<String>>(
        descriptor: &Descriptor,
        tools: impl IntoIterator<Item = (T, Arc<dyn DynTool>)>,
    ) -> Result<Self, HarnessError> {
        let tools: HashMap<String, Arc<dyn DynTool>> =
            tools.into_iter().map(|(target, tool)| (target.into(), tool)).collect();
        let registry = tools.iter().fold(Registry::new(), |registry, (target, tool)| {
            let def = tool.tool_def();
            registry.bind(target.as_str(), def.name.as_str(), Arc::clone(&def.description))
        });
        let graph = Graph::build(descriptor, &registry)?;
        let mut used = Vec::<Arc<dyn DynTool>>::new();
        let mut seen = HashMap::<Arc<str>, Arc<str>>::new();
        for bound in graph.agents().flat_map(Agent::tools) {
            match seen.get(&bound.name) {
                Some(target) if *target == bound.target => {}
                Some(target) => {
                    return Err(HarnessError::SameName {
                        name: bound.name.to_string(),
                        targets: [target.to_string(), bound.target.to_string()],
                    });
                }
                None => {
                    seen.insert(Arc::clone(&bound.name), Arc::clone(&bound.target));
                    used.extend(tools.get(&*bound.target).cloned());
                }
            }
        }
        Ok(Self { graph: Arc::new(graph), tools: used })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The hash that names exactly this graph.
    pub fn hash(&self) -> String {
        self.graph.metadata().descriptor_hash.to_string()
    }

    /// The tools that its agents use, each once.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }
}

/// The agents of a graph, under the context of the prompt at hand.
pub(crate) struct GraphAgents {
    graph: Arc<Graph>,
    context: RwLock<Arc<Value>>,
}

impl GraphAgents {
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        Self { graph, context: RwLock::new(Arc::new(Value::Map(Map::new()))) }
    }

    /// Makes the context of a prompt: the descriptor's defaults, then `overrides`.
    pub(crate) fn set_context(
        &self,
        message: String,
        now: String,
        overrides: &Map,
    ) -> Result<(), HarnessError> {
        let input = ContextInput::new(now).message(message).overrides(overrides.clone());
        let context = self.graph.create_context(&input)?;
        *self.context.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(context);
        Ok(())
    }

    /// Whether the graph has this agent.
    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        self.graph.agent(agent.as_str()).is_some()
    }

    fn brief(&self, agent: Option<&AgentId>) -> Result<AgentBrief, Fault> {
        let id = agent.map_or_else(|| self.graph.entry_agent().id(), AgentId::as_str);
        let context = Arc::clone(&self.context.read().unwrap_or_else(PoisonError::into_inner));
        let fault =
            |error: &dyn fmt::Display| Fault::new(FaultSource::Agent, "descriptor", error.to_string());
        let Offer { instructions, tools, handoffs, model, model_settings, .. } =
            self.graph.offer(id, &context).map_err(|error| fault(&error))?;
        let mut brief = AgentBrief::new(id, instructions.unwrap_or_default());
        brief.tools = Some(tools.iter().map(|tool| ToolName::from(&*tool.name)).collect());
        brief.handoffs = handoffs
            .iter()
            .map(|handoff| {
                let to = AgentId::from(&*handoff.to);
                ToolDef::handoff(&*handoff.tool_name, Arc::clone(&handoff.description), to)
            })
            .collect();
        brief.model = Some(ModelName::from(&*model));
        brief.settings = model_settings.as_ref().map(Json::of).transpose().map_err(|error| fault(&error))?;
        Ok(brief)
    }
}

impl AgentSource for GraphAgents {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentBrief, Fault> {
        self.brief(ask.agent.as_ref())
    }
}
