//! Bindings of a descriptor's tool targets.

use std::collections::HashMap;
use std::sync::Arc;

use crate::descriptor::Descriptor;

/// The tools of a program by target.
///
/// A graph needs a binding for each tool that an agent lists; other bindings are ignored.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    version: Option<String>,
    tools: HashMap<String, RegistryTool>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryTool {
    /// The name the model calls.
    pub name: Arc<str>,
    /// Description for the model.
    pub description: Arc<str>,
}

impl Registry {
    /// A registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds every target that a descriptor declares to a tool that has the tool's id for a name.
    ///
    /// For looking at a graph where the program's tools are not at hand; a model that is run with
    /// it could call nothing.
    pub fn stand_in(descriptor: &Descriptor) -> Self {
        let document = descriptor.document();
        let tools = document.get(descriptor.root_id(), "tools").and_then(|tools| document.object(tools));
        tools.unwrap_or_default().iter().fold(Self::new(), |registry, entry| {
            let target = document.get(entry.value, "target").and_then(|target| document.string(target));
            match target {
                Some(target) => registry.bind(target, document.resolve(&entry.key), ""),
                None => registry,
            }
        })
    }

    /// Names the version, which the graph's metadata carries.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Binds a target to a tool; a later binding replaces an earlier one.
    #[must_use]
    pub fn bind(
        mut self,
        target: impl Into<String>,
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
    ) -> Self {
        let tool = RegistryTool { name: name.into(), description: description.into() };
        self.tools.insert(target.into(), tool);
        self
    }

    /// The tool bound to a target.
    pub fn get(&self, target: &str) -> Option<&RegistryTool> {
        self.tools.get(target)
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The version, if one was named.
    pub fn version_name(&self) -> Option<&str> {
        self.version.as_deref()
    }
}
