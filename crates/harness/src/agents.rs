//! A descriptor's graph with its tools bound.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use harness_core::port::DynTool;
use harness_descriptor::{Agent, Descriptor, Graph, Registry};

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
