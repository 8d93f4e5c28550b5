//! The arguments of the commands about descriptors.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{ContextArg, DescriptorArg};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Descriptor files, contract files, or directories with a `harness.yaml` [default: `harness.yaml` in the
    /// current or nearest parent directory]
    #[arg(value_hint = ValueHint::AnyPath, value_name = "DESCRIPTOR")]
    pub(crate) descriptors: Vec<PathBuf>,

    /// Look up the targets of tools in this file [default: registry.yaml beside the descriptor, when
    /// there is one]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Take values of which the hash does not see all for errors
    #[arg(long)]
    pub(crate) strict: bool,

    /// One object a line for each descriptor, and a summary as the last line
    #[arg(long)]
    pub(crate) json: bool,

    /// Connect to the MCP servers that agents use, too, and look for their tools there
    #[arg(long)]
    pub(crate) connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Also print a hash for each agent, of all that decides what it gets
    #[arg(long)]
    pub(crate) agents: bool,

    /// Also print a hash for each instruction part
    #[arg(long)]
    pub(crate) parts: bool,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Show what this agent would get in a turn: its instructions, tools and handoffs, and why
    /// parts and handoffs are left out
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// A value of the descriptor's context (customer.premium=true), or a YAML or JSON file of them;
    /// may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE", requires = "agent")]
    pub(crate) context: Vec<ContextArg>,

    /// The user's message, for contexts that hold it
    #[arg(long, value_name = "TEXT", requires = "agent")]
    pub(crate) message: Option<String>,

    /// What the descriptor's tool targets are [default: registry.yaml beside the descriptor, when
    /// there is one]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "agent")]
    pub(crate) registry: Option<PathBuf>,

    /// JSON instead of YAML, or instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// The language of the picture
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub(crate) format: GraphFormat,
}

/// A language of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A Mermaid flowchart, as Markdown pages show it
    Mermaid,
    /// Graphviz: `harness graph … --format dot | dot -Tsvg`
    Dot,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes:\n  0  both are the same graph\n  1  something changed\n  2  a file has a fault\n"
)]
pub(crate) struct DiffArgs {
    /// Earlier descriptor: a file, or a directory with a `harness.yaml`
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) before: PathBuf,

    /// Later descriptor [default: `harness.yaml` in the current or nearest parent directory]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) after: Option<PathBuf>,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Print the first line of a descriptor that makes editors complete and check it, with the schema
    /// in descriptor.schema.json beside it
    #[arg(long)]
    pub(crate) header: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Directory for the new files; created when it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
