//! Arguments of runs that continue until the work is done.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use harness::core::outcome::StopMode;
use serde::{Deserialize, Serialize};

/// Options of controlled runs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Until the work is done")]
pub(crate) struct UntilArgs {
    /// Run until the work is complete and every check passes [default: the descriptor's `run`
    /// section, or one turn]
    #[arg(long)]
    pub(crate) until_done: bool,

    /// Choose how to treat an end that a gate does not accept; implies --until-done [default: the
    /// descriptor's, or interactive]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,

    /// Require the outputs in this YAML contract; implies --until-done [default: the descriptor's
    /// contract]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) contract: Option<PathBuf>,

    /// Look for the contract's files in this directory [default: the descriptor's]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,

    /// Write the report of the run to this file, as Markdown, or as JSON if it ends in .json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Write each deliverable to a file in this directory, without overwriting files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) deliverables: Option<PathBuf>,
}

/// Treatment of an end that a gate does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    /// Accept a missing completion signal after some reminders, and report it
    Interactive,
    /// Require every gate to accept
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
