//! The arguments of `harness chat`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{Approve, TemplateArgs, ThreadArgs};
use crate::exit::Exit;

#[derive(Clone, Debug, Args)]
#[command(after_help = Exit::help(), after_long_help = notes())]
pub(crate) struct ChatArgs {
    /// Descriptor file, or a directory with a `harness.yaml` [default: `harness.yaml` in the current or nearest
    /// parent directory; without one, an assistant with tools in the current directory]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Continue the last conversation with this descriptor
    #[arg(long = "continue", conflicts_with_all = ["session", "resume"])]
    pub(crate) continue_last: bool,

    /// Store the session in this file, or as a thread of a database (chats.db#NAME), or continue the one it
    /// holds [default: a new file in ~/.local/state/harness/chats]
    #[arg(long, value_name = "FILE", conflicts_with = "resume", value_hint = ValueHint::FilePath)]
    pub(crate) session: Option<PathBuf>,

    /// Choose a conversation with this descriptor from a list that can be searched
    #[arg(long)]
    pub(crate) resume: bool,

    /// Choose when to use colors
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// Without a terminal: read standard input as one message, not line by line
    #[arg(long)]
    pub(crate) whole: bool,

    /// Choose how to decide calls that need approval
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub(crate) approve: Approve,

    #[command(flatten)]
    pub(crate) templates: TemplateArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

/// When to use colors.
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
         Without a descriptor, an assistant searches, reads and edits files and runs commands in the current directory. \
         Edits and commands prompt; Shift-Tab changes the mode (ask, accept edits, plan). Without --model, the \
         first provider with an API key answers, or else the demo model.\n\n\
         Type /help in the chat for commands. When standard input or output is not a terminal, each line \
         of standard input is a message, answers go to standard output and everything else to standard error, \
         and the exit code is that of the last answer.\n\n{}",
        Exit::help(),
        SECURITY = super::descriptor::SECURITY,
    )
}
