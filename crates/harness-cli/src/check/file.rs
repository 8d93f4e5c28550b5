//! One descriptor with its registry.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use harness::descriptor::check::{CheckOptions, Diagnostic, Report, check_file};
use harness::descriptor::{Agent, Registry as Bindings};
use harness::tools::Registry;

use super::{Checked, Sound, registry};
use crate::args::CheckArgs;
use crate::bind;
use crate::paths::Paths;

/// Checks a descriptor and the registry that is given, or lies beside it.
///
/// `told` holds the registries whose own faults were told already, with another descriptor.
pub(super) fn check(path: &Path, args: &CheckArgs, paths: &Paths, told: &mut HashSet<PathBuf>) -> Checked {
    let beside = bind::beside(path);
    let registry_path = args.registry.clone().or_else(|| beside.exists().then_some(beside));
    let loaded = registry_path.as_deref().map(Registry::load);
    let mut options = CheckOptions::default().strict(args.strict);
    if let Some(Ok(registry)) = &loaded {
        options = options.registry(bindings(registry));
    }
    let report = check_file(path, &options);
    let mut diagnostics: Vec<Diagnostic> = report.diagnostics().to_vec();
    if let (Some(loaded), Some(path)) = (&loaded, &registry_path)
        && told.insert(path.clone())
    {
        diagnostics.extend(match loaded {
            Ok(registry) => registry::problems(registry),
            Err(error) => registry::faults(error),
        });
    }
    for diagnostic in &mut diagnostics {
        paths.shorten(diagnostic);
    }
    Checked {
        file: path.to_owned(),
        registry: registry_path,
        diagnostics,
        sound: sound(&report),
        truncated: report.is_truncated(),
    }
}

fn bindings(registry: &Registry) -> Bindings {
    registry.iter().fold(Bindings::new(), |bindings, (target, tool)| {
        let def = tool.tool_def();
        bindings.bind(target, def.name.as_str(), std::sync::Arc::clone(&def.description))
    })
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
