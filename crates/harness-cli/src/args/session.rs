//! The arguments of `harness session`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use harness::descriptor::CompactionPreset;

use super::ModelArgs;
use super::values::presets;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = Exit::help_without(&[Exit::Failed, Exit::NeedsClarification, Exit::AwaitingApproval, Exit::Deferred]))]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List the sessions in a directory
    List(ListArgs),
    /// Find messages that contain every word, the latest first
    Search(SearchArgs),
    /// Print a session: messages, tool calls, compactions, branches
    Show(ShowSessionArgs),
    /// Move damaged lines to a separate file
    Repair(RepairArgs),
    /// Shorten what the next run reads; the file keeps everything
    Compact(CompactArgs),
    /// Export a session as JSON Lines or Markdown, also from other formats
    Export(ExportArgs),
    /// Copy the session up to an entry into a new session, encrypted if --session-key is given
    Fork(ForkArgs),
    /// Set or remove the name of an entry
    Label(LabelArgs),
    /// Create a key file for --session-key, which encrypts sessions
    Key(KeyArgs),
}

impl SessionVerb {
    /// Whether the output is JSON, including errors.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Search(args) => args.json,
            Self::Show(args) => args.json,
            Self::Repair(args) => args.json,
            Self::Compact(args) => args.json,
            Self::Fork(args) => args.json,
            Self::Label(args) => args.json,
            Self::Key(args) => args.json,
            Self::Export(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Directory of .jsonl files, or database
    #[arg(value_hint = ValueHint::AnyPath, default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words to find, in any order and in upper or lower case
    pub(crate) text: String,

    /// Directory of .jsonl files, database, or session
    #[arg(value_hint = ValueHint::AnyPath, default_value = ".")]
    pub(crate) place: PathBuf,

    /// Limit the number of messages
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) limit: u16,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// New key file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowSessionArgs {
    /// Session: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Print the branch of this entry [default: the last one]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) leaf: Option<String>,

    /// Print one JSON object with every entry of every branch
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// Session: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Session: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Choose the compaction; without a model, old results are cleared and nothing is summarized
    #[arg(long, default_value = "ladder", value_parser = presets())]
    pub(crate) how: CompactionPreset,

    /// Set the model's context window in tokens [default: as the registry file declares, or 128000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: Option<u64>,

    /// Also remove compacted messages and other branches from the file
    #[arg(long)]
    pub(crate) forget: bool,

    /// Describe what a summary must keep
    #[arg(long, value_name = "TEXT")]
    pub(crate) keep: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Read the models of `--model` from this registry file [default: that of the run that started the session]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Session file: of harness, bare messages, or a session tree of pi
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// With Markdown: print the branch of this entry [default: the last one]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) leaf: Option<String>,

    /// Write to this new file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// All entries of all branches, as a session file
    Jsonl,
    /// One branch as a document
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// New session: a file, or a thread of a database
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) target: PathBuf,

    /// Last entry to copy [default: the last one of the session]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) at: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    /// Session: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Entry id
    pub(crate) entry: String,

    /// New name; omit it to remove the name
    pub(crate) label: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
