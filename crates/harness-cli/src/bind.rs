//! A descriptor with its registry.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::core::port::Clock;
use harness::core::tool::DynTool;
use harness::descriptor::{Fault, load_file};
use harness::tools::{MemorySetting, Modes, Registry, RunnerSlot, WorkTools};
use harness::{BoundGraph, Builder, HarnessError};

use crate::error::CliError;
use crate::secrets;

/// A runnable graph, and the registry of its tools.
pub(crate) struct Bound {
    pub(crate) graph: BoundGraph,
    pub(crate) registry: Option<Registry>,
}

/// Parts that registry tools need from their harness: a runner of sub-agents, the gate of modes.
#[derive(Clone)]
pub(crate) struct Needs {
    runner: Option<RunnerSlot>,
    modes: Option<Modes>,
    work: Option<WorkTools>,
    pub(crate) memory: Option<MemorySetting>,
}

impl Needs {
    pub(crate) fn of(registry: Option<&Registry>) -> Self {
        Self {
            runner: registry.and_then(Registry::runner_slot).cloned(),
            modes: registry.and_then(Registry::modes).cloned(),
            work: registry.and_then(Registry::work_tools).cloned(),
            memory: registry.and_then(Registry::memory).cloned(),
        }
    }

    pub(crate) fn meet(&self, builder: Builder) -> Builder {
        let builder = builder.redactor(secrets::redactor());
        let builder = self.runner.iter().cloned().fold(builder, Builder::runner_slot);
        let builder = self.modes.iter().cloned().fold(builder, Builder::modes);
        self.work.iter().cloned().fold(builder, Builder::work_tools)
    }
}

/// Loads both files and binds the tools.
pub(crate) fn bind(path: &Path, registry: Option<&Path>, clock: &Arc<dyn Clock>) -> Result<Bound, CliError> {
    let descriptor = load_file(path)?;
    let registry_path = registry.map_or_else(|| beside(path), Path::to_path_buf);
    let registry = if registry.is_some() || registry_path.exists() {
        let registry = Registry::load(&registry_path)?.with_clock(clock);
        let own = registry.protected();
        own.add(path);
        own.include(&secrets::files());
        Some(registry)
    } else {
        None
    };
    let tools = registry.iter().flat_map(Registry::iter);
    let tools = tools.map(|(target, tool)| (target, Arc::clone(tool) as Arc<dyn DynTool>));
    let resolve = |target: &str| registry.as_ref()?.binding(target).ok();
    match BoundGraph::bind_with(&descriptor, tools, resolve) {
        Ok(graph) => {
            let version = registry.as_ref().and_then(Registry::registry_version);
            let graph = version.into_iter().fold(graph, BoundGraph::with_registry_version);
            Ok(Bound { graph, registry })
        }
        Err(error) => Err(explained(error, registry.as_ref(), registry_path)),
    }
}

/// A target without a program is an error in both the registry and the descriptor: it names the file and similar
/// targets.
fn explained(error: HarnessError, registry: Option<&Registry>, path: PathBuf) -> CliError {
    let HarnessError::Descriptor(fault) = error else { return error.into() };
    let Fault::UnboundTarget { target, .. } = fault.fault() else { return fault.into() };
    match registry.map(|registry| registry.binding(target)) {
        Some(Err(why)) => CliError::Unbound { fault, why },
        Some(Ok(_)) => fault.into(),
        None => CliError::NoRegistry { fault, registry: path },
    }
}

/// Name of the registry file next to a descriptor.
pub(crate) const REGISTRY: &str = "registry.yaml";

/// Registry file in the descriptor's directory.
pub(crate) fn beside(descriptor: &Path) -> PathBuf {
    descriptor.with_file_name(REGISTRY)
}
