//! The arguments of `harness session`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use harness::descriptor::CompactionPreset;

use super::ModelArgs;
use super::values::presets;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = Exit::help())]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List the sessions of a folder
    List(ListArgs),
    /// Show a session: who said what, which tools were called, where it was compacted, its branches
    Show(ShowSessionArgs),
    /// Take damaged lines out of a session into a file beside it
    Repair(RepairArgs),
    /// Make a session shorter for good, so that the next run begins with less; the file keeps everything
    Compact(CompactArgs),
    /// Write a session as JSON Lines or as Markdown; other programs' sessions become ours
    Export(ExportArgs),
    /// Make a session of its own of what led to an entry
    Fork(ForkArgs),
    /// Give an entry a name, or take it away
    Label(LabelArgs),
}

impl SessionVerb {
    /// Whether its output is for programs, faults included.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Repair(args) => args.json,
            Self::Compact(args) => args.json,
            Self::Fork(args) => args.json,
            Self::Label(args) => args.json,
            Self::Export(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder; its files that end in .jsonl are looked at
    #[arg(value_hint = ValueHint::DirPath, default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowSessionArgs {
    /// The session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Show what led to this entry [default: the last one]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) leaf: Option<String>,

    /// Print one JSON object with every entry of every branch
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// How; without a model old results are cleared and nothing is summarized
    #[arg(long, default_value = "ladder", value_parser = presets())]
    pub(crate) how: CompactionPreset,

    /// Tokens of the model's context window
    #[arg(long, value_name = "N", default_value_t = 128_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: u64,

    /// Remove what the compaction leaves out from the file, and other branches; default: the file keeps it
    #[arg(long)]
    pub(crate) forget: bool,

    /// What a summary is to keep, in your words
    #[arg(long, value_name = "TEXT")]
    pub(crate) keep: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session file: ours, bare messages, or a session tree of pi
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// In which form
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// With Markdown: what led to this entry [default: the last one]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) leaf: Option<String>,

    /// Write to this new file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// All entries of all branches, as a session file
    Jsonl,
    /// One branch, for people
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// The new session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) target: PathBuf,

    /// The last entry that comes with it [default: the last one of the session]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) at: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    /// The session file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// The entry
    pub(crate) entry: String,

    /// Its name; without one, the name that it has is taken away
    pub(crate) label: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
