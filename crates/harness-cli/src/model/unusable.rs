//! Models that a run could not call, because an API key or a base URL is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use harness::core::port::Clock;
use harness::descriptor::check::{Diagnostic, Severity};
use harness::descriptor::{Agent, Graph, Place};
use harness::system::SystemClock;
use harness::tools::{ModelEntry, ModelKey, Registry};

use super::keys::Keys;
use super::providers::PROVIDERS;
use super::routes::Routes;
use crate::error::CliError;

/// Code of the warning.
const UNUSABLE: &str = "cli.model_unusable";

/// A model that cannot be called.
pub(crate) struct Unusable {
    pub(crate) name: String,
    /// Whether the registry file declares it, or names it as a fallback.
    pub(crate) is_of_registry: bool,
    /// The missing key or URL, the place of the model name, and a hint.
    pub(crate) warning: Diagnostic,
}

/// Models of the registry file and of the agents whose API key or base URL is missing, each once. Nothing is called.
///
/// Models of agents count only where some model can be called: without any API key, every run uses the demo model.
pub(crate) fn unusable(graph: Option<&Graph>, registry: Option<&Registry>, keys: &Keys) -> Vec<Unusable> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let routes = Routes::new(None, keys, registry, &clock);
    let declared = registry.map(of_registry).unwrap_or_default();
    let has_key = PROVIDERS.iter().any(|provider| !provider.local && keys.of(provider).is_some());
    let has_live = has_key || declared.iter().any(|(name, _)| routes.problem(name).is_none());
    let agents = graph.filter(|_| has_live).map(of_agents).unwrap_or_default();
    let declared = declared.into_iter().map(|named| (true, named));
    let (mut seen, mut unusable) = (BTreeSet::new(), Vec::new());
    for (is_of_registry, (name, place)) in declared.chain(agents.into_iter().map(|named| (false, named))) {
        if let (true, Some(problem)) = (seen.insert(name), routes.problem(name)) {
            let warning = warning(name, &problem, is_of_registry).at(place);
            unusable.push(Unusable { name: name.to_owned(), is_of_registry, warning });
        }
    }
    unusable
}

fn warning(model: &str, problem: &CliError, is_of_registry: bool) -> Diagnostic {
    let hint = if let CliError::NoKey { names, .. } = problem {
        Some(no_key_hint(names, is_of_registry))
    } else {
        problem.hint()
    };
    // A key file does not know which model it is for.
    let is_file = matches!(problem, CliError::KeyFile { .. });
    let message =
        if is_file { format!("no API key for model `{model}`: {problem}") } else { problem.to_string() };
    Diagnostic::new(Severity::Warning, UNUSABLE, message).with_hint(hint)
}

fn no_key_hint(names: &[String], is_of_registry: bool) -> String {
    let is_provider = names.iter().any(|name| PROVIDERS.iter().any(|known| known.key_name == name));
    let file = Keys::usual().filter(|_| is_provider);
    let file = file.map(|path| format!(", or add the key to {}", path.display())).unwrap_or_default();
    let demo = if is_of_registry { "" } else { "; without it, runs use the demo model" };
    format!("set {}{file}{demo}", names.join(" or "))
}

/// Declared models, then their fallbacks, with the place to look at.
fn of_registry(registry: &Registry) -> Vec<(&str, Option<Place>)> {
    let entries = registry.models().iter();
    let own = entries.clone().map(|(name, entry)| (name.as_str(), Some(key_place(registry, name, entry))));
    let others = entries.flat_map(|(name, entry)| {
        let place = registry.place(&["models", name, "fallback"]);
        let names = entry.fallback.iter().flat_map(|fallback| &fallback.models);
        names.map(move |other| (other.as_str(), Some(place.clone())))
    });
    own.chain(others).collect()
}

/// Place of the source of a declared model's API key, or else of the model.
fn key_place(registry: &Registry, name: &str, entry: &ModelEntry) -> Place {
    match entry.key() {
        Some(ModelKey::Env(_)) => registry.place(&["models", name, "auth", "env"]),
        Some(ModelKey::File(_)) => registry.place(&["models", name, "auth", "file"]),
        Some(_) | None => registry.place(&["models", name]),
    }
}

/// Models that agents name.
fn of_agents(graph: &Graph) -> Vec<(&str, Option<Place>)> {
    let named = graph.agents().filter_map(|agent| {
        let name = agent.model()?.as_str()?.trim();
        (!name.is_empty()).then(|| (name, model_place(graph, agent)))
    });
    named.collect()
}

/// Place of an agent's model: its own, or that of the defaults.
fn model_place(graph: &Graph, agent: &Agent) -> Option<Place> {
    let id = agent.id().replace('~', "~0").replace('/', "~1");
    let descriptor = graph.descriptor();
    let own = descriptor.place(&format!("/agents/{id}/model"));
    own.or_else(|| descriptor.place("/agent_defaults/model"))
}
