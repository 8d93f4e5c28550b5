//! Tool registries.

use std::sync::Arc;

use super::{ArgumentFault, DynTool, Timed, ToolCx, ToolDef, ToolOutcome};
use crate::clock::Clock;
use crate::ids::ToolName;
use crate::message::ToolCall;
use crate::origin::Origin;
use crate::outcome::{Fault, FaultSource};
use crate::time::Millis;
use crate::twin;

/// Scope of a list of tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolScope {
    /// Origin of the turn.
    pub origin: Arc<Origin>,
    /// Tools that the agent may use; `None` allows all. The turn enforces it, too.
    pub allowed: Option<Arc<[ToolName]>>,
}

impl ToolScope {
    /// Creates the scope of a turn.
    pub fn new(origin: Arc<Origin>, allowed: Option<Arc<[ToolName]>>) -> Self {
        Self { origin, allowed }
    }
}

/// Source of tools whose list may change between turns, for example a remote server. For a fixed set use [`Toolbox`].
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Fault;
/// use harness_core::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
///
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
    /// Lists the tools, in the order for the model. Called once per turn and agent.
    ///
    /// # Errors
    /// An error ends the turn with `runtime_error`.
    fn list(&self, scope: &ToolScope) -> impl Future<Output = Result<Arc<[ToolDef]>, Fault>> + Send;

    /// Returns the tool that runs calls of this name, if the registry has it and adds nothing to its calls: it is called
    /// directly. Default none: [`ToolRegistry::call`] runs them.
    fn tool(&self, _name: &ToolName) -> Option<&Arc<dyn DynTool>> {
        None
    }

    /// Validates the arguments of a call before gates see it. Default: accepts all.
    ///
    /// # Errors
    /// The invalid field and the expected value.
    fn check(&self, _call: &ToolCall) -> Result<(), ArgumentFault> {
        Ok(())
    }

    /// Whether a call hands all of its work to one child ([`Tool::delegates`](super::Tool::delegates)). Default false.
    fn delegates(&self, _call: &ToolCall, _origin: &Origin) -> bool {
        false
    }

    /// Runs one attempt.
    ///
    /// # Errors
    /// An error of the registry itself: the call gets an error result, and a bare turn ends.
    fn call(&self, cx: ToolCx) -> impl Future<Output = Result<ToolOutcome, Fault>> + Send;
}

twin! {
    DynToolRegistry of ToolRegistry {
        async fn list_boxed = list(scope: &'a ToolScope) -> Result<Arc<[ToolDef]>, Fault>;
        async fn call_boxed = call(cx: ToolCx) -> Result<ToolOutcome, Fault>;
        fn tool_dyn = tool(name: &ToolName) -> Option<&Arc<dyn DynTool>>;
        fn check_dyn = check(call: &ToolCall) -> Result<(), ArgumentFault>;
        fn delegates_dyn = delegates(call: &ToolCall, origin: &Origin) -> bool;
    }
}

/// Fixed, ordered set of tools. Allowed names that it does not have are ignored. Two tools of one name are both listed;
/// the first one is called.
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
    /// Creates a set of tools.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        let tools: Vec<_> = tools.into_iter().collect();
        let defs = tools.iter().map(|tool| tool.tool_def().clone()).collect();
        Self { tools, defs }
    }

    /// Limits the duration of each call; see [`Timed`].
    #[must_use]
    pub fn within(self, within: Millis, clock: &Arc<dyn Clock>) -> Self {
        let timed = |tool| Arc::new(Timed::new(tool, within, Arc::clone(clock))) as Arc<dyn DynTool>;
        Self::new(self.tools.into_iter().map(timed))
    }

    /// Returns the definitions, in order.
    pub fn defs(&self) -> &Arc<[ToolDef]> {
        &self.defs
    }

    /// Returns the first tool of that name.
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

    fn tool(&self, name: &ToolName) -> Option<&Arc<dyn DynTool>> {
        self.get(name)
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.get(&call.name).map_or(Ok(()), |tool| tool.check_dyn(&call.arguments))
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.get(&call.name).is_some_and(|tool| tool.delegates_dyn(call, origin))
    }

    fn call(&self, cx: ToolCx) -> impl Future<Output = Result<ToolOutcome, Fault>> + Send {
        let name = &cx.call.name;
        let missing = || Fault::new(FaultSource::Tool, "tool_missing", format!("tool `{name}` not found"));
        let outcome = self.get(name).ok_or_else(missing).map(|tool| tool.call_boxed(cx));
        async move { Ok(outcome?.await) }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::json::Json;
    use crate::tool::FnTool;

    #[test]
    fn toolbox_lists_its_allowed_tools_in_order() {
        let tool = |name: &str| -> Arc<dyn DynTool> {
            Arc::new(FnTool::with_schema(name, "", Json::empty_object(), |_, _| async { "" }))
        };
        let toolbox = Toolbox::new(["a", "b", "c"].map(tool));
        let allowed = ["c", "ghost", "a"].map(ToolName::from);
        let scope = ToolScope::new(Arc::default(), Some(Arc::from(allowed)));
        let listed = toolbox.list(&scope).now_or_never().unwrap().unwrap();
        assert_eq!(listed.iter().map(|def| def.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }
}
