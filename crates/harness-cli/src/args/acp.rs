//! The arguments of `harness acp`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DescriptorArg, TemplateArgs, ThreadArgs};

#[derive(Clone, Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) descriptor: DescriptorArg,

    /// Keep conversations in this folder, so that the editor can open them again [default: they end with it]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) sessions: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) templates: TemplateArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

const NOTES: &str = "An editor starts this program and talks to it over standard input and output, which carry the \
protocol and nothing else; --log shows what happens on standard error. Each conversation has tools and modes of its \
own. It ends when the editor closes its end: what runs is stopped, conversations are left in order, and the exit code \
is 0.";
