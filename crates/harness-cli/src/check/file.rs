//! One descriptor with its registry.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use harness::descriptor::check::{CheckOptions, Diagnostic, Report, check_contract, check_file};
use harness::descriptor::{Agent, Graph, Registry as Bindings, is_contract, load_file};
use harness::tools::Registry;

use super::{Checked, Sound};
use crate::args::CheckArgs;
use crate::bind;
use crate::model::keys::Keys;
use crate::model::unusable;
use crate::paths::Paths;

/// Checks a descriptor with the given registry, or the one beside it.
///
/// `told` holds the registries whose errors were already reported with another descriptor.
pub(super) fn check(path: &Path, args: &CheckArgs, paths: &Paths, told: &mut HashSet<PathBuf>) -> Checked {
    if is_contract(path) {
        return contract(path, paths);
    }
    let beside = bind::beside(path);
    let registry_path = args.registry.clone().or_else(|| beside.exists().then_some(beside));
    let loaded = registry_path.as_deref().map(Registry::load);
    let mut options = CheckOptions::default().strict(args.strict);
    if let Some(Ok(registry)) = &loaded {
        options = options.registry(bindings(registry, path));
    }
    let report = check_file(path, &options);
    let mut diagnostics: Vec<Diagnostic> = report.diagnostics().to_vec();
    let is_new = registry_path.as_ref().is_some_and(|path| told.insert(path.clone()));
    diagnostics.extend(match &loaded {
        Some(Ok(registry)) if is_new => registry.problems(),
        Some(Err(error)) if is_new => error.diagnostics(),
        Some(_) | None => Vec::new(),
    });
    if let (true, Some(Ok(registry)), Some(graph)) = (args.connect, &loaded, report.graph())
        && registry.problems().is_empty()
    {
        diagnostics.extend(connected(registry, graph));
    }
    diagnostics.extend(unusable_models(
        &report,
        loaded.as_ref().and_then(|loaded| loaded.as_ref().ok()),
        is_new,
    ));
    for diagnostic in &mut diagnostics {
        paths.shorten(diagnostic);
    }
    Checked {
        file: path.to_owned(),
        is_contract: false,
        registry: registry_path,
        diagnostics,
        sound: sound(&report),
        contract: None,
        truncated: report.is_truncated(),
    }
}

/// Warnings about models that a run could not call, those of the registry only if it `is_new`. An invalid key file is
/// reported by the commands that use it.
fn unusable_models(report: &Report, registry: Option<&Registry>, is_new: bool) -> Vec<Diagnostic> {
    let Ok(keys) = Keys::load(None) else { return Vec::new() };
    let models = unusable(report.graph(), registry, &keys).into_iter();
    models.filter(|model| is_new || !model.is_of_registry).map(|model| model.warning).collect()
}

/// Checks a contract file.
fn contract(path: &Path, paths: &Paths) -> Checked {
    let report = check_contract(path);
    let mut diagnostics: Vec<Diagnostic> = report.diagnostics().to_vec();
    for diagnostic in &mut diagnostics {
        paths.shorten(diagnostic);
    }
    Checked {
        file: path.to_owned(),
        is_contract: true,
        registry: None,
        diagnostics,
        sound: None,
        contract: report.contract().cloned(),
        truncated: report.is_truncated(),
    }
}

/// Targets of the registry, and those of MCP servers that only a descriptor names.
fn bindings(registry: &Registry, descriptor: &Path) -> Bindings {
    let named = load_file(descriptor).map(|descriptor| descriptor.tool_targets()).unwrap_or_default();
    let targets = registry.targets().map(str::to_owned).chain(named);
    targets.fold(Bindings::new(), |bindings, target| match registry.binding(&target) {
        Ok(binding) => bindings.bind(target, binding.name().as_str(), binding.description()),
        Err(_) => bindings,
    })
}

/// Checks the servers that the agents use, and stops them.
#[cfg(feature = "mcp")]
fn connected(registry: &Registry, graph: &Graph) -> Vec<Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let targets = graph.agents().flat_map(Agent::tools).map(|tool| &*tool.target);
    runtime.block_on(async {
        let problems = registry.try_servers(targets).await;
        registry.close().await;
        problems
    })
}

/// Rejects a registry with servers in a build without MCP.
#[cfg(not(feature = "mcp"))]
fn connected(_: &Registry, _: &Graph) -> Vec<Diagnostic> {
    Vec::new()
}

fn sound(report: &Report) -> Option<Sound> {
    let graph = report.graph()?;
    let tools: HashSet<&str> = graph.agents().flat_map(Agent::tools).map(|tool| &*tool.id).collect();
    Some(Sound {
        hash: graph.metadata().descriptor_hash.to_string(),
        entry: graph.entry_agent().id().to_owned(),
        agents: graph.agents().len(),
        tools: tools.len(),
    })
}
