//! The arguments of the commands about run records.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use harness::record::{AnswersFrom, InputMode, ReplayMode};

use super::{ContextArg, ModelArgs};

/// The run record that a command writes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunRecordArgs {
    /// Write the run record to this file, or to a new file in this directory, for `harness inspect`, `replay` and
    /// `regress`
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) run_record: Option<PathBuf>,

    /// Leave instructions, tools and planned messages out of the run record
    #[arg(long, requires = "run_record")]
    pub(crate) no_prompts: bool,
}

/// The run records of threads.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThreadRecordArgs {
    /// Write a run record of each run to a new file in this directory, for `harness inspect`; the newest 1,000 of at most
    /// 256 MiB are kept
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) run_record: Option<PathBuf>,

    /// Leave instructions, tools and planned messages out of the run records
    #[arg(long, requires = "run_record")]
    pub(crate) no_prompts: bool,
}

#[derive(Debug, Args)]
#[command(after_help = REPLAY_CODES)]
pub(crate) struct ReplayArgs {
    /// Run record, written by `harness run --run-record`
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) record: PathBuf,

    /// Run this descriptor [default: the recorded one]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Choose the source of tool results
    #[arg(long, value_enum, default_value_t = Mode::Strict)]
    pub(crate) mode: Mode,

    /// Choose the messages for the agents
    #[arg(long, value_enum, default_value_t = Input::Recorded)]
    pub(crate) input: Input,

    /// Override a context value, or load values from a file (repeatable)
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    #[command(flatten)]
    pub(crate) recorded: RunRecordArgs,

    /// Print the comparison as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: LiveArgs,
}

#[derive(Debug, Args)]
#[command(after_help = REGRESS_CODES)]
pub(crate) struct RegressArgs {
    /// Suite: a YAML or JSON file that names records
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
    /// Run records, written by `harness run --run-record`, or directories of them
    #[arg(required = true, value_name = "RECORD|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) records: Vec<PathBuf>,

    /// Write an HTML page to this file: one run, two runs side by side, or a list of runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "json"], value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Print text (the default)
    #[arg(long, conflicts_with = "json")]
    pub(crate) text: bool,

    /// Print each record as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Print governance events, one JSON object per line
    #[arg(long, conflicts_with_all = ["html", "text", "json"])]
    pub(crate) events: bool,
}

/// Options of live models.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct LiveArgs {
    /// Choose the source of model responses
    #[arg(long, value_enum)]
    pub(crate) answers: Option<Answers>,

    /// Use this live model for every agent
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Read API keys from this file, which must be private [default: the environment, then
    /// ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// Send all requests to this OpenAI-compatible endpoint, live
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
}

impl LiveArgs {
    /// Source of responses on the command line; `None` if no option sets it.
    pub(crate) fn answers(&self) -> Option<AnswersFrom> {
        let named = self.model.is_some() || self.base_url.is_some();
        match (self.answers, named) {
            (Some(Answers::Recorded), _) => Some(AnswersFrom::Recorded),
            (Some(Answers::Live), _) | (None, true) => Some(AnswersFrom::Live),
            (None, false) => None,
        }
    }

    /// Returns the options as arguments of a run.
    pub(crate) fn model_args(&self) -> ModelArgs {
        let (model, keys, base_url) = (self.model.clone(), self.keys.clone(), self.base_url.clone());
        ModelArgs { model, keys, base_url, record: None, replay: None }
    }
}

/// Source of model responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answers {
    /// The record; requires no API key and no network
    Recorded,
    /// A live model
    Live,
}

/// Source of tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The record; a call that is not in it ends the run
    Strict,
    /// The record; a call that is not in it is executed
    Hybrid,
    /// Execution of every call
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

/// Messages for the agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    /// All recorded messages, including earlier conversation
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
    0  same results as recorded
    1  different results; the output lists them
    2  invalid arguments or files; nothing was run";

const REGRESS_CODES: &str = "\
Exit codes:
    0  every case passed, or changed without failing
    1  a case failed
    2  invalid arguments or suite; nothing was run";
