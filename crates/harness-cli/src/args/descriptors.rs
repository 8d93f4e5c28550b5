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

    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor, if it
    /// exists]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Reject values that the hash cannot distinguish
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print one JSON object per descriptor, and a summary as the last line
    #[arg(long)]
    pub(crate) json: bool,

    /// Connect to the MCP servers of the agents and look up their tools
    #[arg(long)]
    pub(crate) connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Also print a hash for each agent, including its defaults and parts
    #[arg(long)]
    pub(crate) agents: bool,

    /// Also print a hash for each instruction part
    #[arg(long)]
    pub(crate) parts: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Print the instructions, tools and handoffs of this agent, and why parts and handoffs are
    /// omitted
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// Set a context value (customer.premium=true), or load values from a YAML or JSON file
    /// (repeatable)
    #[arg(long, value_name = "KEY=VALUE|FILE", requires = "agent")]
    pub(crate) context: Vec<ContextArg>,

    /// User message, for contexts that include it
    #[arg(long, value_name = "TEXT", requires = "agent")]
    pub(crate) message: Option<String>,

    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor, if it
    /// exists]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "agent")]
    pub(crate) registry: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Output language
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub(crate) format: GraphFormat,
}

/// Graph language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid flowchart, for Markdown
    Mermaid,
    /// Graphviz: `harness graph … --format dot | dot -Tsvg`
    Dot,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes:\n  0  no difference\n  1  something changed\n  2  invalid arguments or descriptor\n"
)]
pub(crate) struct DiffArgs {
    /// Earlier descriptor: a file, or a directory with a `harness.yaml`
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) before: PathBuf,

    /// Later descriptor [default: `harness.yaml` in the current or nearest parent directory]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) after: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Print the first line of a descriptor that enables editor support, with the schema in
    /// descriptor.schema.json next to it
    #[arg(long)]
    pub(crate) header: bool,

    /// Print the schema of the lines of `harness run --json` instead
    #[arg(long, conflicts_with = "header")]
    pub(crate) events: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Directory for the new files, created if necessary
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page for each command to this directory, created if necessary [default: print the page of `harness`]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}
