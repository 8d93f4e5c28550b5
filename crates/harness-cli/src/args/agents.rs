//! Common arguments of everything that runs the agents of threads: `chat`, `serve`, `acp` and `worker`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{BackendArgs, ContextArg, LimitArgs, ModelArgs, SkillArgs, ViewArgs};

/// Settings of agents.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Continue sessions even if the descriptor has changed
    #[arg(long)]
    pub(crate) allow_changed: bool,

    /// Set a context value (customer.premium=true), or load values from a YAML or JSON file
    /// (repeatable)
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) folders: SkillArgs,
}
