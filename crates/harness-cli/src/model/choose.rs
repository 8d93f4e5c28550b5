//! Sources of answers: a live model, a recording, or the demo model.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::BoundGraph;
use harness::adapters::{DynQuotaPool, DynSpendPool, SpendLimit};
use harness::core::port::{Clock, DynModel};
use harness::record::traffic::{Recorder, Replay};
use harness::tools::Registry;

use super::called::Noticed;
use super::demo::{self, Demo};
use super::keys::Keys;
use super::providers::PROVIDERS;
use super::routes::Routes;
use crate::args::ModelArgs;
use crate::error::CliError;
use crate::terminal;
use crate::{env, secrets};

/// Providers in the order in which their API keys are looked for, and their usual models.
const USUAL: [(&str, &str); 3] = [
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("openai", "openai/gpt-5"),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
];

/// Well-known models of providers, for completion.
const KNOWN: [(&str, &[&str]); 3] = [
    ("anthropic", &["claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"]),
    ("openai", &["gpt-5", "gpt-5-mini"]),
    ("openrouter", &["auto", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro", "openai/gpt-5"]),
];

/// Counts that processes share: the quotas of rate limits by the names of models, and what was spent of budgets.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) quotas: Quotas,
    pub(crate) spending: Arc<dyn DynSpendPool>,
}

pub(super) type Quotas = Arc<dyn Fn(&str) -> Arc<dyn DynQuotaPool> + Send + Sync>;

/// Source of answers.
pub(crate) struct Source {
    pub(crate) model: Arc<dyn DynModel>,
    /// The replayed recording.
    pub(crate) replay: Option<Arc<Replay>>,
    /// The model that replaces those that the descriptor names.
    pub(crate) name: Option<String>,
    /// Context window in tokens, if the registry file declares it.
    pub(crate) window: Option<u64>,
    /// The line about the demo model that answers in place of a live one.
    pub(crate) notice: Option<String>,
}

impl Source {
    /// A model, or a backend in its place.
    pub(crate) fn live(model: Arc<dyn DynModel>, name: Option<String>) -> Self {
        Self { model: Arc::new(Noticed(model)), replay: None, name, window: None, notice: None }
    }

    fn replay(path: &Path) -> Result<Self, CliError> {
        let replay = Arc::new(Replay::open(path)?);
        Ok(Self { replay: Some(Arc::clone(&replay)), ..Self::live(replay, None) })
    }
}

/// Chooses as [`find`], and reports on standard error that the demo model answers in place of a live one.
pub(crate) fn choose(
    args: &ModelArgs,
    graph: Option<&BoundGraph>,
    registry: Option<&Registry>,
    clock: &Arc<dyn Clock>,
) -> Result<Source, CliError> {
    let source = find(args, graph, registry, clock, None)?;
    announce(source.notice.as_deref());
    Ok(source)
}

/// Chooses by the command line, the API keys, the models of the registry file and the names of the graph's
/// models, within the budgets of the registry file. `pools` are those of several processes; without them, this one has the
/// whole of each quota and budget.
pub(crate) fn find(
    args: &ModelArgs,
    graph: Option<&BoundGraph>,
    registry: Option<&Registry>,
    clock: &Arc<dyn Clock>,
    pools: Option<Pools>,
) -> Result<Source, CliError> {
    if let Some(path) = &args.replay {
        let source = Source::replay(path)?;
        return Ok(Source { model: recorded(source.model, args)?, ..source });
    }
    let (quotas, spending) = pools.map(|pools| (pools.quotas, pools.spending)).unzip();
    let source = live(args, graph, registry, clock, quotas)?;
    let budgets = registry.map(Registry::budgets).unwrap_or_default().to_vec();
    if budgets.is_empty() {
        return Ok(source);
    }
    let model = match spending {
        Some(pool) => SpendLimit::shared(source.model, budgets, pool),
        None => SpendLimit::new(source.model, budgets, Arc::clone(clock)),
    };
    Ok(Source { model: Arc::new(model), ..source })
}

fn live(
    args: &ModelArgs,
    graph: Option<&BoundGraph>,
    registry: Option<&Registry>,
    clock: &Arc<dyn Clock>,
    quotas: Option<Quotas>,
) -> Result<Source, CliError> {
    let keys = Keys::load(args.keys.as_deref())?;
    let routes = Routes::new(args.base_url.as_deref(), &keys, registry, clock).share(quotas);
    let (model, window) = if let Some(name) = &args.model {
        (routes.only(name), routes.window([name.as_str()]))
    } else {
        let names = graph.map(names).unwrap_or_default();
        (routes.all(&names), routes.window(names.iter().map(String::as_str)))
    };
    let model = match model {
        Err(CliError::NoKey { names, .. }) if args.model.is_none() && args.record.is_none() => {
            return Ok(stand_in(&names));
        }
        model => model?,
    };
    Ok(Source { window, ..Source::live(recorded(model, args)?, args.model.clone()) })
}

/// The name of the model that answers when neither the command line nor a descriptor names one: the usual one of the
/// first provider with an API key, or else the demo model. The second value is the line about the demo model.
pub(crate) fn usual(args: &ModelArgs) -> Result<(String, Option<String>), CliError> {
    let keys = Keys::load(args.keys.as_deref())?;
    let with_key = USUAL.iter().find(|(provider, _)| {
        PROVIDERS.iter().any(|known| known.name == *provider && keys.of(known).is_some())
    });
    if let Some((_, model)) = with_key.filter(|_| cfg!(feature = "http")) {
        return Ok(((*model).to_owned(), None));
    }
    let (why, remedy) = match usual_keys() {
        Some(keys) => ("no API key set", keys),
        None => (NO_LIVE, BUILD.to_owned()),
    };
    Ok((demo::NAME.to_owned(), Some(notice(&format!("{why}: "), &remedy))))
}

/// The line about the demo model if it answers under that name.
pub(crate) fn demo_notice(name: &str) -> Option<String> {
    let remedy = usual_keys().unwrap_or_else(|| BUILD.to_owned());
    Demo::named(name).map(|_| notice("", &remedy))
}

/// How to have a usual model of a provider; `None` in a build without live models.
fn usual_keys() -> Option<String> {
    let names = [env::ANTHROPIC_KEY, env::OPENAI_KEY, env::OPENROUTER_KEY].join(" or ");
    cfg!(feature = "http").then(|| format!("set {names}, or pass --model"))
}

/// Names of models that can be called: those of the registry file, well-known ones of the providers with an API key, and
/// the demo model.
pub(crate) fn known(args: &ModelArgs, registry: Option<&Registry>) -> Vec<String> {
    let mut names: Vec<String> =
        registry.map(|registry| registry.models().keys().cloned().collect()).unwrap_or_default();
    let keys = Keys::load(args.keys.as_deref()).ok();
    let has_key = |provider: &str| {
        let provider = PROVIDERS.iter().find(|known| known.name == provider);
        provider.zip(keys.as_ref()).is_some_and(|(provider, keys)| keys.of(provider).is_some())
    };
    for (provider, models) in KNOWN.iter().filter(|(provider, _)| has_key(provider)) {
        names.extend(models.iter().map(|model| format!("{provider}/{model}")));
    }
    names.push(demo::NAME.to_owned());
    names.dedup();
    names
}

/// The model with its traffic written to a file, when that is asked for; no key that is at hand gets there.
fn recorded(model: Arc<dyn DynModel>, args: &ModelArgs) -> Result<Arc<dyn DynModel>, CliError> {
    let Some(path) = &args.record else { return Ok(model) };
    let keys = Keys::load(args.keys.as_deref())?;
    let keys = PROVIDERS.iter().filter_map(|provider| keys.of(provider)).map(|known| known.key);
    Ok(Arc::new(Recorder::create(model, path)?.without(keys).without(secrets::values())))
}

/// The names of the models that a graph's agents ask for, each once.
fn names(graph: &BoundGraph) -> Vec<String> {
    let models = graph.graph().agents().filter_map(|agent| agent.model()?.as_str());
    let names: BTreeSet<&str> = models.map(str::trim).filter(|name| !name.is_empty()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The demo model in place of a live one, and a line about it.
fn stand_in(keys: &[String]) -> Source {
    let (why, remedy) = match keys.last() {
        Some(keys) => ("no API key set", format!("set {keys}, or pass --model")),
        None => (NO_LIVE, BUILD.to_owned()),
    };
    let notice = Some(notice(&format!("{why}: "), &remedy));
    Source { notice, ..Source::live(Arc::new(Demo::Quick), Some(demo::NAME.to_owned())) }
}

/// Reason for the demo model, and its remedy, in a build without live models.
const NO_LIVE: &str = "no live models in this build";
const BUILD: &str = "build with --features http";

fn notice(why: &str, remedy: &str) -> String {
    format!("{why}using the rule-based demo model ({remedy} for a live one)")
}

/// Reports a line about the demo model on standard error.
pub(crate) fn announce(notice: Option<&str>) {
    if let Some(line) = notice {
        let _ = writeln!(terminal::messages(), "{line}");
    }
}
