//! Registries: what tools there are, and calling one by name.

use std::sync::Arc;

use super::{ArgumentFault, DynTool, Timed, ToolCx, ToolDef, ToolOutcome};
use crate::clock::Clock;
use crate::ids::ToolName;
use crate::message::ToolCall;
use crate::origin::Origin;
use crate::outcome::{Fault, FaultSource};
use crate::time::Millis;
use crate::twin;

/// For whom tools are listed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolScope {
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// The names that the agent may use; `None` is all. The turn enforces it, too.
    pub allowed: Option<Arc<[ToolName]>>,
}

impl ToolScope {
    /// The tools of `allowed` (`None`: all) for a turn.
    pub fn new(origin: Arc<Origin>, allowed: Option<Arc<[ToolName]>>) -> Self {
        Self { origin, allowed }
    }
}

/// A source of tools whose list may change between turns (a remote server, for example).
///
/// For a fixed set of tools use [`Toolbox`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Fault;
/// use harness_core::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
///
/// /// Tools of a service that is asked which there are.
/// struct Remote;
///
/// impl ToolRegistry for Remote {
///     async fn list(&self, _: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
///         Ok(Arc::new([ToolDef::new("search", "Searches the archive")]))
///     }
///
///     async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
///         Ok(ToolOutcome::text(format!("nothing for {}", cx.call.arguments.text())))
///     }
/// }
/// ```
pub trait ToolRegistry: Send + Sync {
    /// The tools, in the order in which a model is told of them. Asked once per turn and agent.
    ///
    /// # Errors
    /// A fault ends the turn with `runtime_error`.
    fn list(&self, scope: &ToolScope) -> impl Future<Output = Result<Arc<[ToolDef]>, Fault>> + Send;

    /// Checks the arguments of a call before any gate sees it. The default accepts all.
    ///
    /// # Errors
    /// The wrong field and what was expected.
    fn check(&self, _call: &ToolCall) -> Result<(), ArgumentFault> {
        Ok(())
    }

    /// Runs one attempt.
    ///
    /// # Errors
    /// A fault of the registry itself: the call gets an error result, and a bare turn ends.
    fn call(&self, cx: ToolCx) -> impl Future<Output = Result<ToolOutcome, Fault>> + Send;
}

twin! {
    DynToolRegistry of ToolRegistry {
        async fn list_boxed = list(scope: &'a ToolScope) -> Result<Arc<[ToolDef]>, Fault>;
        async fn call_boxed = call(cx: ToolCx) -> Result<ToolOutcome, Fault>;
        fn check_dyn = check(call: &ToolCall) -> Result<(), ArgumentFault>;
    }
}

/// A fixed set of tools, in order. Of a scope's names those are listed that it has. Two tools of one name are both
/// listed; the first one is called.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::tool::{RawTool, Toolbox};
///
/// let echo = RawTool::new("echo", "Says it again", Json::empty_object(), |said: Json, _| async move { said.to_string() });
/// let tools = Toolbox::new([Arc::new(echo) as _]);
/// assert_eq!(tools.defs().len(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn DynTool>>,
    defs: Arc<[ToolDef]>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.defs.iter().map(|def| &def.name)).finish()
    }
}

impl Toolbox {
    /// A set of tools.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        let tools: Vec<_> = tools.into_iter().collect();
        let defs = tools.iter().map(|tool| tool.tool_def().clone()).collect();
        Self { tools, defs }
    }

    /// The same tools, each of whose calls may take `within` at most: see [`Timed`]. A tool that is to have
    /// another time is wrapped by itself.
    #[must_use]
    pub fn within(self, within: Millis, clock: &Arc<dyn Clock>) -> Self {
        let timed = |tool| Arc::new(Timed::new(tool, within, Arc::clone(clock))) as Arc<dyn DynTool>;
        Self::new(self.tools.into_iter().map(timed))
    }

    /// The definitions, in order.
    pub fn defs(&self) -> &Arc<[ToolDef]> {
        &self.defs
    }

    /// The first tool of that name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<dyn DynTool>> {
        self.tools.iter().find(|tool| tool.tool_def().name == *name)
    }
}

impl ToolRegistry for Toolbox {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        Ok(match &scope.allowed {
            None => Arc::clone(&self.defs),
            Some(names) => self.defs.iter().filter(|def| names.contains(&def.name)).cloned().collect(),
        })
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.get(&call.name).map_or(Ok(()), |tool| tool.check_dyn(&call.arguments))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        match self.get(&cx.call.name) {
            Some(tool) => Ok(tool.call_boxed(cx).await),
            None => {
                let text = format!("unknown tool `{}`", cx.call.name);
                Err(Fault::new(FaultSource::Tool, "tool_missing", text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::json::Json;
    use crate::tool::RawTool;

    #[test]
    fn toolbox_lists_the_allowed_tools_that_it_has_in_its_own_order() {
        let tool = |name: &str| -> Arc<dyn DynTool> {
            Arc::new(RawTool::new(name, "", Json::empty_object(), |_, _| async { "" }))
        };
        let toolbox = Toolbox::new(["a", "b", "c"].map(tool));
        let allowed = ["c", "ghost", "a"].map(ToolName::from);
        let scope = ToolScope::new(Arc::default(), Some(Arc::from(allowed)));
        let listed = toolbox.list_boxed(&scope).now_or_never().unwrap().unwrap();
        assert_eq!(listed.iter().map(|def| def.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }
}
