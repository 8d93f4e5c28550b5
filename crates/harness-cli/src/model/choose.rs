//! Where answers come from: a live model, a recording that was named, or the demo model.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::BoundGraph;
use harness::adapters::{Retry, RetryPolicy};
use harness::core::port::{Clock, DynModel};
use harness::record::traffic::{Recorder, Replay};

use super::called::Noticed;
use super::demo::{self, Demo};
use super::keys::Keys;
use super::providers::PROVIDERS;
use super::routes::Routes;
use crate::args::ModelArgs;
use crate::error::CliError;
use crate::secrets;
use crate::terminal;

/// Where answers come from.
pub(crate) struct Source {
    pub(crate) model: Arc<dyn DynModel>,
    /// The recording that is replayed.
    pub(crate) replay: Option<Arc<Replay>>,
    /// The model that stands for those that the descriptor names.
    pub(crate) name: Option<String>,
}

impl Source {
    /// A model, or a backend in its place.
    pub(crate) fn live(model: Arc<dyn DynModel>, name: Option<String>) -> Self {
        Self { model: Arc::new(Noticed(model)), replay: None, name }
    }

    fn replay(path: &Path) -> Result<Self, CliError> {
        let replay = Arc::new(Replay::open(path)?);
        Ok(Self { replay: Some(Arc::clone(&replay)), ..Self::live(replay, None) })
    }
}

/// Chooses as the command line, the keys at hand and the names of the graph's models say.
pub(crate) fn choose(
    args: &ModelArgs,
    graph: Option<&BoundGraph>,
    clock: &Arc<dyn Clock>,
) -> Result<Source, CliError> {
    if let Some(path) = &args.replay {
        let source = Source::replay(path)?;
        return Ok(Source { model: recorded(source.model, args)?, ..source });
    }
    let keys = Keys::load(args.keys.as_deref())?;
    let routes = Routes::new(args.base_url.as_deref(), &keys);
    let model = match &args.model {
        Some(name) => match Demo::named(name) {
            Some(demo) => return Ok(Source::live(recorded(Arc::new(demo), args)?, args.model.clone())),
            None => routes.only(name),
        },
        None => routes.all(&graph.map(names).unwrap_or_default()),
    };
    let model = match model {
        Err(CliError::NoKey { names, .. }) if args.model.is_none() && args.record.is_none() => {
            return Ok(stand_in(&names));
        }
        model => model?,
    };
    // The deadline of a call is the driver's to keep: a model that ends its call then, too, could be
    // first, and a limit would look like a fault.
    let model = Retry::new(model, RetryPolicy::default()).clock(Arc::clone(clock));
    Ok(Source::live(recorded(Arc::new(model), args)?, args.model.clone()))
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
fn stand_in(keys: &[&str]) -> Source {
    let (why, remedy) = match keys.last() {
        Some(key) => ("no API key set", format!("set {key}, or pass --model")),
        None => ("no live models in this build", "build with --features http".to_owned()),
    };
    let line = format!("{why}: using the rule-based demo model ({remedy} for a live one)");
    let _ = writeln!(terminal::messages(), "{line}");
    Source::live(Arc::new(Demo::Quick), Some(demo::NAME.to_owned()))
}
