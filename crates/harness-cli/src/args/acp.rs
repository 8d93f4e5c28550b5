//! The arguments of `harness acp`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DescriptorArg, TemplateArgs, ThreadArgs};

#[derive(Clone, Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Store conversations in this directory or database (chats.db), so that the editor can reopen them
    /// [default: in memory]
    #[arg(long, value_name = "DIR|DB", value_hint = ValueHint::AnyPath)]
    pub(crate) sessions: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) templates: TemplateArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

const NOTES: &str = "An editor starts this program. Standard input and output carry only the protocol; --log \
writes logs to standard error. Each conversation has its own tools and modes. When the editor closes the \
connection, the program stops running work, saves the sessions and exits with 0.";
