//! Common arguments of `chat`, `serve` and `acp`.

use clap::Args;

use super::{AgentArgs, SpanArgs, ThreadRecordArgs};

/// Common options of threads of this process.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThreadArgs {
    #[command(flatten)]
    pub(crate) agents: AgentArgs,

    #[command(flatten)]
    pub(crate) recorded: ThreadRecordArgs,

    #[command(flatten)]
    pub(crate) spans: SpanArgs,
}
