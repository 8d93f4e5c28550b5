//! The arguments of runs that go on until the work is done.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use harness::core::outcome::StopMode;
use serde::{Deserialize, Serialize};

/// When a run is over, and what it leaves behind.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Until the work is done")]
pub(crate) struct UntilArgs {
    /// Go on turn after turn until the model says that the work is done and every gate accepts that
    /// [default: what the descriptor's `run` says, or else one turn]
    #[arg(long)]
    pub(crate) until_done: bool,

    /// What happens when the end is not accepted; implies --until-done [default: the descriptor's, or else
    /// interactive]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,

    /// What must have been produced, as a YAML file; implies --until-done [default: the descriptor's contract]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) contract: Option<PathBuf>,

    /// The folder in which the contract's files are looked for [default: the descriptor's folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,

    /// Write the report of the run to this file: Markdown, or JSON when it ends in .json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Write the deliverables, one file each, into this folder; a file that is there is never overwritten
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) deliverables: Option<PathBuf>,
}

/// How an end is treated that a gate does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    /// After some nudges a missing completion signal is accepted, and the report says so
    Interactive,
    /// Never accepted: done means that every gate was satisfied
    Strict,
}

impl From<ModeArg> for StopMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Interactive => Self::Interactive,
            ModeArg::Strict => Self::StrictAutomation,
        }
    }
}
