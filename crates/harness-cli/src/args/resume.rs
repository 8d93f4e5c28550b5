//! The arguments of `harness resume`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{MessageArg, RunArgs, RunOptions, UntilArgs};
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = Exit::help())]
pub(crate) struct ResumeArgs {
    /// Session, which records its descriptor and options: a file, or a thread of a database (chats.db#NAME)
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) session: PathBuf,

    /// Message to send, such as guidance
    pub(crate) message: Option<MessageArg>,

    /// Descriptor file, or a directory with a `harness.yaml` [default: the descriptor that the session records]
    #[arg(long, value_name = "DESCRIPTOR", value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Bind tools with this registry file [default: that of the run]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Resume even if the descriptor has changed
    #[arg(long)]
    pub(crate) allow_changed: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

impl ResumeArgs {
    /// Arguments of the run to resume.
    pub(crate) fn run(&self, registry: Option<PathBuf>, until: UntilArgs) -> RunArgs {
        RunArgs {
            descriptor: self.descriptor.clone(),
            message: self.message.clone(),
            registry: self.registry.clone().or(registry),
            session: Some(self.session.clone()),
            resume: true,
            allow_changed: self.allow_changed,
            options: RunOptions { until, ..self.options.clone() },
        }
    }
}
