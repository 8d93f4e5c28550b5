//! Tools from several sources as one registry.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use harness_core::message::ToolCall;
use harness_core::tool::{
    ArgumentFault, DynTool, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope, Toolbox,
};
use harness_core::{Fault, Origin, ToolName};

/// Registry whose tool names all have the same prefix, such as that of an MCP server. Its list may change
/// between turns.
#[derive(Clone, derive_more::Debug)]
pub struct Source {
    namespace: Arc<str>,
    #[debug(skip)]
    registry: Arc<dyn DynToolRegistry>,
}

impl Source {
    /// Creates a source whose tool names start with `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, registry: Arc<dyn DynToolRegistry>) -> Self {
        Self { namespace: namespace.into(), registry }
    }

    /// Prefix of the tool names.
    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// Whether a tool name has the prefix.
    pub fn owns(&self, name: &ToolName) -> bool {
        name.as_str().starts_with(&*self.namespace)
    }

    /// Names of all its tools at this moment.
    ///
    /// # Errors
    /// If the registry cannot list them.
    pub async fn names(&self, scope: &ToolScope) -> Result<Vec<ToolName>, Fault> {
        let all = ToolScope::new(Arc::clone(&scope.origin), None);
        let listed = self.registry.list_boxed(&all).await?;
        Ok(listed.iter().map(|def| def.name.clone()).collect())
    }
}

/// Binding of a descriptor's target.
#[derive(Clone)]
#[non_exhaustive]
pub enum Binding {
    /// A local tool.
    Tool(Arc<dyn DynTool>),
    /// One tool of a source.
    One {
        /// Source of the tool.
        source: Source,
        /// Name of the tool for the model.
        name: ToolName,
    },
    /// All tools of a source.
    All(Source),
}

impl Binding {
    /// Name in an agent's list of tools: that of the tool, or for all tools of a source its prefix and `*`,
    /// which is not a valid tool name.
    pub fn name(&self) -> ToolName {
        match self {
            Self::Tool(tool) => tool.tool_def().name.clone(),
            Self::One { name, .. } => name.clone(),
            Self::All(source) => format!("{}*", source.namespace).into(),
        }
    }

    /// Description for the model; empty if only its source has it.
    pub fn description(&self) -> Arc<str> {
        match self {
            Self::Tool(tool) => Arc::clone(&tool.tool_def().description),
            Self::One { .. } | Self::All(_) => Arc::default(),
        }
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => f.debug_tuple("Tool").field(&tool.tool_def().name).finish(),
            Self::One { name, .. } => f.debug_tuple("One").field(name).finish(),
            Self::All(source) => f.debug_tuple("All").field(source).finish(),
        }
    }
}

/// A toolbox and sources as one registry.
///
/// A name is looked up in the toolbox first, then in the source with its prefix. Sources without a name
/// that the agent may use are not asked; the others are asked concurrently.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::tool::{ToolRegistry, ToolScope, Toolbox};
/// use harness_tools::Combined;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tools = Combined::new(Toolbox::new([]), []);
/// assert!(tools.list(&ToolScope::new(Arc::default(), None)).await.unwrap().is_empty());
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Combined {
    own: Toolbox,
    sources: Vec<Source>,
}

impl Combined {
    /// Combines `own` and all sources; of two sources with the same prefix the first one is used.
    pub fn new(own: Toolbox, sources: impl IntoIterator<Item = Source>) -> Self {
        let mut seen = HashSet::new();
        let sources = sources.into_iter().filter(|source| seen.insert(Arc::clone(&source.namespace)));
        Self { own, sources: sources.collect() }
    }

    fn source_of(&self, name: &ToolName) -> Option<&Source> {
        if self.own.get(name).is_some() {
            return None;
        }
        self.sources.iter().find(|source| source.owns(name))
    }

    /// Part of a scope for one source (`None`: the toolbox); `None` if it is empty.
    fn part(&self, scope: &ToolScope, source: Option<&Source>) -> Option<ToolScope> {
        let Some(names) = &scope.allowed else { return Some(scope.clone()) };
        let namespace = source.map(Source::namespace);
        let part: Arc<[ToolName]> = names
            .iter()
            .filter(|name| self.source_of(name).map(Source::namespace) == namespace)
            .cloned()
            .collect();
        (!part.is_empty()).then(|| ToolScope::new(Arc::clone(&scope.origin), Some(part)))
    }
}

impl ToolRegistry for Combined {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let own = self.part(scope, None);
        let parts: Vec<_> = self
            .sources
            .iter()
            .filter_map(|source| Some((source, self.part(scope, Some(source))?)))
            .collect();
        if parts.is_empty() {
            return match own {
                Some(own) => self.own.list_boxed(&own).await,
                None => Ok(Arc::default()),
            };
        }
        let mut defs = match &own {
            Some(own) => self.own.list_boxed(own).await?.to_vec(),
            None => Vec::new(),
        };
        let listed = join_all(parts.iter().map(|(source, part)| source.registry.list_boxed(part))).await;
        for listed in listed {
            defs.extend(listed?.iter().filter(|def| self.own.get(&def.name).is_none()).cloned());
        }
        Ok(defs.into())
    }

    fn tool(&self, name: &ToolName) -> Option<&Arc<dyn DynTool>> {
        match self.source_of(name) {
            Some(source) => source.registry.tool_dyn(name),
            None => self.own.tool(name),
        }
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        match self.source_of(&call.name) {
            Some(source) => source.registry.check_dyn(call),
            None => self.own.check_dyn(call),
        }
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        match self.source_of(&call.name) {
            Some(source) => source.registry.delegates_dyn(call, origin),
            None => self.own.delegates_dyn(call, origin),
        }
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        match self.source_of(&cx.call.name) {
            Some(source) => source.registry.call_boxed(cx).await,
            None => self.own.call_boxed(cx).await,
        }
    }
}
