//! The arguments of `harness tools`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = Exit::help_without(&[Exit::NeedsClarification, Exit::Deferred]))]
pub(crate) struct ToolsArgs {
    /// Registry file, or a directory with a `registry.yaml` [default: `registry.yaml` next to the `harness.yaml` in
    /// the current or nearest parent directory]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) registry: Option<PathBuf>,

    /// Call this tool, by name or target, and print its result
    #[arg(long, value_name = "NAME")]
    pub(crate) call: Option<String>,

    /// Arguments of the call: a JSON object, @FILE, or - for standard input [default: {}]
    #[arg(long, value_name = "JSON|@FILE|-", requires = "call")]
    pub(crate) input: Option<InputArg>,

    /// Approve the call; otherwise a tool that needs approval prompts on the terminal
    #[arg(long, requires = "call")]
    pub(crate) yes: bool,

    /// Print JSON: the tools with their schemas, or the full result
    #[arg(long)]
    pub(crate) json: bool,
}

/// The `--input` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputArg {
    /// `-`: read it from standard input.
    Stdin,
    /// `@FILE`.
    File(PathBuf),
    /// The JSON text itself.
    Text(String),
}

impl std::str::FromStr for InputArg {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            _ if text == "-" => Self::Stdin,
            Some(file) => Self::File(file.into()),
            None => Self::Text(text.to_owned()),
        })
    }
}
