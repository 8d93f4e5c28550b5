//! Registries: what tools there are, and calling one by name.

use std::sync::Arc;

use super::{ArgumentFault, DynTool, Timed, ToolCx, ToolDef, ToolOutcome};
use crate::base::BoxFuture;
use crate::clock::Clock;
use crate::ids::ToolName;
use crate::message::ToolCall;
use crate::origin::Origin;
use crate::outcome::{Fault, FaultSource};
use crate::time::Millis;

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

/// The object-safe twin of [`ToolRegistry`].
#[doc(hidden)]
pub trait DynToolRegistry: Send + Sync {
    /// [`ToolRegistry::list`], boxed.
    fn list_boxed<'a>(&'a self, scope: &'a ToolScope) -> BoxFuture<'a, Result<Arc<[ToolDef]>, Fault>>;

    /// [`ToolRegistry::check`].
    fn check_dyn(&self, call: &ToolCall) -> Result<(), ArgumentFault>;

    /// [`ToolRegistry::call`], boxed.
    fn call_boxed(&self, cx: ToolCx) -> BoxFuture<'_, Result<ToolOutcome, Fault>>;

    /// The same, for registries whose tools cannot fault: one box less. The context comes back where `call_boxed` is
    /// to be used.
    fn call_plain(&self, cx: ToolCx) -> Result<BoxFuture<'_, ToolOutcome>, Box<ToolCx>> {
        Err(Box::new(cx))
    }
}

impl<R: ToolRegistry> DynToolRegistry for R {
    fn list_boxed<'a>(&'a self, scope: &'a ToolScope) -> BoxFuture<'a, Result<Arc<[ToolDef]>, Fault>> {
        Box::pin(self.list(scope))
    }

    fn check_dyn(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.check(call)
    }

    fn call_boxed(&self, cx: ToolCx) -> BoxFuture<'_, Result<ToolOutcome, Fault>> {
        Box::pin(self.call(cx))
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

    fn missing(name: &ToolName) -> Fault {
        Fault::new(FaultSource::Tool, "tool_missing", format!("no tool is named `{name}`"))
    }
}

impl DynToolRegistry for Toolbox {
    fn list_boxed<'a>(&'a self, scope: &'a ToolScope) -> BoxFuture<'a, Result<Arc<[ToolDef]>, Fault>> {
        let listed = match &scope.allowed {
            None => Arc::clone(&self.defs),
            Some(names) => self.defs.iter().filter(|def| names.contains(&def.name)).cloned().collect(),
        };
        Box::pin(std::future::ready(Ok(listed)))
    }

    fn check_dyn(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.get(&call.name).map_or(Ok(()), |tool| tool.check_dyn(&call.arguments))
    }

    fn call_boxed(&self, cx: ToolCx) -> BoxFuture<'_, Result<ToolOutcome, Fault>> {
        match self.call_plain(cx) {
            Ok(call) => Box::pin(async move { Ok(call.await) }),
            Err(cx) => Box::pin(std::future::ready(Err(Self::missing(&cx.call.name)))),
        }
    }

    fn call_plain(&self, cx: ToolCx) -> Result<BoxFuture<'_, ToolOutcome>, Box<ToolCx>> {
        match self.get(&cx.call.name) {
            Some(tool) => Ok(tool.call_boxed(cx)),
            None => Err(Box::new(cx)),
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
