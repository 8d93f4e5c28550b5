//! The arguments of `harness doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use harness::core::Millis;

use super::values;

#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct DoctorArgs {
    /// The folder in which sessions are to be kept
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,

    /// Take the keys of providers from this file [default: the environment, then
    /// ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// Look at this endpoint, too
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    /// How long an endpoint may take to answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) timeout: Millis,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const CODES: &str = "\
Exit codes:
    0  nothing is wrong; what is absent is only missed by those who want it
    1  something does not work; its line says what to do
    2  nothing was looked at: wrong arguments";
