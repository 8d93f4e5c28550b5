//! Sets of built-in tools.

use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::tool::{
    ArgumentFault, DynTool, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope, Toolbox,
};
use harness_core::{Fault, Origin, ToolName};

use crate::arguments::unknown_tool;

/// Tools in a fixed order, as a registry. Allowed tools are listed; calls of other tools are answered with
/// `unknown_tool`.
///
/// To combine them with other tools, put [`ToolSet::tools`] into a [`Toolbox`].
#[derive(Clone)]
pub struct ToolSet {
    tools: Vec<Arc<dyn DynTool>>,
    listed: bool,
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| &tool.tool_def().name)).finish()
    }
}

impl ToolSet {
    /// Creates a set of tools.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        Self { tools: tools.into_iter().collect(), listed: true }
    }

    /// Hides the tools from the list; calls still reach them.
    pub(crate) fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }

    /// Tools in order.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }

    /// Tools as a toolbox.
    pub fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.tools.iter().cloned())
    }
}

impl ToolRegistry for ToolSet {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let allowed = |def: &&ToolDef| scope.allowed.as_ref().is_none_or(|names| names.contains(&def.name));
        let defs = self.tools.iter().filter(|_| self.listed).map(|tool| tool.tool_def());
        Ok(defs.filter(allowed).cloned().collect())
    }

    fn tool(&self, name: &ToolName) -> Option<&Arc<dyn DynTool>> {
        self.tools.iter().find(|tool| tool.tool_def().name == *name)
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        self.tool(&call.name).map_or(Ok(()), |tool| tool.check_dyn(&call.arguments))
    }

    fn delegates(&self, call: &ToolCall, origin: &Origin) -> bool {
        self.tool(&call.name).is_some_and(|tool| tool.delegates_dyn(call, origin))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        match self.tool(&cx.call.name) {
            Some(tool) => Ok(tool.call_boxed(cx).await),
            None => Ok(unknown_tool(cx.call.name.as_str())),
        }
    }
}
