//! A graph as the agents of a run.

use std::sync::Arc;

use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
use harness_core::tool::ToolDef;
use harness_core::{AgentId, Fault, FaultSource, Json, ModelName, ToolName};
use parking_lot::RwLock;

use crate::error::DescriptorError;
use crate::graph::Graph;
use crate::value::Value;

/// The agents of a graph in one conversation: a [`Graph`] and the context it is asked with.
///
/// Instructions, gates and tools are resolved for every turn against the context as it is then.
/// Implements core's [`AgentSource`].
///
/// ```
/// use std::sync::Arc;
/// use harness_descriptor::{ContextInput, Graph, GraphAgents, Registry, load_text};
///
/// let descriptor = load_text("runtime: { entry_agent: a }\nagents: { a: { model: m } }")?;
/// let graph = Arc::new(Graph::build(&descriptor, &Registry::new())?);
/// let context = graph.create_context(&ContextInput::new("2026-01-01T00:00:00.000Z"))?;
/// let agents = GraphAgents::new(graph, context);
/// assert_eq!(agents.config(None)?.agent, "a");
/// # Ok::<(), harness_descriptor::DescriptorError>(())
/// ```
#[derive(Debug)]
pub struct GraphAgents {
    graph: Arc<Graph>,
    context: RwLock<Arc<Value>>,
    model: Option<Arc<str>>,
}

impl GraphAgents {
    /// The agents of `graph` with this context.
    pub fn new(graph: Arc<Graph>, context: Value) -> Self {
        Self { graph, context: RwLock::new(Arc::new(context)), model: None }
    }

    /// Gives every agent this model, whatever the descriptor says.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Agent graph of the descriptor.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The context that the next turn sees.
    pub fn context(&self) -> Arc<Value> {
        Arc::clone(&self.context.read())
    }

    /// Replaces the context from the next turn on.
    pub fn set_context(&self, context: Value) {
        *self.context.write() = Arc::new(context);
    }

    /// Configuration of the agent (`None`: the entry agent) in the next turn.
    pub fn config(&self, agent: Option<&str>) -> Result<AgentConfig, DescriptorError> {
        let id = agent.unwrap_or_else(|| self.graph.entry_agent().id());
        let resolved = self.graph.resolve_with(id, &self.context(), self.model.as_deref())?;
        let mut config = AgentConfig::new(id, resolved.instructions.unwrap_or_default());
        let mut names: Vec<ToolName> = Vec::with_capacity(resolved.tools.len());
        for tool in &resolved.tools {
            // Providers refuse two tools of one name, so a tool that is listed twice is offered once.
            if !names.iter().any(|name| *name == *tool.name) {
                names.push(ToolName::from(&*tool.name));
            }
        }
        config.tools = Some(names.into());
        config.handoffs = resolved
            .handoffs
            .iter()
            .map(|handoff| {
                let (name, description) = (&*handoff.tool_name, Arc::clone(&handoff.description));
                ToolDef::handoff(name, description, AgentId::from(&*handoff.to))
            })
            .collect();
        config.model = Some(ModelName::from(&*resolved.model));
        config.settings = resolved.model_settings.as_ref().and_then(|settings| Json::of(settings).ok());
        config.output = resolved.output.as_ref().and_then(|schema| Json::of(schema).ok());
        Ok(config)
    }
}

impl AgentSource for GraphAgents {
    async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
        let agent = ask.agent.as_ref().map(AgentId::as_str);
        self.config(agent).map_err(|error| {
            let message = match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            };
            Fault::new(FaultSource::Agent, error.kind(), message)
        })
    }
}
