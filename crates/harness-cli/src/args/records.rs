//! The arguments of the commands about run records.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use harness::record::{AnswersFrom, InputMode, ReplayMode};

use super::{ContextArg, ModelArgs};

#[derive(Debug, Args)]
#[command(after_help = REPLAY_CODES)]
pub(crate) struct ReplayArgs {
    /// The record: a file that `harness run --run-record` wrote
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) record: PathBuf,

    /// The descriptor to run [default: the one that the record names]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// What its tool targets are [default: registry.yaml beside the descriptor]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Where the results of tools come from
    #[arg(long, value_enum, default_value_t = Mode::Strict)]
    pub(crate) mode: Mode,

    /// What is said to the agents
    #[arg(long, value_enum, default_value_t = Input::Recorded)]
    pub(crate) input: Input,

    /// A value of the descriptor's context, laid over the recorded context; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    /// Write the record of the new run to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) run_record: Option<PathBuf>,

    /// Print the comparison as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: LiveArgs,
}

#[derive(Debug, Args)]
#[command(after_help = REGRESS_CODES)]
pub(crate) struct RegressArgs {
    /// The suite: a YAML or JSON file that names records and what runs them
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) suite: PathBuf,

    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: LiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The record: a file that `harness run --run-record` wrote
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) record: PathBuf,

    /// Write one HTML page to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "json"], value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Print it as text (the default)
    #[arg(long, conflicts_with = "json")]
    pub(crate) text: bool,

    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print governance events, one JSON object a line
    #[arg(long, conflicts_with_all = ["html", "text", "json"])]
    pub(crate) events: bool,
}

/// Where live answers come from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct LiveArgs {
    /// Where the model's answers come from
    #[arg(long, value_enum)]
    pub(crate) answers: Option<Answers>,

    /// Use this model for every agent instead of those that the descriptor names; answers are live then
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Take the keys of providers from this file, which only you may read [default: the environment, then
    /// ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// An OpenAI-compatible endpoint for all models; answers are live then
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
}

impl LiveArgs {
    /// What the command line says about answers; `None` when it says nothing.
    pub(crate) fn answers(&self) -> Option<AnswersFrom> {
        let named = self.model.is_some() || self.base_url.is_some();
        match (self.answers, named) {
            (Some(Answers::Recorded), _) => Some(AnswersFrom::Recorded),
            (Some(Answers::Live), _) | (None, true) => Some(AnswersFrom::Live),
            (None, false) => None,
        }
    }

    /// The same as the arguments of a run.
    pub(crate) fn model_args(&self) -> ModelArgs {
        let (model, keys, base_url) = (self.model.clone(), self.keys.clone(), self.base_url.clone());
        ModelArgs { model, keys, base_url, record: None, replay: None }
    }
}

/// Where the model's answers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answers {
    /// From the record: no key and no network is needed
    Recorded,
    /// From a live model
    Live,
}

/// Where the results of tools come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// From the record; a call that is not in it ends the run
    Strict,
    /// From the record; a call that is not in it is executed
    Hybrid,
    /// Every call is executed
    Live,
}

impl From<Mode> for ReplayMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Strict => Self::Strict,
            Mode::Hybrid => Self::Hybrid,
            Mode::Live => Self::Live,
        }
    }
}

/// What is said to the agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    /// The recorded messages, the earlier conversation included
    Recorded,
    /// The question alone
    Question,
}

impl From<Input> for InputMode {
    fn from(input: Input) -> Self {
        match input {
            Input::Recorded => Self::Recorded,
            Input::Question => Self::Question,
        }
    }
}

const REPLAY_CODES: &str = "\
Exit codes:
    0  the run was repeated and did the same
    1  it did something else; the output says what
    2  nothing was run: wrong arguments, or a fault in a file";

const REGRESS_CODES: &str = "\
Exit codes:
    0  every case passed, or did something else without failing
    1  a case failed
    2  nothing was run: wrong arguments, or a fault in the suite file";
