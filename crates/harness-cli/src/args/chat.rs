//! The arguments of `harness chat`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{Approve, TemplateArgs, ThreadArgs};
use crate::exit::Exit;

#[derive(Clone, Debug, Args)]
#[command(after_help = Exit::help(), after_long_help = notes())]
pub(crate) struct ChatArgs {
    /// Descriptor file, or a directory with a `harness.yaml` [default: `harness.yaml` in the current or nearest
    /// parent directory; without one, a plain assistant with the model of --model]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Go on with the last conversation with this descriptor
    #[arg(long = "continue", conflicts_with_all = ["session", "pick"])]
    pub(crate) go_on: bool,

    /// Keep the conversation in this file, and go on with what it holds [default: a new file of the folder of
    /// chats, ~/.local/state/harness/chats]
    #[arg(long, value_name = "FILE", conflicts_with = "pick", value_hint = ValueHint::FilePath)]
    pub(crate) session: Option<PathBuf>,

    /// Choose among the conversations with this descriptor
    #[arg(long)]
    pub(crate) pick: bool,

    /// Whether to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// Without a terminal: take all of standard input as one message, not each line
    #[arg(long)]
    pub(crate) whole: bool,

    /// What happens to a call that needs approval
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub(crate) approve: Approve,

    #[command(flatten)]
    pub(crate) templates: TemplateArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn notes() -> String {
    format!(
        "With a `harness.yaml` and --model, the agents of the descriptor use that model. {SECURITY}\n\n\
         Type /help in the chat to see what it can do. When standard input or output is no terminal, each line \
         of standard input is a message, answers go to standard output and everything else to standard error, \
         and the exit code is that of the last answer.\n\n{}",
        Exit::help(),
        SECURITY = super::descriptor::SECURITY,
    )
}
