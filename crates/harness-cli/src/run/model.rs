//! Where answers come from: a live model, a recording that was named, or one that an example ships with.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::adapters::chat::{ChatModel, ChatModelBuilder};
use harness::adapters::{ApiKey, Recorder, Replay, Retry, RetryPolicy};
use harness::core::port::{Clock, DynModel};

use super::recordings;
use crate::args::ModelArgs;
use crate::env;
use crate::error::CliError;

/// The model that agents without one are answered by; a graph names a model for each of its agents, so
/// that nothing asks for it unless `--model` is given.
const UNNAMED: &str = "default";

/// Where answers come from.
pub(crate) struct Source {
    pub(crate) model: Arc<dyn DynModel>,
    /// The recording that is replayed.
    pub(crate) replay: Option<Arc<Replay>>,
}

impl Source {
    fn live(model: Arc<dyn DynModel>) -> Self {
        Self { model, replay: None }
    }

    fn replay(path: &Path) -> Result<Self, CliError> {
        let replay = Arc::new(Replay::open(path)?);
        Ok(Self { model: Arc::clone(&replay) as _, replay: Some(replay) })
    }
}

/// Chooses as the command line and the environment say.
pub(crate) fn choose(
    args: &ModelArgs,
    descriptor: &Path,
    message: Option<&str>,
    clock: &Arc<dyn Clock>,
) -> Result<Source, CliError> {
    if let Some(path) = &args.replay {
        return Source::replay(path);
    }
    let name = args.model.as_deref().unwrap_or(UNNAMED);
    let builder = match (&args.base_url, env::key(env::OPENROUTER_KEY)) {
        (Some(url), _) => compatible(url, name, env::key(env::ENDPOINT_KEY)),
        (None, Some(key)) => ChatModel::openrouter(name, key),
        (None, None) if args.model.is_none() && args.record.is_none() => return shipped(descriptor, message),
        (None, None) => return Err(CliError::NoModel),
    };
    let builder = if args.model.is_some() { builder.only_model() } else { builder };
    // The deadline of a call is the driver's to keep: a model that ends its call then, too, could be
    // first, and a limit would look like a fault.
    let model = builder.build()?;
    let model = Retry::new(model, RetryPolicy::default()).clock(Arc::clone(clock));
    Ok(Source::live(match &args.record {
        Some(path) => Arc::new(Recorder::create(model, path)?),
        None => Arc::new(model),
    }))
}

fn compatible(url: &str, model: &str, key: Option<ApiKey>) -> ChatModelBuilder {
    let builder = ChatModel::compatible(url, model).key_name(env::ENDPOINT_KEY);
    match key {
        Some(key) => builder.key(key),
        None => builder,
    }
}

/// The recording of an example, said so.
fn shipped(descriptor: &Path, message: Option<&str>) -> Result<Source, CliError> {
    let folder = descriptor.parent().unwrap_or(Path::new("")).join("recordings");
    let known = recordings::in_folder(&folder);
    if known.is_empty() {
        return Err(CliError::NoModel);
    }
    let Some(recording) = known.iter().find(|known| Some(known.question.as_str()) == message) else {
        let questions = known.into_iter().map(|known| known.question).collect();
        return Err(CliError::NotRecorded { folder, questions });
    };
    let _ = writeln!(
        anstream::stderr(),
        "no {} is set: the model's answers come from {}",
        env::OPENROUTER_KEY,
        recording.path.display()
    );
    Source::replay(&recording.path)
}
