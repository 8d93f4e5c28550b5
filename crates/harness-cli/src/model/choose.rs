//! Where answers come from: a live model, a recording that was named, or one that an example ships with.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::BoundGraph;
use harness::adapters::{Recorder, Replay, Retry, RetryPolicy};
use harness::core::port::{Clock, DynModel};

use super::called::Noticed;
use super::keys::Keys;
use super::providers::PROVIDERS;
use super::recordings::{self, Recording};
use super::routes::Routes;
use super::shipped::Shipped;
use crate::args::ModelArgs;
use crate::env;
use crate::error::CliError;
use crate::render::one_line;
use crate::secrets;
use crate::terminal;

/// Where answers come from.
pub(crate) struct Source {
    pub(crate) model: Arc<dyn DynModel>,
    /// The recording that is replayed.
    pub(crate) replay: Option<Arc<Replay>>,
    /// Whether an example's recordings answer, for want of a key.
    pub(crate) shipped: bool,
}

impl Source {
    /// A model, a backend at its place, or what answers for want of a key.
    pub(crate) fn live(model: Arc<dyn DynModel>) -> Self {
        Self { model: Arc::new(Noticed(model)), replay: None, shipped: false }
    }

    fn replay(path: &Path) -> Result<Self, CliError> {
        let replay = Arc::new(Replay::open(path)?);
        Ok(Self { replay: Some(Arc::clone(&replay)), ..Self::live(replay) })
    }
}

/// Who is to be answered, and about what.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The graph whose agents ask; none where a single model is asked.
    pub(crate) graph: Option<&'a BoundGraph>,
    /// The descriptor's file.
    pub(crate) descriptor: &'a Path,
    /// The message that the conversation begins with; `None` when that is not known yet.
    pub(crate) message: Option<&'a str>,
}

/// Chooses as the command line, the keys at hand and the names of the graph's models say.
pub(crate) fn choose(
    args: &ModelArgs,
    asking: Asking<'_>,
    clock: &Arc<dyn Clock>,
) -> Result<Source, CliError> {
    if let Some(path) = &args.replay {
        let source = Source::replay(path)?;
        return Ok(Source { model: recorded(source.model, args)?, ..source });
    }
    let keys = Keys::load(args.keys.as_deref())?;
    let routes = Routes::new(args.base_url.as_deref(), &keys);
    let model = match &args.model {
        Some(name) => routes.only(name),
        None => routes.all(&asking.graph.map(names).unwrap_or_default()),
    };
    let model = match model {
        // Without a key an example is still worth a look.
        Err(fault @ CliError::NoKey { .. }) if args.model.is_none() && args.record.is_none() => {
            return shipped(asking, fault);
        }
        model => model?,
    };
    // The deadline of a call is the driver's to keep: a model that ends its call then, too, could be
    // first, and a limit would look like a fault.
    let model = Retry::new(model, RetryPolicy::default()).clock(Arc::clone(clock));
    Ok(Source::live(recorded(Arc::new(model), args)?))
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

/// What can be asked, a line each.
fn questions(known: &[Recording]) -> String {
    /// Questions that are told, at most.
    const MOST: usize = 5;
    let told = known.iter().take(MOST).map(|known| format!("\n  {}", one_line(&known.question)));
    let more = known.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    told.chain(more).collect()
}

/// The recording of an example, said so; else the fault.
fn shipped(asking: Asking<'_>, fault: CliError) -> Result<Source, CliError> {
    let beside = asking.descriptor.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = beside.unwrap_or(Path::new(".")).join("recordings");
    let known = recordings::in_folder(&folder);
    if known.is_empty() {
        return Err(fault);
    }
    let Some(message) = asking.message else {
        let _ = writeln!(
            terminal::messages(),
            "no {} is set: the model's answers come from the recordings in {}\nthey know:{}",
            env::OPENROUTER_KEY,
            folder.display(),
            questions(&known)
        );
        return Ok(Source { shipped: true, ..Source::live(Arc::new(Shipped::new(folder, known))) });
    };
    let Some(recording) = known.iter().find(|known| known.question == message) else {
        let questions = known.into_iter().map(|known| known.question).collect();
        return Err(CliError::NotRecorded { folder, questions });
    };
    let _ = writeln!(
        terminal::messages(),
        "no {} is set: the model's answers come from {}",
        env::OPENROUTER_KEY,
        recording.path.display()
    );
    Source::replay(&recording.path)
}
