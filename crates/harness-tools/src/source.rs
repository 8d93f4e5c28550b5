//! Tools of several places as one registry.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use harness_core::message::ToolCall;
use harness_core::port::BoxFuture;
use harness_core::tool::{
    ArgumentFault, DynTool, DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope, Toolbox,
};
use harness_core::{Fault, ToolName};

/// A registry whose tools all have names that begin alike, such as those of an MCP server. Its list may
/// change from turn to turn.
#[derive(Clone)]
pub struct Source {
    namespace: Arc<str>,
    registry: Arc<dyn DynToolRegistry>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Source {
    /// A registry all of whose tools have names that begin with `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, registry: Arc<dyn DynToolRegistry>) -> Self {
        Self { namespace: namespace.into(), registry }
    }

    /// What the names of its tools begin with.
    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// Whether a tool of that name would be one of its.
    pub fn owns(&self, name: &ToolName) -> bool {
        name.as_str().starts_with(&*self.namespace)
    }

    /// The names of all its tools, as they are now.
    ///
    /// # Errors
    /// When the registry cannot list them.
    pub async fn names(&self, scope: &ToolScope) -> Result<Vec<ToolName>, Fault> {
        let all = ToolScope::new(Arc::clone(&scope.origin), None);
        let listed = self.registry.list_boxed(&all).await?;
        Ok(listed.iter().map(|def| def.name.clone()).collect())
    }
}

/// What a target of a descriptor stands for.
#[derive(Clone)]
#[non_exhaustive]
pub enum Binding {
    /// A tool that is at hand.
    Tool(Arc<dyn DynTool>),
    /// One tool of a source.
    One {
        /// The source.
        source: Source,
        /// The name by which a model calls it.
        name: ToolName,
    },
    /// All tools that a source has in a turn.
    All(Source),
}

impl Binding {
    /// What stands in an agent's list of tools: the tool's name, or for all tools of a source its namespace
    /// and `*`, which no tool can have for a name.
    pub fn name(&self) -> ToolName {
        match self {
            Self::Tool(tool) => tool.tool_def().name.clone(),
            Self::One { name, .. } => name.clone(),
            Self::All(source) => format!("{}*", source.namespace).into(),
        }
    }

    /// What a model is told about it, where that is known before its source is asked.
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
/// A name belongs to the toolbox if that has it, else to the source in whose namespace it lies. Only
/// sources are asked that own a name which the agent may use, all at once.
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
    /// The tools of `own` and of all sources; of two sources with one namespace the first counts.
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

    /// The part of a scope that concerns one source (`None`: the toolbox); `None` if that is nothing.
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
        let listed = all(parts.iter().map(|(source, part)| source.registry.list_boxed(part)).collect()).await;
        for listed in listed {
            defs.extend(listed?.iter().filter(|def| self.own.get(&def.name).is_none()).cloned());
        }
        Ok(defs.into())
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        match self.source_of(&call.name) {
            Some(source) => source.registry.check_dyn(call),
            None => self.own.check_dyn(call),
        }
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        match self.source_of(&cx.call.name) {
            Some(source) => source.registry.call_boxed(cx).await,
            None => self.own.call_boxed(cx).await,
        }
    }
}

/// Waits for all, side by side; what they gave, in their order.
pub(crate) async fn all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut slots: Vec<(Option<BoxFuture<'_, T>>, Option<T>)> =
        futures.into_iter().map(|future| (Some(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (future, given) in &mut slots {
            let Some(running) = future else { continue };
            match Pin::new(running).poll(cx) {
                Poll::Ready(value) => (*future, *given) = (None, Some(value)),
                Poll::Pending => waiting = true,
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    slots.into_iter().filter_map(|(_, given)| given).collect()
}
